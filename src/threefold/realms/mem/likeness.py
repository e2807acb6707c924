"""Likeness: whether two short notes say the same, without asking a language model. Pure, but for reading its files.

The units of both notes are aligned (`aligning`), by their forms (`forms`) and by what they say (`senses`). How much is
left over on both sides, and how much more on one of them, gives the likelihood that they say the same
(`likeness.json`, learned by `scripts/make_likeness.py`). Whatever that is, notes are never the same that differ in a
number, a date, a sign, in whether something is so, or in who does it to whom, nor where a word of one stands against a
word of the other: sentence vectors cannot tell tea from coffee there, so none are asked (`benchmarks/reconcile.py
--embedder`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

from threefold.errors import IntegrityError
from threefold.realms.mem.leftover import Seen, seen_of
from threefold.realms.mem.spoken import languages, told
from threefold.realms.mem.units import Unit, classes, denials, denied, folded, plain, units_of

Relation = Literal["same", "refines", "contradicts", "different"]
Side = Literal["first", "second"]

FILE: Final = Path(__file__).with_name("likeness.json")
FEATURES: Final = ("unmatched", "share")
"""What the likelihood is made from; more of either never makes it larger."""
# Half of what a feature can take from the likelihood is taken by so much of it.
_HALF: Final = 0.5
# A note that has so much more says more than the other, however long both are.
_MORE: Final = 1.25
# Where so much is left over of both, a word of one stands against a word of the other.
_AGAINST: Final = 0.25
# Less left over than a word says nothing of its own; a note that refines another has a word more, but no transcript.
_WORD, _DETAIL, _TRANSCRIPT = 0.75, 1.0, 24.0
# A word such as "now" is no more than this.
_NOW: Final = 0.5
# Notes about the same thing leave no more over than this beside what contradicts.
_BESIDE: Final = 1.5
# And have so much in common.
_COMMON: Final = 0.3
# Names and numbers that tell things apart stand early, values late.
_EARLY: Final = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class Note:
    """A text, analysed once. `denied` says of each unit whether it stands where something is denied."""

    text: str
    folded: str
    units: tuple[Unit, ...]
    denials: int
    denied: tuple[bool, ...]
    classes: frozenset[tuple[int, int]]
    mass: float
    told: bool
    languages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Likeness:
    """How one note stands to another.

    `likelihood` is that of saying the same, from 0 to 1. `finer` is the note that says more, where one refines the
    other. `because` says what decided, by name; see `Seen`.
    """

    relation: Relation
    likelihood: float
    finer: Side | None
    because: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Model:
    """The weights of `FEATURES`, none of them positive, the offset, and the likelihood from which notes are one."""

    weights: tuple[float, ...]
    offset: float
    threshold: float

    def likely(self, seen: Seen) -> float:
        """The likelihood that notes say the same: none where there is a conflict."""
        if seen.conflict:
            return 0.0
        values = (getattr(seen, name) for name in FEATURES)
        logit = sum(weight * saturated(value) for weight, value in zip(self.weights, values, strict=True))
        return 1.0 / (1.0 + math.exp(-logit - self.offset))


def note_of(text: str) -> Note:
    """Analyse `text`."""
    shown = plain(text)
    units, lower = units_of(shown), folded(shown)
    return Note(
        text,
        lower,
        units,
        denials(shown, units),
        denied(shown, units),
        classes(lower),
        sum(unit.weight for unit in units),
        told(shown, units),
        languages(shown, units),
    )


def compare(first: Note, second: Note) -> Likeness:
    """Say how `first` stands to `second`; the other way round the answer is the same, with `finer` turned."""
    if second.text < first.text:
        other = compare(second, first)
        turned: dict[Side | None, Side | None] = {"first": "second", "second": "first", None: None}
        return Likeness(other.relation, other.likelihood, turned[other.finer], other.because)
    seen, model = seen_of(first, second), _model()
    relation = relation_of(seen, model)
    finer: Side | None = None
    if relation == "refines":
        finer = "first" if seen.left_first > seen.left_second else "second"
    return Likeness(relation, model.likely(seen), finer, seen.because())


def relation_of(seen: Seen, model: Model) -> Relation:
    """What notes are to each other of which this was seen."""
    changed = seen.changed and seen.unmatched + seen.extra > _NOW
    says_as_much = seen.unmatched < _AGAINST and seen.extra <= _MORE
    if model.likely(seen) >= model.threshold and says_as_much and not (seen.foreign or changed):
        return "same"
    return _other(seen)


def saturated(value: float) -> float:
    """A feature as the model weighs it: from 0 towards 1."""
    return value / (value + _HALF)


def _other(seen: Seen) -> Relation:
    """What notes are to each other that are not the same."""
    if seen.empty or seen.scattered or seen.unmatched - seen.told > _BESIDE or seen.common < _COMMON:
        return "different"
    if seen.swap:
        return "contradicts" if seen.compared else "different"
    if seen.denial or seen.tense or (seen.changed and seen.unmatched <= _BESIDE):
        return "contradicts"
    if seen.clash:
        beside = seen.unmatched - seen.told <= _WORD and seen.place >= _EARLY
        return "contradicts" if beside else "different"
    least = _MORE if seen.foreign else _DETAIL
    if seen.unmatched <= _WORD and least <= seen.extra <= _TRANSCRIPT:
        return "refines"
    return "different"


@cache
def _model() -> Model:
    try:
        written = json.loads(FILE.read_text("utf-8"))
        weights = tuple(float(written["weights"][name]) for name in FEATURES)
        model = Model(weights, float(written["offset"]), float(written["threshold"]))
        if not all(map(math.isfinite, (*weights, model.offset, model.threshold))) or max(weights) > 0.0:
            raise ValueError("weights must be finite and not positive")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IntegrityError(f"{FILE.name} cannot be read ({error}); install threefold anew") from None
    return model

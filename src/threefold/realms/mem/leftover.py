"""What is left over when two notes are aligned, and which of it keeps them from saying the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Protocol

from threefold.realms.mem.aligning import Alignment, align, scattered
from threefold.realms.mem.turning import turned
from threefold.realms.mem.units import Unit
from threefold.realms.mem.words import ASKING, words

# So much a character of China weighs that is left over alone and tells things apart: 大, 小, 前, 向.
_ALONE: Final = 1.3
# Kinds of units that are values: a number in figures or words, a date, half of the day, a sign.
_VALUES: Final = frozenset(("number", "worded", "date", "half", "code", "sign"))


class Analysed(Protocol):
    """What of a note is looked at; see `likeness.Note`."""

    @property
    def folded(self) -> str: ...  # noqa: D102
    @property
    def units(self) -> tuple[Unit, ...]: ...  # noqa: D102
    @property
    def denials(self) -> int: ...  # noqa: D102
    @property
    def mass(self) -> float: ...  # noqa: D102
    @property
    def denied(self) -> tuple[bool, ...]: ...  # noqa: D102
    @property
    def classes(self) -> frozenset[tuple[int, int]]: ...  # noqa: D102
    @property
    def languages(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def told(self) -> bool: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Seen:
    """All that decides.

    Left over of each note, by weight: `left_first` and `left_second`; of both `unmatched`, of one more `extra`, as a
    part of the longer note `share`; in common `common`; of values on both sides `told`, the first of them at `place` (0
    to 1) of its note.

    Conflicts: `number`, `date`, `half` of the day and `sign` are 1 if one note has one that the other lacks, 2 if each
    has; `denial` if one says that it is not so, `tense` if one says that it was, `swap` if two parts changed places,
    `scattered` if all did, `empty` if a note says nothing, `elsewhere` if each denies what the other says, `apart` if
    they have words of a kind that are not each other (must and may).

    `foreign` if they are not the same word for word and nothing tells their language, so that any may be one for "not".

    `compared` and `changed` tell what the notes are about: what is liked better, and what is no longer so.
    """

    left_first: float
    left_second: float
    unmatched: float
    common: float
    extra: float
    share: float
    told: float
    place: float
    number: int
    date: int
    half: int
    sign: int
    denial: bool
    tense: bool
    swap: bool
    scattered: bool
    empty: bool
    foreign: bool
    elsewhere: bool
    apart: bool
    compared: bool
    changed: bool

    @property
    def conflict(self) -> bool:
        """Whether the notes cannot say the same."""
        told = self.number or self.date or self.half > 1 or self.sign
        said = self.denial or self.elsewhere or self.apart or self.tense or self.swap
        return bool(told or said or self.scattered or self.empty)

    @property
    def clash(self) -> bool:
        """Whether each has a number, a date or a time that the other has not."""
        return max(self.number, self.date, self.half) > 1

    def because(self) -> Mapping[str, float]:
        """What there is, by name."""
        return {name: round(float(value), 3) for name, value in asdict(self).items() if value}


def seen_of(first: Analysed, second: Analysed) -> Seen:
    """Align two notes and look at what is left."""
    found = align(first.units, second.units, _languages(first, second))
    left = [[note.units[at] for at in places] for note, places in zip((first, second), found.left, strict=True)]
    masses = [_mass(note.units, places) for note, places in zip((first, second), found.left, strict=True)]
    values = [sum(unit.weight for unit in side if unit.kind in _VALUES) for side in left]
    known = words()
    return Seen(
        left_first=masses[0],
        left_second=masses[1],
        unmatched=min(masses),
        common=min(note.mass - mass for note, mass in zip((first, second), masses, strict=True)),
        extra=abs(masses[0] - masses[1]),
        share=abs(masses[0] - masses[1]) / max(first.mass, second.mass, 1.0),
        told=min(values),
        place=min(_place(note.units, places) for note, places in zip((first, second), found.left, strict=True)),
        number=_told(left, "number", "worded"),
        date=_told(left, "date"),
        half=_told(left, "half"),
        sign=_told(left, "code", "sign"),
        denial=(first.denials > 0) != (second.denials > 0),
        tense=_was(first.units, second.units, left, found) or _was(second.units, first.units, left[::-1], found.turned),
        swap=turned(first.units, second.units, found),
        scattered=scattered(found),
        empty=not (first.mass and second.mass) and first.folded != second.folded,
        foreign=not (first.told or second.told) and _spelt(first) != _spelt(second),
        elsewhere=_denied_elsewhere(first, second, found),
        apart=_of_other_classes(first.classes, second.classes),
        compared=all(known.comparing.search(note.folded) for note in (first, second)),
        changed=bool(known.changing.search(first.folded)) != bool(known.changing.search(second.folded)),
    )


def _languages(first: Analysed, second: Analysed) -> tuple[str, ...]:
    """The languages that both notes may be in, or else that one of them may be in."""
    both = tuple(language for language in first.languages if language in second.languages)
    return both or first.languages + second.languages


def _was(first: Sequence[Unit], second: Sequence[Unit], left: Sequence[Sequence[Unit]], found: Alignment) -> bool:
    """Whether the first note says that something was, and the second that it is; "was done" is no such thing."""
    known = words()
    if any(unit.form in known.was for unit in left[0]) and any(unit.form in known.is_ for unit in left[1]):
        return True
    if any(unit.form in known.was or unit.form in known.is_ for unit in (*first, *second)):
        return False
    pairs = [
        (first[i].form, second[j].form)
        for i, j, _ in found.pairs
        if first[i].form != second[j].form and first[i].key != ASKING
    ]
    return any(
        was.fullmatch(one) and now.fullmatch(other) and not was.fullmatch(other)
        for one, other in pairs
        for was, now in known.tenses
    )


def _denied_elsewhere(first: Analysed, second: Analysed, found: Alignment) -> bool:
    """Whether something denied in one note is not in the other, and the other way round."""
    if not (first.denials and second.denials):
        return False
    both = _mixed(first) | _mixed(second)
    moved = {
        first.denied[i]
        for i, j, _ in found.pairs
        if first.units[i].form not in words().denials
        and first.denied[i] != second.denied[j]
        and not {first.units[i].key, second.units[j].key} & both
    }
    return len(moved) == 2


def _mixed(note: Analysed) -> set[str]:
    """What is denied in one place of a note and said in another."""
    keys: tuple[set[str], set[str]] = (set(), set())
    for unit, denied in zip(note.units, note.denied, strict=True):
        keys[denied].add(unit.key)
    return keys[0] & keys[1]


def _of_other_classes(first: frozenset[tuple[int, int]], second: frozenset[tuple[int, int]]) -> bool:
    """Whether of some kind of words each note has one and they have none in common."""
    shared = {kind for kind, _ in first & second}
    return bool(({kind for kind, _ in first} & {kind for kind, _ in second}) - shared)


def _spelt(note: Analysed) -> str:
    return "".join(unit.form for unit in note.units)


def _told(left: Sequence[Sequence[Unit]], *which: str) -> int:
    """2 if each note has something of a kind that the other has not, 1 if one has; "one" alone is hardly a number."""
    told = [[unit for unit in side if unit.kind in which] for side in left]
    if all(told):
        return 2
    return int(any(unit.kind != "worded" or unit.key != "1" for side in told for unit in side))


def _place(units: Sequence[Unit], places: Sequence[int]) -> float:
    """Where the first value left over stands, from 0 to 1."""
    there = [at for at in places if units[at].kind in _VALUES]
    return there[0] / max(len(units) - 1, 1) if there else 1.0


def _mass(units: Sequence[Unit], left: Sequence[int]) -> float:
    """What is left over weighs."""
    said = {at for at in left if units[at].weight > 0.0}
    alone = {at for at in said if units[at].form in words().telling and not {at - 1, at + 1} & said}
    return sum(_ALONE if at in alone else units[at].weight for at in said)

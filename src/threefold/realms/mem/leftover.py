"""What is left over when two notes are aligned, and which of it keeps them from saying the same."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Final, Protocol

from threefold.realms.mem.aligning import Alignment, align, bent, scattered, swapped
from threefold.realms.mem.units import Unit
from threefold.realms.mem.words import ASKING, RUN, Words, words

# With more words left over another order is another way to say it, and no swap.
_FEW: Final = 2
# A preposition stands no more characters before its noun, with an article between.
_NEAR: Final = 8
_RUN = re.compile(f"[{RUN}]")
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
    def turkish(self) -> bool: ...  # noqa: D102
    @property
    def told(self) -> bool: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Seen:
    """All that decides.

    Left over of each note, by weight: `left_first` and `left_second`; of both `unmatched`, of one more `extra`, as a
    part of the longer note `share`; of values on both sides `told`, the first of them at `place` (0 to 1) of its note.

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
    found = align(first.units, second.units, first.turkish or second.turkish)
    left = [[note.units[at] for at in places] for note, places in zip((first, second), found.left, strict=True)]
    masses = [_mass(side) for side in left]
    values = [sum(unit.weight for unit in side if unit.kind in _VALUES) for side in left]
    known = words()
    return Seen(
        left_first=masses[0],
        left_second=masses[1],
        unmatched=min(masses),
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
        swap=_turned(first, second, left, found),
        scattered=scattered(found),
        empty=not (first.mass and second.mass) and first.folded != second.folded,
        foreign=not (first.told or second.told) and _spelt(first) != _spelt(second),
        elsewhere=_denied_elsewhere(first, second, found),
        apart=_of_other_classes(first.classes, second.classes),
        compared=all(known.comparing.search(note.folded) for note in (first, second)),
        changed=bool(known.changing.search(first.folded)) != bool(known.changing.search(second.folded)),
    )


def _turned(first: Analysed, second: Analysed, left: Sequence[Sequence[Unit]], found: Alignment) -> bool:
    """Whether one note says that A did it to B and the other that B did it to A.

    That is told by the order of words, and by whom it is done by or to: "Anna called Ben" is not "Anna was called by
    Ben", but "Ben was called by Anna"; and "Anna owes Ben" is not "Ben owes it to Anna".
    """
    known = words()
    order = found.order
    if order == sorted(order) and (
        _turns(left, known) or _related(first, second, left, known) or bent(first.units, second.units, found)
    ):
        return True
    if _only_one(left, known.agents):
        passive = any(unit.form in known.agents for unit in left[0])
        note, own = (first, found) if passive else (second, found.turned)
        moved = order == sorted(order) or _done_to(note.units, own, known.agents)
        return moved and not _more(left, known.agents)
    if _only_one(left, known.receivers):
        things = [j for i, j, _ in found.pairs if not first.units[i].timed]
        return things[:1] != sorted(things)[:1] and not _more(left, known.receivers)
    return sum(map(len, found.left)) <= _FEW and swapped(first.units, second.units, found)


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


def _only_one(left: Sequence[Sequence[Unit]], marks: frozenset[str]) -> bool:
    one, other = (any(unit.form in marks for unit in side) for side in left)
    return one != other


def _turns(left: Sequence[Sequence[Unit]], known: Words) -> bool:
    """Whether nothing is left over but a word of direction; one such as "to" says so only against another word."""
    turning = [
        {
            unit.form
            for before, unit in pairwise((None, *side))
            if unit and unit.turning and not _of_a_pronoun(before, unit)
        }
        for side in left
    ]
    if turning[0] == turning[1] or _more(left, turning[0] | turning[1]):
        return False
    return all(left) or not known.receivers.issuperset(turning[0] | turning[1])


def _related(first: Analysed, second: Analysed, left: Sequence[Sequence[Unit]], known: Words) -> bool:
    """Whether nothing is left over but words such as "in" and "with" on both sides, and not before a time."""
    told = []
    for note, side in zip((first, second), left, strict=True):
        when = [unit.at for unit in note.units if unit.form in known.when]
        told.append({unit.form for unit in side if unit.form in known.relating and not _soon(unit.at, when)})
    return all(told) and told[0] != told[1] and not _more(left, known.relating)


def _soon(at: int, places: Sequence[int]) -> bool:
    return any(at < place <= at + _NEAR for place in places)


def _of_a_pronoun(before: Unit | None, unit: Unit) -> bool:
    """Whether a word of direction follows one that says little and is left over too: उस को."""
    return (
        before is not None and before.weight == 0.0 and before.at + len(before.form) + 3 > unit.at and unit.form == "को"
    )


def _done_to(units: Sequence[Unit], found: Alignment, agents: frozenset[str]) -> bool:
    """Whether, where the mark of who did it stands before that and the verb, these are in another order."""
    mark = next(at for at in found.left[0] if units[at].form in agents)
    after = [j for i, j, _ in found.pairs if i > mark and units[i].weight > 0.0]
    return _RUN.match(units[mark].form) is not None and after != sorted(after)


def _more(left: Sequence[Sequence[Unit]], marks: Set[str]) -> bool:
    """Whether more is left over than such marks, and what says little."""
    return any(unit.weight > 0.0 and unit.form not in marks for side in left for unit in side)


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


def _mass(left: Sequence[Unit]) -> float:
    return sum(unit.weight for unit in left)

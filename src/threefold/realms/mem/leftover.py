"""What is left over when two notes are aligned, and which of it keeps them from saying the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, Protocol

from threefold.realms.mem.aligning import Alignment, align, scattered, swapped
from threefold.realms.mem.forms import kindred
from threefold.realms.mem.units import Unit
from threefold.realms.mem.words import words

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vector = npt.NDArray[np.float32]

# With more words left over than the first, none is compared by meaning; with more than the second, another order is
# another way to say it, and no swap.
_MAX_MEANT: Final = 12
_FEW: Final = 2
# Less left over is no word, but an ending.
_LITTLE: Final = 0.2
# Words that are so near in the table of vectors mean the same; below the first nothing is said.
_NEAR, _NEAREST = 0.62, 0.74
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
    def pieces(self) -> Callable[[str], Vector] | None: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Seen:
    """All that decides.

    Left over of each note, by weight: `left_first` and `left_second`; of both `unmatched`, of one more `extra`, as a
    part of the longer note `share`; of values on both sides `told`, the first of them at `place` (0 to 1) of its note.

    Conflicts: `number`, `date`, `half` of the day and `sign` are 1 if one note has one that the other lacks, 2 if each
    has; `denial` if one says that it is not so, `tense` if one says that it was, `swap` if two parts changed places,
    `scattered` if all did, `empty` if a note says nothing, `foreign` if something is left over and neither has a word
    that would tell their language, so that it may be a word for "not".

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
    compared: bool
    changed: bool

    @property
    def conflict(self) -> bool:
        """Whether the notes cannot say the same."""
        told = self.number or self.date or self.half > 1 or self.sign
        return bool(told or self.denial or self.tense or self.swap or self.scattered or self.empty or self.foreign)

    @property
    def clash(self) -> bool:
        """Whether each has a number, a date or a time that the other has not."""
        return max(self.number, self.date, self.half) > 1

    def because(self) -> Mapping[str, float]:
        """What there is, by name."""
        return {name: round(float(value), 3) for name, value in asdict(self).items() if value}


def seen_of(first: Analysed, second: Analysed) -> Seen:
    """Align two notes and look at what is left."""
    found = align(first.units, second.units)
    left = [[note.units[at] for at in places] for note, places in zip((first, second), found.left, strict=True)]
    masses = _masses(first, second, found)
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
        foreign=max(masses) > _LITTLE and all(unit.weight for note in (first, second) for unit in note.units),
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
    if _only_one(left, known.agents):
        return order == sorted(order) and not _more(left, known.agents)
    if _only_one(left, known.receivers):
        return order[:1] != [0] and not _more(left, known.receivers)
    return sum(map(len, found.left)) <= _FEW and swapped(first.units, second.units, found)


def _was(first: Sequence[Unit], second: Sequence[Unit], left: Sequence[Sequence[Unit]], found: Alignment) -> bool:
    """Whether the first note says that something was, and the second that it is; "was done" is no such thing."""
    known = words()
    if any(unit.form in known.was for unit in left[0]) and any(unit.form in known.is_ for unit in left[1]):
        return True
    if any(unit.form in known.was or unit.form in known.is_ for unit in (*first, *second)):
        return False
    pairs = [(first[i].form, second[j].form) for i, j, _ in found.pairs if first[i].form != second[j].form]
    return any(
        was.fullmatch(one) and now.fullmatch(other) and not was.fullmatch(other)
        for one, other in pairs
        for was, now in known.tenses
    )


def _only_one(left: Sequence[Sequence[Unit]], marks: frozenset[str]) -> bool:
    one, other = (any(unit.form in marks for unit in side) for side in left)
    return one != other


def _more(left: Sequence[Sequence[Unit]], marks: frozenset[str]) -> bool:
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


def _masses(first: Analysed, second: Analysed, found: Alignment) -> tuple[float, float]:
    """The weight left over of either note, less what means nearly the same as something left over of the other."""
    ours, theirs = (_groups(note.units, at) for note, at in zip((first, second), found.left, strict=True))
    masses = [sum(weight for _, weight in side) for side in (ours, theirs)]
    if not (first.pieces and second.pieces and ours and theirs and max(len(ours), len(theirs)) <= _MAX_MEANT):
        return masses[0], masses[1]
    meant, told = [
        [pieces(word).sum(axis=0) for word, _ in side]
        for pieces, side in ((first.pieces, ours), (second.pieces, theirs))
    ]
    near = [
        (_nearness(meant[i], told[j]), i, j)
        for i, (one, _) in enumerate(ours)
        for j, (other, _) in enumerate(theirs)
        if not kindred(one, other)
    ]
    done: tuple[set[int], set[int]] = (set(), set())
    for credit, i, j in sorted(near, key=lambda each: (-each[0], each[1], each[2])):
        if credit > 0.0 and i not in done[0] and j not in done[1]:
            done[0].add(i)
            done[1].add(j)
            masses[0] -= credit * ours[i][1]
            masses[1] -= credit * theirs[j][1]
    return masses[0], masses[1]


def _groups(units: Sequence[Unit], places: Sequence[int]) -> list[tuple[str, float]]:
    """Each word left over and its weight; neighbouring characters of a run are one."""
    groups: list[tuple[str, float]] = []
    last = -2
    for at in places:
        unit = units[at]
        if unit.weight == 0.0:
            continue
        if groups and unit.kind == "run" and at == last + 1 and units[last].kind == "run":
            word, weight = groups[-1]
            groups[-1] = (word + unit.shown, weight + unit.weight)
        else:
            groups.append((unit.shown, unit.weight))
        last = at
    return groups


def _nearness(one: Vector, other: Vector) -> float:
    import numpy as np

    lengths = float(np.sqrt(np.dot(one, one) * np.dot(other, other)))
    cosine = float(np.dot(one, other)) / lengths if lengths > 0.0 else 0.0
    return min(max((cosine - _NEAR) / (_NEAREST - _NEAR), 0.0), 1.0)

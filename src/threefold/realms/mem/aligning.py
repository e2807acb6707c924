"""Aligning: which units of one note stand for which of another, what is left over, and what changed places."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import Final

from threefold.realms.mem import forms
from threefold.realms.mem.senses import SAME_SENSE, same_sense
from threefold.realms.mem.units import Unit
from threefold.realms.mem.words import words

# Beyond so many units left over, notes say different things whatever is akin among them.
_MAX_LEFT: Final = 48
# A swap is looked for among so many units.
_MAX_SWAPPED: Final = 48
# Notes of at least so many units in common have them in another order altogether if so many are not followed by what
# followed them: two sentences of the same characters.
_MANY, _SCATTERED = 10, 0.6
# Languages that mark a noun after it, so that what stands bare is told by its place.
_DECLINED: Final = "аыеуи"
_WITH: Final = ("와", "과", "랑")
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_DEVANAGARI = re.compile("[\u0900-\u097f]")


@dataclass(frozen=True, slots=True)
class Alignment:
    """`pairs` are places of units that stand for each other, and how surely; `left` the places of the others."""

    pairs: tuple[tuple[int, int, float], ...]
    left: tuple[tuple[int, ...], tuple[int, ...]]

    @property
    def order(self) -> list[int]:
        """For each pair, in the first note's order, its rank in the second's."""
        ranks = {j: at for at, j in enumerate(sorted(j for _, j, _ in self.pairs))}
        return [ranks[j] for _, j, _ in self.pairs]

    @property
    def turned(self) -> Alignment:
        """The alignment of the second note with the first."""
        return Alignment(tuple(sorted((j, i, score) for i, j, score in self.pairs)), self.left[::-1])


def align(first: Sequence[Unit], second: Sequence[Unit], languages: tuple[str, ...] = ()) -> Alignment:
    """Pair equal units, then akin ones, the nearest kin first; `languages` are those that the notes may be in."""
    places: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for j in range(len(second) - 1, -1, -1):
        places[_meaning(second[j])].append(j)
    equal = [(i, there.pop()) for i, unit in enumerate(first) if (there := places.get(_meaning(unit)))]
    pairs = [(i, j, 1.0) for i, j in equal if not _apart(first[i], second[j], languages)]
    ours, theirs = {i for i, _, _ in pairs}, {j for _, j, _ in pairs}
    left = [i for i in range(len(first)) if i not in ours], [j for j in range(len(second)) if j not in theirs]
    if 0 < len(left[0]) <= _MAX_LEFT and 0 < len(left[1]) <= _MAX_LEFT:
        near = [(_akin(first[i], second[j], languages), i, j) for i in left[0] for j in left[1]]
        for score, i, j in sorted(near, key=lambda each: (-each[0], abs(each[1] - each[2]), each[1])):
            if score > 0.0 and i in left[0] and j in left[1]:
                pairs.append((i, j, score))
                left[0].remove(i)
                left[1].remove(j)
        pairs += [(i, j, forms.SAME_STEM) for i, j in _compounds(first, left[0], second, left[1])]
        pairs += [(i, j, forms.SAME_STEM) for j, i in _compounds(second, left[1], first, left[0])]
    return Alignment(tuple(sorted(pairs)), (tuple(left[0]), tuple(left[1])))


def _compounds(
    first: Sequence[Unit], ours: list[int], second: Sequence[Unit], theirs: list[int]
) -> list[tuple[int, int]]:
    """Words left over that are written as one by the other; they and their parts are left over no longer."""
    found = []
    for i in tuple(ours):
        parts = [j for j in theirs if second[j].kind == first[i].kind and second[j].weight == 1.0]
        for one, two in permutations(parts, 2):
            if forms.compound(first[i].form, second[one].form, second[two].form):
                found.append((i, one))
                ours.remove(i)
                theirs.remove(one)
                theirs.remove(two)
                break
    return found


def scattered(alignment: Alignment) -> bool:
    """Whether notes have the same units in another order altogether."""
    order = alignment.order
    broken = sum(after != before + 1 for before, after in pairwise(order))
    return len(order) >= _MANY and broken > _SCATTERED * len(order)


def swapped(first: Sequence[Unit], second: Sequence[Unit], alignment: Alignment) -> bool:
    """Whether the second note is the first with two parts in each other's place: "A calls B" and "B calls A".

    A part that only moves, as in "on Monday he runs" and "he runs on Monday", is no swap, nor are parts that are of
    different kinds or joined by "and". Neighbours are swapped if they are names, if their endings are, or if they make
    a word of a run.
    """
    order = alignment.order
    start, end = 0, len(order)
    while start < end and order[start] == start:
        start += 1
    while end > start and order[end - 1] == end - 1:
        end -= 1
    size = end - start
    if not 2 <= size <= _MAX_SWAPPED:
        return False
    moved = [j - start for j in order[start:end]]
    head, tail = size - moved[0], moved[-1] + 1  # so many units changed from the end to the front, and back
    if head + tail > size or moved != [*range(size - head, size), *range(tail, size - head), *range(tail)]:
        return False
    units = [(first[i], second[j]) for i, j, _ in alignment.pairs[start:end]]
    one, other, between = _Part(units[:head]), _Part(units[-tail:]), units[head:-tail]
    if not between:
        return one.exchanged(other)
    follows = {first[i].key for i, _, _ in alignment.pairs[end : end + 1]}
    joined = any(unit.form in words().joining for unit, _ in between)
    counted = start > 0 and first[alignment.pairs[start - 1][0]].kind in ("number", "worded")  # two sons and a daughter
    if joined and not counted and all(unit.weight == 0.0 or unit.key in follows for unit, _ in between):
        return False  # French and Dutch, フランス語とドイツ語
    return one.like(other) and not any(forms.resumed(unit.form, its.form) for unit, its in between)


def bent(first: Sequence[Unit], second: Sequence[Unit], alignment: Alignment) -> bool:
    """Whether notes have the same words in the same order but for two endings, which tell who does it.

    In Russian any two will do that do not stand together; elsewhere one has more of an ending, the other less.
    """
    if any(units[at].weight for units, left in zip((first, second), alignment.left, strict=True) for at in left):
        return False
    kin = [(i, first[i].form, second[j].form) for i, j, score in alignment.pairs if score > SAME_SENSE]
    other = [(i, one, its) for i, one, its in kin if one != its]
    if len(other) != 2:
        return False
    (place, one, its), (place_, two, theirs) = other
    opposite = (one.startswith(its) and theirs.startswith(two)) or (its.startswith(one) and two.startswith(theirs))
    return opposite or (place + 1 < place_ and all(_CYRILLIC.match(form) for form in (one, two)))


class _Part:
    """Some units of one note with those that they stand for in the other."""

    def __init__(self, units: Sequence[tuple[Unit, Unit]]) -> None:
        said = [(unit, other) for unit, other in units if unit.weight > 0.0]
        self.units = units
        self.last = units[-1][0]
        self.size = len(said)
        self.run = all(unit.kind == "run" for unit, _ in said)
        self.named = any(unit.named and other.named for unit, other in said)
        self.timed = any(unit.timed for unit, _ in units)

    def like(self, other: _Part) -> bool:
        """Whether parts are of a kind: both with a name, or both with as many words; a time is like nothing else."""
        if (self.timed, self.named) != (other.timed, other.named):
            return False
        if self.last.kind == "hangul":
            return self._bent(other)
        return self.named or (self.run and other.run) or self.size == other.size

    def exchanged(self, other: _Part) -> bool:
        """Whether two neighbours took each other's place, rather than that one of them moved."""
        if len(self.units) != 1 or len(other.units) != 1 or self.timed or other.timed:
            return False
        if _CYRILLIC.match(self.last.form) and all(unit.form != its.form for unit, its in (*self.units, *other.units)):
            return True
        if all(unit.form == its.form for unit, its in (*self.units, *other.units)):
            return (self.run and other.run) or (self.named and other.named) or bool(_DEVANAGARI.match(self.last.form))
        return self._bent(other)

    def _bent(self, other: _Part) -> bool:
        """Whether the last words of both took each other's ending."""
        (one, its), (two, theirs) = self.units[-1], other.units[-1]
        if one.form.endswith(_WITH) and theirs.form.endswith(_WITH):
            return False
        before = forms.ending(one.form, its.form), forms.ending(two.form, theirs.form)
        return before == (forms.ending(theirs.form, two.form), forms.ending(its.form, one.form))


def _meaning(unit: Unit) -> tuple[str, str]:
    return ("number" if unit.kind == "worded" else unit.kind), unit.key


def _apart(first: Unit, second: Unit, languages: tuple[str, ...]) -> bool:
    """Whether words of one stem are two names, or otherwise not the same."""
    if first.form == second.form or first.kind != "word":
        return False
    if _proper(first, second) and first.key == second.key and not first.grouped:
        shared = forms.shared_length(first.form, second.form)
        if len(first.form) > shared < len(second.form):
            return True
    return languages != ("tr",) and (forms.apart(first.form, second.form) or forms.feminine(first.shown, second.shown))


def _akin(first: Unit, second: Unit, languages: tuple[str, ...]) -> float:
    if first.inflected and second.inflected:
        return forms.akin_kana(first.form, second.form)
    if first.kind != second.kind or first.kind not in ("word", "hangul") or _apart(first, second, languages):
        return 0.0
    akin = forms.akin(first.form, second.form, _proper(first, second), languages)
    if akin > 0.0 or first.kind == "hangul":
        return akin
    return SAME_SENSE * same_sense(first.form, second.form, languages)


def _proper(first: Unit, second: Unit) -> bool:
    """Whether words are names, for all that is seen; the first of a sentence of Russian may be any that is declined."""
    declined = max(first.at, second.at) == 0 and first.form[-1] in _DECLINED and second.form[-1] in _DECLINED
    return first.named and second.named and not declined

"""Turning: whether one note says that A does it to B, and the other that B does it to A, or in another direction.

That is told by the order of words, and by whom it is done by or to: "Anna called Ben" is not "Anna was called by Ben",
but "Ben was called by Anna"; and "Anna owes Ben" is not "Ben owes it to Anna". Where nothing else differs, words that
say little say it too: "on" is not "under", and "with" not "for".
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from itertools import pairwise
from typing import Final

from threefold.realms.mem.aligning import Alignment, bent, swapped
from threefold.realms.mem.units import Unit
from threefold.realms.mem.words import RUN, words

# With more words left over, another order is another way to say it, and no swap.
_FEW: Final = 2
# A preposition stands no more characters before its noun, with an article between.
_NEAR: Final = 8
_RUN = re.compile(f"[{RUN}]")

Left = Sequence[Sequence[Unit]]


def turned(first: Sequence[Unit], second: Sequence[Unit], found: Alignment) -> bool:
    """Whether what one note says is turned in the other."""
    known, order = words(), found.order
    left = [_placed(units, places) for units, places in zip((first, second), found.left, strict=True)]
    if order == sorted(order) and (_directed(left) or _related(left) or bent(first, second, found)):
        return True
    if _told_by_pronoun(first, second, found) or _told_by_pronoun(second, first, found.turned):
        return True
    if _only_one(left, known.agents):
        passive = any(unit.form in known.agents for unit in left[0])
        note, own = (first, found) if passive else (second, found.turned)
        return not _more(left, known.agents) and (order == sorted(order) or _done_to(note, own))
    if _only_one(left, known.receivers):
        things = [j for i, j, _ in found.pairs if not first[i].timed]
        return things[:1] != sorted(things)[:1] and not _more(left, known.receivers)
    return sum(map(len, found.left)) <= _FEW and swapped(first, second, found)


def _placed(units: Sequence[Unit], places: Sequence[int]) -> list[Unit]:
    """What is left over of a note, less words such as "in" that only place a time."""
    known = words()
    when = [unit.at for unit in units if unit.form in known.when]
    return [
        units[at]
        for at in places
        if units[at].form not in known.relating or not any(units[at].at < time <= units[at].at + _NEAR for time in when)
    ]


def _directed(left: Left) -> bool:
    """Whether nothing is left over but a word of direction; one such as "to" says so only against another word."""
    turning = [
        {unit.form for before, unit in pairwise((None, *side)) if unit and unit.turning and not _his(before, unit)}
        for side in left
    ]
    if turning[0] == turning[1] or _more(left, turning[0] | turning[1]):
        return False
    return all(left) or not words().receivers.issuperset(turning[0] | turning[1])


def _his(before: Unit | None, unit: Unit) -> bool:
    """Whether a word of Hindi belongs to a pronoun that is left over too: उस को."""
    return before is not None and before.weight == 0.0 and unit.form == "को"


def _related(left: Left) -> bool:
    """Whether nothing is left over but words such as "in" and "with" on both sides."""
    known = words()
    told = [{unit.form for unit in side if unit.form in known.relating} for side in left]
    return all(told) and told[0] != told[1] and not _more(left, known.relating)


def _done_to(units: Sequence[Unit], found: Alignment) -> bool:
    """Whether, where the mark of who did it stands before that and the verb, these are in another order."""
    mark = next(at for at in found.left[0] if units[at].form in words().agents)
    after = [j for i, j, _ in found.pairs if i > mark and units[i].weight > 0.0]
    return _RUN.match(units[mark].form) is not None and after != sorted(after)


def _told_by_pronoun(first: Sequence[Unit], second: Sequence[Unit], found: Alignment) -> bool:
    """Whether who does it in the first note stands later in the second, with a pronoun in the place: "Ana taught him".

    It is a name, or the first note has a pronoun for whom it is done to.
    """
    known = words()
    ours, theirs = ({units[at].form for at in left} for units, left in zip((first, second), found.left, strict=True))
    said = [(i, j) for i, j, _ in found.pairs if first[i].weight > 0.0]
    if not said or known.doers & ours or not known.doers & theirs or known.done_to & theirs:
        return False
    place, its = said[0]
    moved = any(other < its for _, other in said[1:])
    return moved and bool(known.done_to & ours or (first[place].named and second[its].named))


def _only_one(left: Left, marks: Set[str]) -> bool:
    one, other = (any(unit.form in marks for unit in side) for side in left)
    return one != other


def _more(left: Left, marks: Set[str]) -> bool:
    """Whether more is left over than such marks, and what says little."""
    return any(unit.weight > 0.0 and unit.form not in marks for side in left for unit in side)

"""Packing under a budget: which of what was found is shown, and how much of each. Pure.

Three passes. Breadth: every kind of thing gets its share, so that a long thread leaves room for what is known. Then
what is left goes to what found no room, by priority. Then what was taken is shown at more length, the best first.
Within a kind the order is that of `SECTIONS`, then of the items: what stands further back is dropped first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, overload

from threefold.model.context import SECTIONS, Section
from threefold.text.tokens import count_tokens

Kind = Literal["memory", "thread", "board", "document", "turn", "extra"]
KIND_OF: Final[Mapping[Section, Kind]] = {
    "working": "memory", "session": "memory", "longterm": "memory", "organizational": "memory", "global": "memory",
    "thread": "thread", "board": "board", "document": "document", "turn": "turn", "extra": "extra",
}  # fmt: skip
SHARES: Final[Mapping[Kind, float]] = {
    "memory": 0.3, "thread": 0.3, "board": 0.2, "document": 0.2, "turn": 0.2, "extra": 0.2,
}  # fmt: skip
"""What each kind is given at first, of those that found something; what it does not need goes to the others."""


class Forms(Sequence[str]):
    """A text at several lengths, from the shortest that makes sense to the whole; each made when it is looked at."""

    def __init__(self, *makers: Callable[[], str]) -> None:
        self._makers = makers
        self._made: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._makers)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number = range(len(self))[index]
        if number not in self._made:
            self._made[number] = self._makers[number]()
        return self._made[number]


@dataclass(frozen=True, slots=True)
class Item:
    """Something that may be shown. `forms` are its text from the shortest that makes sense to the whole.

    `head` are the parts of the line before the text, each a name that may be foreign; `because` is why it was found.
    `said` is what tells whether two say the same: the text that matched.
    With `joined` it is only taken where all of its section before it were: messages of a thread have no gaps. `place`
    is where it stands in its section when that is shown.
    """

    section: Section
    ref: str
    head: tuple[str, ...]
    forms: Sequence[str]
    said: str = ""
    because: str = ""
    score: float | None = None
    joined: bool = False
    place: int = 0
    about: Mapping[str, Any] = field(default_factory=dict)


class Taken(NamedTuple):
    """An item and the number of the form in which it is shown."""

    item: Item
    form: int


class Packed(NamedTuple):
    """What is shown, by priority, and what found no room with the tokens that it would have taken."""

    taken: tuple[Taken, ...]
    left: tuple[tuple[Item, int], ...]


# How an item in a form is written, to be counted.
Written = Callable[[Item, int], str]


# The tokens of items in their forms that were counted, by the item's identity and the form.
Costs = dict[tuple[int, int], int]


def pack(
    items: Sequence[Item], room: int, written: Written, headings: Mapping[Section, int], costs: Costs | None = None
) -> Packed:
    """Choose from `items` what goes into `room` tokens.

    `headings` are the tokens that a section's first item costs. `costs` keeps what was counted, for the same items to
    be packed again.
    """
    order = sorted(items, key=lambda item: SECTIONS.index(item.section))
    packing = _Packing(room, written, headings, order, {} if costs is None else costs)
    shares = {kind: SHARES[kind] for kind in dict.fromkeys(KIND_OF[item.section] for item in order)}
    whole = sum(shares.values())
    for kind, share in shares.items():
        packing.take(kind, int(room * share / whole))
    for kind in shares:
        packing.take(kind, room)
    packing.lengthen()
    return packing.result()


class _Packing:
    """The room that is left while items are taken."""

    def __init__(
        self, room: int, written: Written, headings: Mapping[Section, int], order: Sequence[Item], costs: Costs
    ) -> None:
        self._room, self._written, self._headings, self._order = room, written, headings, order
        self._costs = costs
        self._forms: dict[int, int] = {}
        self._spent: dict[Kind, int] = {}
        self._sections: set[Section] = set()

    def take(self, kind: Kind, most: int) -> None:
        """Take what fits of a kind, in order, until it has spent so many tokens.

        Where something found no room, nothing of a lower layer takes what is left: lower layers go first.
        """
        missed: Section | None = None
        for number, item in enumerate(self._order):
            if KIND_OF[item.section] != kind or number in self._forms or self._behind(item, missed):
                continue
            heading = 0 if item.section in self._sections else self._headings[item.section]
            cost, spent = self._cost(number, 0) + heading, self._spent.get(kind, 0)
            if cost <= self._room and spent + cost <= most:
                self._forms[number] = 0
                self._sections.add(item.section)
                self._spent[kind] = spent + cost
                self._room -= cost
            else:
                missed = missed or item.section

    @staticmethod
    def _behind(item: Item, missed: Section | None) -> bool:
        """Whether an item has to wait for one that found no room."""
        return missed is not None and (item.joined or item.section != missed)

    def lengthen(self) -> None:
        """Show what was taken at more length, the first of each kind as whole as there is room."""
        for number in sorted(self._forms):
            item = self._order[number]
            for form in range(1, len(item.forms)):
                more = self._cost(number, form) - self._cost(number, self._forms[number])
                if more > self._room:
                    break
                self._forms[number] = form
                self._room -= more

    def result(self) -> Packed:
        taken = tuple(Taken(self._order[number], form) for number, form in sorted(self._forms.items()))
        left = [(item, self._cost(n, 0)) for n, item in enumerate(self._order) if n not in self._forms]
        return Packed(taken, tuple(left))

    def _cost(self, number: int, form: int) -> int:
        item = self._order[number]
        key = id(item), form
        if key not in self._costs:
            self._costs[key] = count_tokens(self._written(item, form))
        return self._costs[key]

"""What may belong into a context: a few reads that do not depend on each other, made into items for packing.

What answers the goal less likely than the gate is left out: for an agent, nothing is better than noise. What is at hand
(working, session), pinned or salient is there whatever the goal is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Final, Protocol

from threefold.context.packing import Forms, Item
from threefold.errors import ThreefoldError
from threefold.model.context import Dropped, Why
from threefold.search.relevance import GATE
from threefold.text.excerpt import Matched
from threefold.text.tokens import count_tokens

# Tokens of the shorter forms in which a longer text is shown.
FORMS: Final = (48, 160)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is looked at. Numbers of things are the mission's (X1), but that of `turns`.

    Of a search whose `relevance` is below `gate` nothing is taken, of any other what is at least so `likely` to be what
    was asked for. Both are measured (docs/context.md).
    """

    working: int = 10
    session: int = 20
    longterm: int = 10
    organizational: int = 5
    global_: int = 5
    hotset: int = 8
    window: int = 50
    boards: int = 3
    cards: int = 50
    documents: int = 5
    turns: int = 30
    gate: float = GATE
    likely: float = 0.01


class Answers(Protocol):
    """What a search gave, of whatever realm."""

    @property
    def relevance(self) -> float:
        """How likely anything of it is to the point."""
        ...

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could not run."""
        ...


@dataclass
class Gathered:
    """What was found: items by priority within their section, and what was not to the point.

    `archived` is whether the thread is.
    """

    items: list[Item] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    archived: bool = False

    def add(self, found: Iterable[Item], least: float = 0.0) -> None:
        """Take items in; those with a score below the `least` only as dropped."""
        for item in found:
            if item.score is not None and item.score < least:
                self.drop(item, "irrelevant")
            else:
                self.items.append(item)

    def least(self, found: Answers, limits: Limits) -> float:
        """How likely what was found must be, to be taken; above 1 nothing is. What `found` warns of is told."""
        self.warnings += found.warnings
        try:
            return limits.likely if found.relevance >= limits.gate else 2.0
        except ThreefoldError as error:
            self.warnings.append(f"nothing is left out for being beside the point: {error}")
            return limits.likely

    def drop(self, item: Item, why: Why) -> None:
        """Tell that something is left out. What was never shown is not cut for that: its tokens are about so many."""
        tokens = max(1, min(len((item.said or item.forms[0]).encode()) // 4, FORMS[0]))
        self.dropped.append(Dropped(item.section, item.ref, why, tokens, item.score))

    def without_repetitions(self) -> None:
        """Keep the first of several things that say the same, by reference or by the text that matched: ten copies are
        one voice.
        """
        kept: list[Item] = []
        seen: set[str] = set()
        for item in self.items:
            # A message of the thread may find no room; who says the same elsewhere is heard then.
            said = {item.ref, *([_plain(item.said)] if item.said and not item.joined else [])}
            if item.joined or seen.isdisjoint(said):
                kept.append(item)
            else:
                self.drop(item, "duplicate")
            seen |= said
        self.items = kept


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def forms(text: str, terms: tuple[str, ...], sizes: tuple[int, ...] = FORMS) -> Forms:
    """A text at several lengths in tokens, the part that matches best, and at last whole."""
    cut = Cut(text, terms)
    # What is hardly longer is shown whole; a text has no more tokens than bytes.
    most = len(text.encode())
    shorter = [partial(cut.part, size) for size in sizes if most > 1.25 * size and cut.tokens > 1.25 * size]
    return Forms(*shorter, lambda: text)


class Cut:
    """A text of which parts are shown."""

    def __init__(self, text: str, terms: tuple[str, ...]) -> None:
        self.text, self._terms = text, terms

    @cached_property
    def tokens(self) -> int:
        """How many tokens it is."""
        return count_tokens(self.text)

    @cached_property
    def _matched(self) -> Matched:
        return Matched(self.text, self._terms)

    def part(self, size: int) -> str:
        """The part that matches best, of about `size` tokens, never much more."""
        if self.tokens <= size:
            return self.text
        length = len(self.text) * size // self.tokens
        found = self._matched.excerpt(length).text
        # Where tokens are shorter than in the rest of the text, less of it.
        while (more := count_tokens(found)) > 1.25 * size and length > 8:
            length = length * size // more
            found = self._matched.excerpt(length).text
        return found

"""Questions made of stored texts, and whether two stores answer them alike."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from threefold.model.candidates import Candidates
from threefold.model.query import ListName, Query
from threefold.model.rows import RowKey
from threefold.model.scope import Scope
from threefold.ports import Store

_MAX_WORDS, _MAX_SIZE = 5, 80


class Questions:
    """A random sample of phrases, the same for the same texts: every offered text has the same chance."""

    def __init__(self, size: int, seed: int = 0) -> None:
        self._size, self._offered = size, 0
        self._random = random.Random(seed)  # noqa: S311 - a sample, not a secret
        self._kept: list[tuple[Scope, str]] = []

    def offer(self, scope: Scope, text: str) -> None:
        """A text of which a phrase may be asked."""
        self._offered += 1
        place = len(self._kept) if len(self._kept) < self._size else self._random.randrange(self._offered)
        if place < self._size and (phrase := self._phrase(text)):
            self._kept[place : place + 1] = [(scope, phrase)]

    def _phrase(self, text: str) -> str:
        words = text[: 100 * _MAX_SIZE].split()
        start = self._random.randrange(len(words)) if words else 0
        return " ".join(words[start : start + self._random.randint(1, _MAX_WORDS)])[:_MAX_SIZE]

    def __iter__(self) -> Iterator[tuple[Scope, str]]:
        return iter(self._kept)


def answers_differ(query: Query, one: Store, other: Store, tolerance: float) -> str | None:
    """What differs between the candidate lists of two stores, or None.

    Scores as near as `tolerance`, relative to the best of their list, may change places. What ranking makes of the
    lists is the same program for both.
    """
    left, right = one.candidates(query), other.candidates(query)
    for name in query.lists:
        here, there = _scores(left, name), _scores(right, name)
        for mine, others, where in ((here, there, "target"), (there, here, "source")):
            if unlike := _unlike(mine, others, query.depth, tolerance, where):
                return f"in the {name} list, {unlike}"
    return None


def _scores(found: Candidates, name: ListName) -> dict[RowKey, float]:
    return {found.rows.key(number): score for number, score in found.lists.get(name, ())}


def _unlike(
    one: Mapping[RowKey, float], other: Mapping[RowKey, float], depth: int, tolerance: float, where: str
) -> str | None:
    """Both are cut at the same number of rows: of those near the cut, either may have others."""
    cut = min(other.values(), default=0.0) if len(other) >= depth else 0.0
    near = tolerance * max(1.0, max(one.values(), default=0.0))
    for key, score in one.items():
        there = other.get(key)
        if abs((min(score, cut) if there is None else there) - score) > near:
            says = "not among the rows" if there is None else f"there with score {there:.5f}"
            place = f"row {key.seq} of turn {key.turn!r} of {key.conversation!r}"
            return f"{place} has score {score:.5f} and is {says} in the {where}"
    return None

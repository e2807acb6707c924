"""Questions made of stored texts, and whether two stores answer them alike."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from threefold.model.scope import Scope
from threefold.realms.conv import Conv, Ports
from threefold.realms.conv.hits import Results

LIMIT = 20
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


def answers_differ(scope: Scope, question: str, one: Ports, other: Ports, tolerance: float) -> str | None:
    """What differs between the hits in two stores, or None. Scores as near as `tolerance` may change places."""
    left, right = (Conv(scope, ports).search(question, limit=LIMIT) for ports in (one, other))
    if left.mode != right.mode:
        return f"search was {left.mode} in the source, {right.mode} in the target"
    scores, scores_there = _scores(left), _scores(right)
    return _unlike(scores, scores_there, tolerance, "target") or _unlike(scores_there, scores, tolerance, "source")


def _scores(results: Results) -> dict[tuple[str, str], float]:
    return {(hit.conversation, hit.turn): hit.score for hit in results}


def _unlike(
    one: Mapping[tuple[str, str], float], other: Mapping[tuple[str, str], float], tolerance: float, where: str
) -> str | None:
    """Both are cut at the same number of hits: of those near the cut, either may have others."""
    cut = min(other.values(), default=0.0) if len(other) >= LIMIT else 0.0
    for (conversation, turn), score in one.items():
        if abs(other.get((conversation, turn), min(score, cut)) - score) > tolerance:
            there = other.get((conversation, turn))
            says = "not among the hits" if there is None else f"there with score {there:.5f}"
            return f"turn {turn!r} of {conversation!r} has score {score:.5f} and is {says} in the {where}"
    return None

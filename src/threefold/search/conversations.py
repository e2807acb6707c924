"""The score of a conversation from those of its turns. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice


def either(likely: Iterable[float]) -> float:
    """How likely it is that at least one turn is what was asked for, were they independent: 1 − Π(1 − p).

    Added up turn by turn, so that the least likelihoods are not lost beside 1. Never below that of any turn.
    """
    told = 0.0
    for each in likely:
        told += each * (1.0 - told)
    return told


def blended(scores: Iterable[float], rest: float = 0.5, counted: int = 3) -> float:
    """Of scores that are no likelihoods, best first: the best, plus `rest` of the next, plus `rest`² of the third."""
    return sum(score * rest**place for place, score in enumerate(islice(scores, counted)))

"""The second stage: a mix of normalised scores, smoothed over neighbours in the conversation. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from threefold.model.query import Candidates


@dataclass(frozen=True, slots=True)
class Refinement:
    """Constants of the second stage, measured on development data (docs/benchmarks.md).

    A row's score is `lexical` · its BM25 over the best of the list + `semantic` · its cosine over the best + `trigram`
    likewise; plus `previous` and `following` of the neighbours' scores; rows under `short` words count less.
    """

    lexical: float = 0.55
    semantic: float = 0.45
    trigram: float = 0.3
    previous: float = 0.3
    following: float = 0.2
    short: int = 20
    shortest: float = 0.7


def refine(found: Candidates, settings: Refinement) -> list[float]:
    """The refined score of every candidate, in the order of `found.rows`."""
    mixed = [0.0] * len(found.rows)
    for name, weight in (("lexical", settings.lexical), ("semantic", settings.semantic), ("trigram", settings.trigram)):
        hits = found.lists.get(name, ())  # type: ignore[call-overload]
        best = max((score for _, score in hits), default=0.0)
        for index, score in hits:
            mixed[index] += weight * score / best if best > 0 else 0.0
    return _smoothed(found, mixed, settings)


def _smoothed(found: Candidates, mixed: Sequence[float], settings: Refinement) -> list[float]:
    place = {(row.key.conversation, row.position): i for i, row in enumerate(found.rows)}
    refined = []
    for row, score in zip(found.rows, mixed, strict=True):
        before = place.get((row.key.conversation, row.position - 1))
        after = place.get((row.key.conversation, row.position + 1))
        total = score
        total += settings.previous * mixed[before] if before is not None else 0.0
        total += settings.following * mixed[after] if after is not None else 0.0
        share = min(1.0, row.words / settings.short)
        refined.append(total * (settings.shortest + (1 - settings.shortest) * share))
    return refined

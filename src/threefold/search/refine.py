"""The second stage: a mix of normalised scores, read in the context of the conversation. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from threefold.model.query import Candidate, Candidates, ListName


@dataclass(frozen=True, slots=True)
class Refinement:
    """Constants of the second stage, chosen on development data (docs/benchmarks.md).

    Each list's scores are scaled to its best one and mixed by weight. Lexical scores are first smoothed: a row gets
    `previous` and `following` of what its neighbours in the conversation scored, for words of a question often stand
    in the message before the answer. A row gains `conversation` times the best mix of its conversation. Rows under
    `short` terms count less, down to `shortest` for an empty one.
    """

    lexical: float = 0.5
    semantic: float = 0.5
    trigram: float = 0.25
    previous: float = 0.2
    following: float = 0.15
    conversation: float = 0.5
    short: int = 30
    shortest: float = 0.5


def refine(found: Candidates, settings: Refinement, depth: int) -> list[float]:
    """The refined score of every candidate, in the order of `found.rows`; `depth` is how long a list may be."""
    lexical = _smoothed(found.rows, _scaled(found, "lexical", depth), settings)
    semantic = _scaled(found, "semantic", depth)
    trigram = _scaled(found, "trigram", depth)
    mixed = [
        settings.lexical * a + settings.semantic * b + settings.trigram * c
        for a, b, c in zip(lexical, semantic, trigram, strict=True)
    ]
    best: dict[str, float] = {}
    for row, score in zip(found.rows, mixed, strict=True):
        best[row.key.conversation] = max(best.get(row.key.conversation, 0.0), score)
    return [
        (score + settings.conversation * best[row.key.conversation]) * _length_factor(row, settings)
        for row, score in zip(found.rows, mixed, strict=True)
    ]


def _scaled(found: Candidates, name: ListName, depth: int) -> list[float]:
    """Scores of one list over its best, 0 for rows that it does not have.

    A list that was cut at `depth` says only that the rows it left out score at most its last entry. So that entry is
    the zero point: a list whose scores are all alike (a model that does not know the language) then decides nothing.
    """
    hits = found.lists.get(name, ())
    scaled = [0.0] * len(found.rows)
    if hits and hits[0][1] > 0:
        best = hits[0][1]
        floor = hits[-1][1] if len(hits) >= depth else 0.0
        for index, score in hits:
            scaled[index] = (score - floor) / best
    return scaled


def _smoothed(rows: Sequence[Candidate], scores: Sequence[float], settings: Refinement) -> list[float]:
    place = {(row.key.conversation, row.position): i for i, row in enumerate(rows)}
    smoothed = []
    for row, score in zip(rows, scores, strict=True):
        before = place.get((row.key.conversation, row.position - 1))
        after = place.get((row.key.conversation, row.position + 1))
        gain = settings.previous * scores[before] if before is not None else 0.0
        gain += settings.following * scores[after] if after is not None else 0.0
        smoothed.append(score + gain)
    return smoothed


def _length_factor(row: Candidate, settings: Refinement) -> float:
    share = min(1.0, row.words / settings.short) if settings.short else 1.0
    return settings.shortest + (1.0 - settings.shortest) * share

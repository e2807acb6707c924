"""The second stage: a mix of normalised scores, read in the context of the conversation. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest

from threefold.model.query import Candidate, Candidates, ListName


@dataclass(frozen=True, slots=True)
class Refinement:
    """Constants of the second stage, chosen on development data (docs/benchmarks.md).

    Each list's scores are scaled to its best one and mixed by weight. A row gains from its neighbours in the
    conversation, `near` of those next to it and `far` of those two away: words of a question often stand in the
    message before the answer. Long rows neither need nor give that; beyond `context_words` terms the gain shrinks in
    proportion, on either side. From what stands within `reach` rows of its conversation a row gains `conversation`
    times the best mix and `topic` times the mean of the three best lexical scores. Rows under `short` terms count
    less, down to `shortest` for an empty one.
    """

    lexical: float = 0.5
    semantic: float = 0.5
    trigram: float = 0.25
    near: float = 0.3
    far: float = 0.15
    context_words: int = 40
    conversation: float = 0.3
    topic: float = 0.2
    reach: int = 20
    short: int = 30
    shortest: float = 0.5


def refine(found: Candidates, settings: Refinement, depth: int) -> list[float]:
    """The refined score of every candidate, in the order of `found.rows`; `depth` is how long a list may be."""
    lexical = _scaled(found, "lexical", depth)
    semantic = _scaled(found, "semantic", depth)
    trigram = _scaled(found, "trigram", depth)
    mixed = [
        settings.lexical * a + settings.semantic * b + settings.trigram * c
        for a, b, c in zip(lexical, semantic, trigram, strict=True)
    ]
    context = _context(found.rows, mixed, settings)
    best = _nearby(found.rows, mixed, 1, settings.reach)
    topic = _nearby(found.rows, lexical, 3, settings.reach)
    return [
        (mixed[i] + context[i] + settings.conversation * best[i] + settings.topic * topic[i])
        * _length_factor(row, settings)
        for i, row in enumerate(found.rows)
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


def _context(rows: Sequence[Candidate], scores: Sequence[float], settings: Refinement) -> list[float]:
    """What each row gains from its neighbours."""
    voices, place = [], {}
    for i, (row, score) in enumerate(zip(rows, scores, strict=True)):
        voices.append(score * _gate(row, settings))
        place[row.key.conversation, row.position] = i
    gains = []
    for row in rows:
        gain = 0.0
        for distance, weight in ((-2, settings.far), (-1, settings.near), (1, settings.near), (2, settings.far)):
            neighbour = place.get((row.key.conversation, row.position + distance))
            if neighbour is not None:
                gain += weight * voices[neighbour]
        gains.append(gain * _gate(row, settings))
    return gains


def _gate(row: Candidate, settings: Refinement) -> float:
    return min(1.0, settings.context_words / row.words) if row.words else 1.0


def _nearby(rows: Sequence[Candidate], scores: Sequence[float], counted: int, reach: int) -> list[float]:
    """For each row, the mean of the best `counted` scores within `reach` positions of its conversation.

    Missing ones count as 0. A conversation may be a stream of thousands of rows: only what is near is its context.
    """
    order: dict[str, list[int]] = {}
    for i in sorted(range(len(rows)), key=lambda i: rows[i].position):
        order.setdefault(rows[i].key.conversation, []).append(i)
    means = [0.0] * len(rows)
    for members in order.values():
        start = end = 0
        for i in members:
            while rows[members[start]].position < rows[i].position - reach:
                start += 1
            while end < len(members) and rows[members[end]].position <= rows[i].position + reach:
                end += 1
            means[i] = sum(nlargest(counted, [scores[k] for k in members[start:end]])) / counted
    return means


def _length_factor(row: Candidate, settings: Refinement) -> float:
    share = min(1.0, row.words / settings.short) if settings.short else 1.0
    return settings.shortest + (1.0 - settings.shortest) * share

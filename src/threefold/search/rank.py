"""Ranking: candidate lists become one order of rows, then of turns or conversations. Pure.

First stage: weighted reciprocal rank fusion (Cormack, Clarke, Büttcher 2009). Second stage (`Ranking.refine`): a mix of
normalised scores, read in the context of the conversation. Then the recency lift. Every step is in the `Ranked` value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from threefold.errors import InvalidInput
from threefold.model.query import LISTS, Candidate, Candidates, ListName, Query
from threefold.search.refine import Refinement, refine


@dataclass(frozen=True, slots=True)
class Ranking:
    """How candidates are ranked; the defaults were chosen on development data (docs/benchmarks.md).

    `weights` and `k` are those of reciprocal rank fusion: a row's fused score is the sum over lists of
    weight / (k + rank), rank from 1. `refine` is the second stage, None switches it off. The recency lift multiplies
    by 1 + `recency` · 2^(−age / `half_life`); `recency=0` switches it off. `depth` is the length of each list.
    """

    k: float = 10.0
    weights: Mapping[ListName, float] = field(default_factory=lambda: {"lexical": 2.0, "trigram": 1.0, "semantic": 1.0})
    refine: Refinement | None = Refinement()
    recency: float = 0.25
    half_life: timedelta = timedelta(days=7)
    depth: int = 200

    def __post_init__(self) -> None:
        if not all(value >= 0 for value in (self.k, self.recency, *self.weights.values())):
            raise InvalidInput("ranking: k, weights and recency must be numbers that are not negative")
        if unknown := set(self.weights) - set(LISTS):
            raise InvalidInput(f"ranking: weights are for {', '.join(LISTS)}, not {', '.join(map(str, unknown))}")
        if self.half_life <= timedelta(0):
            raise InvalidInput("ranking: half_life must be a positive time")
        if self.depth < 1:
            raise InvalidInput("ranking: depth must be at least 1")


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its score and how it came about.

    `ranks` and `scores` are those in each list that has the row; `fused` the score of rank fusion; `refined` that of
    the second stage, None where it is off; `lift` the recency factor; `score` the final one, higher is better.
    """

    row: Candidate
    ranks: Mapping[ListName, int]
    scores: Mapping[ListName, float]
    fused: float
    refined: float | None
    lift: float
    score: float

    def explain(self) -> dict[str, Any]:
        """The steps as plain JSON values."""
        return {
            "lists": {name: {"rank": rank, "score": self.scores[name]} for name, rank in self.ranks.items()},
            "fused": self.fused,
            "refined": self.refined,
            "recency_lift": self.lift,
        }


def rank(found: Candidates, query: Query, ranking: Ranking) -> list[Ranked]:
    """All candidates, best first; equal scores in order of newest, then key, so that the order is always the same."""
    ranks, scores = _placings(found)
    fused = [sum(ranking.weights.get(name, 1.0) / (ranking.k + r) for name, r in placed.items()) for placed in ranks]
    refined = None if ranking.refine is None else refine(found, ranking.refine, query.depth)
    entries = []
    for i, row in enumerate(found.rows):
        lift = recency_lift(row.at, query.where.now, ranking)
        base = fused[i] if refined is None else refined[i]
        step = None if refined is None else refined[i]
        entries.append(Ranked(row, ranks[i], scores[i], fused[i], step, lift, base * lift))
    entries.sort(key=lambda e: (-e.score, -e.row.at.timestamp(), e.row.key.conversation, e.row.key.turn, e.row.key.seq))
    return entries


def _placings(found: Candidates) -> tuple[list[dict[ListName, int]], list[dict[ListName, float]]]:
    """For every row, its rank (from 1) and score in each list that has it."""
    ranks: list[dict[ListName, int]] = [{} for _ in found.rows]
    scores: list[dict[ListName, float]] = [{} for _ in found.rows]
    for name, hits in found.lists.items():
        for position, (index, score) in enumerate(hits, 1):
            ranks[index][name] = position
            scores[index][name] = score
    return ranks, scores


def recency_lift(at: datetime, now: datetime, ranking: Ranking) -> float:
    """1 + recency · 2^(−age / half-life); what is dated in the future counts as new."""
    half_lives = max(0.0, (now - at) / ranking.half_life)
    return 1.0 + ranking.recency * math.exp2(-half_lives)


Turn = tuple[Ranked, list[Ranked]]
Group = tuple[float, list[Turn]]


def by_turn(ranked: Sequence[Ranked]) -> list[Group]:
    """One group for each turn, scored by its best row; with all its rows that were candidates."""
    turns: dict[tuple[str, str], list[Ranked]] = {}
    for entry in ranked:
        turns.setdefault((entry.row.key.conversation, entry.row.key.turn), []).append(entry)
    return [(rows[0].score, [(rows[0], rows)]) for rows in turns.values()]


def by_conversation(turns: Sequence[Group], rest: float = 0.5, counted: int = 3) -> list[Group]:
    """One group for each conversation: the best turn's score, plus `rest` of the next and `rest`² of the one after."""
    groups: dict[str, list[Turn]] = {}
    for _, members in turns:
        for turn in members:
            groups.setdefault(turn[0].row.key.conversation, []).append(turn)
    scored = [(_blend([best.score for best, _ in found[:counted]], rest), found) for found in groups.values()]
    scored.sort(key=lambda group: (-group[0], group[1][0][0].row.key.conversation))
    return scored


def _blend(scores: Sequence[float], rest: float) -> float:
    return sum(score * rest**place for place, score in enumerate(scores))

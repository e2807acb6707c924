"""Ranking: candidate lists become one order of rows, then of turns or conversations. Pure.

First stage: weighted reciprocal rank fusion (Cormack, Clarke, Büttcher 2009). Second stage (`Ranking.learned`): a
ranker that reads scores, words, authors and times in their conversation. Then the recency lift. `Ranked` has each step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from threefold.errors import InvalidInput
from threefold.model.query import LISTS, TOLD, Candidate, Candidates, ListName, Query
from threefold.search.conversations import blended, either
from threefold.search.features import FEATURES, Listed, features
from threefold.search.ranker import Ranker, load_ranker

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from threefold.text.dates import Period

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

# Scores of a list that are this near, relative to its best, are one score that was added up in another order.
EQUAL = 1e-6
# The second stage looks at no more rows of a list.
MAX_DEPTH = 10_000


@dataclass(frozen=True, slots=True)
class Ranking:
    """How candidates are ranked; the defaults were chosen on development data (docs/benchmarks.md).

    `weights` and `k` are those of reciprocal rank fusion: a row's fused score is the sum over lists of
    weight / (k + rank), rank from 1; equal scores share a rank. `learned` is the second stage: the first `depth` rows
    of each list are ordered by how likely each is to be what is asked for, a number from 0 to 1 that means much the
    same in every store (docs/search.md). With `learned=False` the fused score is all. The recency lift multiplies the
    fused score, or the odds of that likelihood, by 1 + `recency` · 2^(−age / `half_life`); `recency=0` switches it off.
    What stands deeper in all lists follows, by fused score: that up to twice `depth`, up to four times, and so on.
    """

    k: float = 10.0
    weights: Mapping[ListName, float] = field(default_factory=lambda: {"lexical": 2.0, "trigram": 1.0, "semantic": 1.0})
    learned: bool = True
    recency: float = 0.25
    half_life: timedelta = timedelta(days=7)
    depth: int = 200

    def __post_init__(self) -> None:
        if not all(value >= 0 and math.isfinite(value) for value in (self.k, self.recency, *self.weights.values())):
            raise InvalidInput("ranking: k, weights and recency must be finite numbers that are not negative")
        if unknown := set(self.weights) - set(LISTS):
            raise InvalidInput(f"ranking: weights are for {', '.join(LISTS)}, not {', '.join(map(str, unknown))}")
        if self.half_life <= timedelta(0):
            raise InvalidInput("ranking: half_life must be a positive time")
        if not isinstance(self.depth, int) or not 1 <= self.depth <= MAX_DEPTH:
            raise InvalidInput(f"ranking: depth must be a whole number from 1 to {MAX_DEPTH}")


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its score and how it came about.

    `ranks` and `scores` are those in each list that has the row; `fused` the score of rank fusion; `learned` what the
    second stage makes of it, None where it is off or the row stands too deep, and `seen` what it looked at; `lift` the
    recency factor; `score` the final one, higher is better.
    """

    row: Candidate
    ranks: Mapping[ListName, int]
    scores: Mapping[ListName, float]
    fused: float
    learned: float | None
    seen: Mapping[str, float]
    lift: float
    score: float

    def explain(self) -> dict[str, Any]:
        """The steps as plain JSON values."""
        return {
            "lists": {name: {"rank": rank, "score": self.scores[name]} for name, rank in self.ranks.items()},
            "fused": self.fused,
            "learned": self.learned,
            "features": dict(self.seen),
            "recency_lift": self.lift,
        }


@dataclass(frozen=True, slots=True)
class Placing:
    """All candidates in order. `order` has row numbers, best first; the other columns belong to the row numbers.

    `tier` says how deep the row stands where it stands best: 0 within `Ranking.depth`, 1 within twice that, 2 within
    four times. `head` numbers the rows that the second stage ordered, `likely` and `seen` are what it made of them and
    looked at.
    """

    rows: Sequence[Candidate]
    order: Sequence[int]
    tier: Sequence[int]
    score: Sequence[float]
    fused: Sequence[float]
    lift: Sequence[float]
    listed: Mapping[ListName, Listed]
    head: Sequence[int] = ()
    likely: Floats | None = None
    seen: Floats | None = None

    def entry(self, number: int) -> Ranked:
        """One row with how its score came about."""
        ranks = {name: int(found.ranks[number]) for name, found in self.listed.items() if found.ranks[number]}
        scores = {name: float(self.listed[name].scores[number]) for name in ranks}
        learned, seen = None, {}
        if self.likely is not None and self.seen is not None and number in self.head:
            place = self.head.index(number)
            learned, seen = float(self.likely[place]), dict(zip(FEATURES, self.seen[place].tolist(), strict=True))
        row, fused, lift, score = self.rows[number], self.fused[number], self.lift[number], self.score[number]
        return Ranked(row, ranks, scores, fused, learned, seen, lift, score)


def rank(found: Candidates, query: Query, ranking: Ranking, periods: Sequence[Period] = ()) -> Placing:
    """Order all candidates, best first; `periods` are the times that the question names.

    Equal scores come in order of the fused score, newest, then key, so that the order is always the same. Longer lists
    only add to its end, so that pages fit together: whole tiers, where `query.depth` is `ranking.depth` doubled some
    times.
    """
    listed = {name: _listed(hits, len(found.rows)) for name, hits in found.lists.items()}
    tier, fused = _fused(found.lists, listed, len(found.rows), ranking)
    lift = recency_lifts([row.at for row in found.rows], query.where.now, ranking)
    head: list[int] = []
    likely = seen = None
    score = fused * lift
    if ranking.learned and found.rows:
        head, seen = observed(found, query, ranking, periods)
        likely = ranker().likely(seen)
        score[head] = lifted(likely, lift[head])
    _place_below(score, tier, ranking)
    columns = tier.tolist(), score.tolist(), fused.tolist()
    keys = [(t, -s, -f, -row.at.timestamp(), row.key) for t, s, f, row in zip(*columns, found.rows, strict=True)]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return Placing(found.rows, order, *columns, lift.tolist(), listed, head, likely, seen)


def depth_for(rows: int, ranking: Ranking) -> int:
    """How deep the lists of a question must be for at least so many rows: `ranking.depth` doubled some times."""
    return ranking.depth << max(0, (-(-rows // ranking.depth) - 1).bit_length())


def _listed(hits: Sequence[tuple[int, float]], rows: int) -> Listed:
    """A list as columns. Equal scores share a rank: which of them comes first says only how a store numbers rows."""
    import numpy as np

    scores, ranks = np.zeros(rows), np.zeros(rows, dtype=np.int64)
    if hits:
        numbers, values = [number for number, _ in hits], np.array([score for _, score in hits])
        lower = np.diff(values, prepend=np.inf) < -EQUAL * values[0]
        scores[numbers] = values
        ranks[numbers] = np.maximum.accumulate(np.where(lower, np.arange(1, len(hits) + 1), 1))
    return Listed(scores, ranks)


def _fused(
    lists: Mapping[ListName, Sequence[tuple[int, float]]],
    listed: Mapping[ListName, Listed],
    rows: int,
    ranking: Ranking,
) -> tuple[Ints, Floats]:
    """The tier of each row, and its fused score over the lists as deep as that tier."""
    import numpy as np

    tier, fused = np.full(rows, np.iinfo(np.int64).max), np.zeros(rows)
    for name, hits in lists.items():
        numbers = np.array([number for number, _ in hits], dtype=np.int64)
        # Beginning with 0 within `depth`: the number of bits of how many times that deep it stands.
        here = np.frexp(np.arange(len(hits)) // ranking.depth)[1]
        shares = ranking.weights.get(name, 1.0) / (ranking.k + listed[name].ranks[numbers])
        fused[numbers] = np.where(here < tier[numbers], 0.0, fused[numbers]) + np.where(
            here > tier[numbers], 0.0, shares
        )
        tier[numbers] = np.minimum(tier[numbers], here)
    return tier, fused


def observed(found: Candidates, query: Query, ranking: Ranking, periods: Sequence[Period]) -> tuple[list[int], Floats]:
    """The numbers of the rows that the second stage orders, and their features, as if the lists were no deeper."""
    first = {name: hits[: ranking.depth] for name, hits in found.lists.items()}
    # By key, so that the sums are the same to the last bit however the rows are numbered.
    head = sorted({number for hits in first.values() for number, _ in hits}, key=lambda number: found.rows[number].key)
    place = {number: i for i, number in enumerate(head)}
    # Corrected words are told by the trigram list alone, so a row that stands deeper there is not known to have them.
    lexical, trigram = ({number for number, _ in first.get(name, ())} for name in ("lexical", "trigram"))
    written = ~sum(1 << i for i, term in enumerate(query.terms[:TOLD]) if term in found.corrections)
    rows = [
        row if n in trigram else row._replace(having=row.having & written if n in lexical else 0)
        for n, row in ((n, found.rows[n]) for n in head)
    ]
    listed = {
        name: _listed([(place[number], score) for number, score in hits], len(head))._replace(
            cut=len(hits) >= ranking.depth
        )
        for name, hits in first.items()
    }
    return head, features(rows, listed, found.rarity, query, periods)


def lifted(likely: Floats, lift: Floats) -> Floats:
    """A likelihood whose odds are multiplied by the lift."""
    odds = likely / (1.0 - likely) * lift
    return odds / (1.0 + odds)


def _place_below(score: Floats, tier: Ints, ranking: Ranking) -> None:
    """Scale the fused scores of every tier but the first so that three together are below the least of the one before.

    Three is what `blended` adds up. By the most that a fused score can be, not by the best here.
    """
    import numpy as np

    most = sum(ranking.weights.get(name, 1.0) for name in LISTS) / (ranking.k + 1.0) * (1.0 + ranking.recency)
    for above, below in pairwise(np.unique(tier)):
        score[tier == below] *= 0.5 * score[tier == above].min() / max(most, 1e-300)


def recency_lifts(ats: Sequence[datetime], now: datetime, ranking: Ranking) -> Floats:
    """1 + recency · 2^(−age / half-life) of each; what is dated in the future counts as new."""
    import numpy as np

    ages = np.array([(now - at).total_seconds() for at in ats], dtype=np.float64) / ranking.half_life.total_seconds()
    return 1.0 + ranking.recency * np.exp2(-np.maximum(ages, 0.0))


Turn = Sequence[int]
Group = tuple[float, list[Turn]]


def by_turn(placing: Placing) -> list[Group]:
    """One group for each turn, scored by its best row; with the numbers of all its rows, best first."""
    turns: dict[tuple[str, str], list[int]] = {}
    for number in placing.order:
        key = placing.rows[number].key
        turns.setdefault((key.conversation, key.turn), []).append(number)
    return [(placing.score[numbers[0]], [numbers]) for numbers in turns.values()]


def by_conversation(placing: Placing, turns: Sequence[Group]) -> list[Group]:
    """One group for each conversation: how likely one of its turns is right; where that is not told, a blend.

    Turns of a deeper tier than the best one do not count: longer lists would add more of them.
    """
    groups: dict[str, list[Turn]] = {}
    for _, members in turns:
        for turn in members:
            groups.setdefault(placing.rows[turn[0]].key.conversation, []).append(turn)
    scored = []
    for conversation, found in groups.items():
        tier = placing.tier[found[0][0]]
        scores = (placing.score[turn[0]] for turn in found if placing.tier[turn[0]] == tier)
        score = blended(scores) if placing.likely is None or tier else either(scores)
        scored.append(((tier, -score, conversation), found))
    return [(-score, found) for (_, score, _), found in sorted(scored, key=lambda group: group[0])]


@cache
def ranker() -> Ranker:
    """The ranker that ships; read at the first search."""
    return load_ranker(Path(__file__).with_name("ranker.json"))

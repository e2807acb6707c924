"""Ranking: candidate lists become one order of rows, then of turns or conversations. Pure.

First stage: weighted reciprocal rank fusion (Cormack, Clarke, Büttcher 2009). Second stage (`Ranking.learned`): a
ranker that reads scores, words, authors and times in their conversation. Then the recency lift. `Ranked` has each step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from threefold.errors import InvalidInput
from threefold.model.candidates import Candidate, CandidateRows, Candidates, Hits
from threefold.model.query import LISTS, TOLD, ListName, Query
from threefold.model.times import to_micros
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


@dataclass(frozen=True, slots=True, eq=False)
class Placing:
    """All candidates in order. `order` has row numbers, best first; the other columns belong to the row numbers.

    `tier` says how deep the row stands where it stands best: 0 within `Ranking.depth`, 1 within twice that, 2 within
    four times. `head` numbers the rows that the second stage ordered, `likely` and `seen` are what it made of them and
    looked at.
    """

    rows: CandidateRows
    order: Ints
    tier: Ints
    score: Floats
    fused: Floats
    lift: Floats
    listed: Mapping[ListName, Listed]
    head: Ints
    likely: Floats | None = None
    seen: Floats | None = None

    def entry(self, number: int) -> Ranked:
        """One row with how its score came about."""
        ranks = {name: int(found.ranks[number]) for name, found in self.listed.items() if found.ranks[number]}
        scores = {name: float(self.listed[name].scores[number]) for name in ranks}
        learned, seen = None, {}
        place = (self.head == number).nonzero()[0]
        if self.likely is not None and self.seen is not None and len(place):
            learned = float(self.likely[place[0]])
            seen = dict(zip(FEATURES, self.seen[place[0]].tolist(), strict=True))
        fused, lift, score = float(self.fused[number]), float(self.lift[number]), float(self.score[number])
        return Ranked(self.rows[number], ranks, scores, fused, learned, seen, lift, score)


def rank(found: Candidates, query: Query, ranking: Ranking, periods: Sequence[Period] = ()) -> Placing:
    """Order all candidates, best first; `periods` are the times that the question names.

    Equal scores come in order of the fused score, newest, then conversation and position, so that the order is always
    the same. Longer lists only add to its end, so that pages fit together: whole tiers, where `query.depth` is
    `ranking.depth` doubled some times.
    """
    import numpy as np

    rows = found.rows
    listed = {name: _listed(hits, len(rows)) for name, hits in found.lists.items()}
    tier, fused = _fused(found.lists, listed, len(rows), ranking)
    lift = recency_lifts(rows.at, to_micros(query.where.now), ranking)
    place = in_place(rows)
    head = place[:0]
    likely = seen = None
    score = fused * lift
    if ranking.learned and len(rows):
        head, seen = observed(found, place, query, ranking, periods)
        likely = ranker().likely(seen)
        score[head] = lifted(likely, lift[head])
    _place_below(score, tier, ranking)
    order = place[np.lexsort((-rows.at[place], -fused[place], -score[place], tier[place]))]
    return Placing(rows, order, tier, score, fused, lift, listed, head, likely, seen)


def in_place(rows: CandidateRows) -> Ints:
    """The numbers of the rows by the name of their conversation and their position in it.

    In this order all sums are the same to the last bit, however a store numbers its rows.
    """
    import numpy as np

    codes, chat = np.unique(rows.conversation, return_inverse=True)
    names = [rows.conversations[code] for code in codes.tolist()]
    alphabetical = np.empty(len(names), dtype=np.int64)
    alphabetical[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    return np.lexsort((rows.position, alphabetical[chat]))


def depth_for(rows: int, ranking: Ranking) -> int:
    """How deep the lists of a question must be for at least so many rows: `ranking.depth` doubled some times."""
    return ranking.depth << max(0, (-(-rows // ranking.depth) - 1).bit_length())


def _listed(hits: Hits, rows: int) -> Listed:
    """A list as columns. Equal scores share a rank: which of them comes first says only how a store numbers rows."""
    import numpy as np

    scores, ranks = np.zeros(rows), np.zeros(rows, dtype=np.int64)
    if len(hits):
        lower = np.diff(hits.scores, prepend=np.inf) < -EQUAL * hits.scores[0]
        scores[hits.numbers] = hits.scores
        ranks[hits.numbers] = np.maximum.accumulate(np.where(lower, np.arange(1, len(hits) + 1), 1))
    return Listed(scores, ranks)


def _fused(
    lists: Mapping[ListName, Hits], listed: Mapping[ListName, Listed], rows: int, ranking: Ranking
) -> tuple[Ints, Floats]:
    """The tier of each row, and its fused score over the lists as deep as that tier."""
    import numpy as np

    tier, fused = np.full(rows, np.iinfo(np.int64).max), np.zeros(rows)
    for name, hits in lists.items():
        numbers = hits.numbers
        # Beginning with 0 within `depth`: the number of bits of how many times that deep it stands.
        here = np.frexp(np.arange(len(hits)) // ranking.depth)[1]
        shares = ranking.weights.get(name, 1.0) / (ranking.k + listed[name].ranks[numbers])
        fused[numbers] = np.where(here < tier[numbers], 0.0, fused[numbers]) + np.where(
            here > tier[numbers], 0.0, shares
        )
        tier[numbers] = np.minimum(tier[numbers], here)
    return tier, fused


def observed(
    found: Candidates, place: Ints, query: Query, ranking: Ranking, periods: Sequence[Period]
) -> tuple[Ints, Floats]:
    """The rows that the second stage orders, and their features, as if the lists were no deeper.

    They are the first `ranking.depth` of each list, in the order of `place`.
    """
    import numpy as np

    wanted = np.zeros(len(found.rows), dtype=np.bool_)
    for hits in found.lists.values():
        wanted[hits.first(ranking.depth).numbers] = True
    head = place[wanted[place]]
    there = np.zeros(len(found.rows), dtype=np.int64)
    there[head] = np.arange(len(head))
    listed, within = {}, {}
    for name, hits in found.lists.items():
        first = hits.first(ranking.depth)
        numbers = there[first.numbers]
        listed[name] = _listed(Hits(numbers, first.scores), len(head))._replace(cut=len(first) >= ranking.depth)
        within[name] = listed[name].ranks > 0
    # Corrected words are told by the trigram list alone, so a row that stands deeper there is not known to have them.
    written = ~sum(1 << i for i, term in enumerate(query.terms[:TOLD]) if term in found.corrections)
    having = found.rows.having[head]
    nowhere = np.zeros(len(head), dtype=np.bool_)
    in_lexical, in_trigram = within.get("lexical", nowhere), within.get("trigram", nowhere)
    told = np.where(in_trigram, having, np.where(in_lexical, having & written, 0))
    return head, features(found.rows.take(head, told), listed, found.rarity, query, periods)


def lifted(likely: Floats, lift: Floats) -> Floats:
    """A likelihood whose odds are multiplied by the lift."""
    odds = likely / (1.0 - likely) * lift
    return odds / (1.0 + odds)


def _place_below(score: Floats, tier: Ints, ranking: Ranking) -> None:
    """Scale the fused scores of every tier but the first so that three together are below the least of the one before.

    Three is what `blended` adds up. By the most that a fused score can be, not by the best here.
    """

    most = sum(ranking.weights.get(name, 1.0) for name in LISTS) / (ranking.k + 1.0) * (1.0 + ranking.recency)
    for above, below in pairwise(sorted(set(tier.tolist()))):
        score[tier == below] *= 0.5 * score[tier == above].min() / max(most, 1e-300)


def recency_lifts(at: Ints, now: int, ranking: Ranking) -> Floats:
    """1 + recency · 2^(−age / half-life) of each time (microseconds); what is dated in the future counts as new."""
    import numpy as np

    ages = (now - at) / (ranking.half_life / timedelta(microseconds=1))
    return 1.0 + ranking.recency * np.exp2(-np.maximum(ages, 0.0))


Turn = list[int]
Group = tuple[float, list[Turn]]


def by_turn(placing: Placing) -> list[Group]:
    """One group for each turn, scored by its best row; with the numbers of all its rows, best first."""
    order = placing.order
    turns: dict[int, Group] = {}
    columns = order.tolist(), placing.rows.turn[order].tolist(), placing.score[order].tolist()
    for number, turn, score in zip(*columns, strict=True):
        if turn in turns:
            turns[turn][1][0].append(number)
        else:
            turns[turn] = (score, [[number]])
    return list(turns.values())


def by_conversation(placing: Placing, turns: Sequence[Group]) -> list[Group]:
    """One group for each conversation: how likely one of its turns is right; where that is not told, a blend.

    Turns of a deeper tier than the best one do not count: longer lists would add more of them.
    """
    tiers, scores, codes = placing.tier.tolist(), placing.score.tolist(), placing.rows.conversation.tolist()
    groups: dict[int, list[Turn]] = {}
    for _, members in turns:
        for turn in members:
            groups.setdefault(codes[turn[0]], []).append(turn)
    scored = []
    for code, found in groups.items():
        tier = tiers[found[0][0]]
        counted = (scores[turn[0]] for turn in found if tiers[turn[0]] == tier)
        score = blended(counted) if placing.likely is None or tier else either(counted)
        scored.append(((tier, -score, placing.rows.conversations[code]), found))
    return [(-score, found) for (_, score, _), found in sorted(scored, key=lambda group: group[0])]


@cache
def ranker() -> Ranker:
    """The ranker that ships; read at the first search."""
    return load_ranker(Path(__file__).with_name("ranker.json"))

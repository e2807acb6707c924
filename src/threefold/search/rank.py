"""Ranking: candidate lists become one order of rows, then of turns or conversations. Pure.

First stage: weighted reciprocal rank fusion (Cormack, Clarke, Büttcher 2009). Second stage (`Ranking.learned`): a
ranker that reads scores, words, authors and times in their conversation. Then the recency lift. `Ranked` has each step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from threefold.errors import InvalidInput
from threefold.model.query import LISTS, TOLD, Candidate, Candidates, ListName, Query
from threefold.search.features import FEATURES, Listed, features
from threefold.search.ranker import Ranker, load_ranker

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from threefold.text.dates import Period

    Floats = npt.NDArray[np.float64]

# The lists that tell which words of the question a row has.
WORDS: tuple[ListName, ...] = ("lexical", "trigram")


@dataclass(frozen=True, slots=True)
class Ranking:
    """How candidates are ranked; the defaults were chosen on development data (docs/benchmarks.md).

    `weights` and `k` are those of reciprocal rank fusion: a row's fused score is the sum over lists of
    weight / (k + rank), rank from 1. `learned` is the second stage: the first `depth` rows of each list are ordered by
    how likely each is to be what is asked for, a number from 0 to 1 that means the same in every store; what stands
    deeper follows in order of its fused score. With `learned=False` the fused score is all. The recency lift multiplies
    the fused score, or the odds of that likelihood, by 1 + `recency` · 2^(−age / `half_life`); `recency=0` switches it
    off.
    """

    k: float = 10.0
    weights: Mapping[ListName, float] = field(default_factory=lambda: {"lexical": 2.0, "trigram": 1.0, "semantic": 1.0})
    learned: bool = True
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

    `head` numbers the rows that the second stage ordered, `likely` and `seen` are what it made of them and looked at.
    """

    rows: Sequence[Candidate]
    order: Sequence[int]
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

    Equal scores come in order of the fused score, newest, then key, so that the order is always the same. How the first
    rows stand does not depend on how long the lists are beyond `ranking.depth`.
    """
    listed = {name: _listed(hits, len(found.rows)) for name, hits in found.lists.items()}
    fused = _fused(listed, len(found.rows), ranking)
    lift = recency_lifts([row.at for row in found.rows], query.where.now, ranking)
    head: list[int] = []
    likely = seen = None
    score = fused * lift
    if ranking.learned and found.rows:
        head, seen = observed(found, query, ranking, periods)
        likely = ranker().likely(seen)
        score = _over_the_rest(score, head, lifted(likely, lift[head]))
    columns = score.tolist(), fused.tolist()
    keys = [(-s, -f, -row.at.timestamp(), row.key) for s, f, row in zip(*columns, found.rows, strict=True)]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return Placing(found.rows, order, *columns, lift.tolist(), listed, head, likely, seen)


def _listed(hits: Sequence[tuple[int, float]], rows: int) -> Listed:
    import numpy as np

    scores, ranks = np.zeros(rows), np.zeros(rows, dtype=np.int64)
    numbers = [number for number, _ in hits]
    scores[numbers] = [score for _, score in hits]
    ranks[numbers] = np.arange(1, len(hits) + 1)
    return Listed(scores, ranks)


def _fused(listed: Mapping[ListName, Listed], rows: int, ranking: Ranking) -> Floats:
    import numpy as np

    fused = np.zeros(rows)
    for name, column in listed.items():
        weight = ranking.weights.get(name, 1.0)
        fused += np.where(column.ranks > 0, weight / (ranking.k + column.ranks), 0.0)
    return fused


def observed(found: Candidates, query: Query, ranking: Ranking, periods: Sequence[Period]) -> tuple[list[int], Floats]:
    """The numbers of the rows that the second stage orders, and their features, as if the lists were no deeper."""
    first = {name: hits[: ranking.depth] for name, hits in found.lists.items()}
    head = sorted({number for hits in first.values() for number, _ in hits})
    place = {number: i for i, number in enumerate(head)}
    # Corrected words are told by the trigram list alone, so a row that stands deeper there is not known to have them.
    lexical, trigram = ({number for number, _ in first.get(name, ())} for name in WORDS)
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


def _over_the_rest(score: Floats, head: Sequence[int], likely: Floats) -> Floats:
    """The scores of all: those of the head, and below its least the others in their own order."""
    import numpy as np

    whole = score * (0.999 * likely.min() / max(score.max(), 1e-12))
    whole[head] = likely
    return np.asarray(whole)


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


def by_conversation(placing: Placing, turns: Sequence[Group], rest: float = 0.5, counted: int = 3) -> list[Group]:
    """One group for each conversation: the best turn's score, plus `rest` of the next and `rest`² of the one after."""
    groups: dict[str, list[Turn]] = {}
    for _, members in turns:
        for turn in members:
            groups.setdefault(placing.rows[turn[0]].key.conversation, []).append(turn)
    scored = [(_blend([placing.score[turn[0]] for turn in found[:counted]], rest), found) for found in groups.values()]
    scored.sort(key=lambda group: (-group[0], placing.rows[group[1][0][0]].key.conversation))
    return scored


def _blend(scores: Sequence[float], rest: float) -> float:
    return sum(score * rest**place for place, score in enumerate(scores))


@cache
def ranker() -> Ranker:
    """The ranker that ships; read at the first search."""
    return load_ranker(Path(__file__).with_name("ranker.json"))

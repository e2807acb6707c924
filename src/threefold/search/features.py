"""What the learned ranker looks at: a row of numbers for each candidate. Pure.

Scores of a list are scaled to its best one (`_scaled`). A row is read in its conversation: what its neighbours score
and which words of the question they have often tells more than its own, since an answer stands after its question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from threefold.model.query import TOLD, Candidate, ListName, Query
from threefold.model.times import to_micros
from threefold.search.bm25 import K1
from threefold.text.dates import Period, nearness_of
from threefold.text.terms import index_terms

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

# How far a row's surroundings reach, in rows of its conversation. A conversation may be a stream of thousands.
REACH: Final = 20
# A question without a time says nothing about when: between near (1) and far (0).
UNDATED: Final = 0.5
_AROUND: Final = (-2, -1, 1, 2)

FEATURES: Final = (
    "lexical", "lexical_rank", "strength", "semantic", "semantic_rank",
    *(f"{name}{distance:+d}" for name in ("lexical", "semantic") for distance in _AROUND),
    "lexical_around", "lexical_best_around", "semantic_around", "semantic_best_around",
    "share", "share_beside", "share_near", "share_since_before", "share_in_conversation",
    "rarest", "words_found", "known", "length", "usual_length", "user", "assistant", "named", "asks",
    "asks-1", "length-1", "named-1", "asks+1", "length+1", "named+1", "when",
)  # fmt: skip
"""The columns: scores, `lexical` of the list with corrected words where there is one; reciprocal ranks, 1 / (5 + rank);
the lexical score over the highest that the question allows; scores of the rows one and two away; the mean of the best
three and the best within `REACH`; the share of the question's rarity that the row has: alone, with the rows beside it,
with those within two, with the one before, with all of its conversation; its rarest word over the question's; the share
of words; the share of words that any row of the owner has; the length as log(1 + terms), also as the mean of all;
roles; whether its author is named in the question (1), or another one
is (−1); whether it ends with a question mark; the last three of the rows beside it, −1 (0 for `named`) where these are
no candidates; how near its time is to one that the question names."""


class Listed(NamedTuple):
    """One list as columns over the rows: score and rank, 0 where it has not the row; whether more would follow."""

    scores: Floats
    ranks: Ints
    cut: bool = False


class _Places(NamedTuple):
    """Rows in order of conversation and position: `order` sorts them, `chat` numbers conversations, both sorted."""

    order: Ints
    chat: Ints
    position: Ints


def features(
    rows: Sequence[Candidate],
    listed: Mapping[ListName, Listed],
    rarity: Sequence[float],
    query: Query,
    periods: Sequence[Period],
) -> Floats:
    """The features of every row: float64 of shape (rows, len(FEATURES))."""
    import numpy as np

    places = _places(rows)
    none = np.zeros(len(rows))
    # Where words were corrected, the list of their variants holds all that the lexical one does.
    words = listed.get("trigram")
    if words is None or not words.ranks.any():
        words = listed.get("lexical")
    vectors = listed.get("semantic")
    lexical, semantic = (none if (one := _scaled(found)) is None else one for found in (words, vectors))
    length = np.log1p(np.array([row.words for row in rows], dtype=np.float64))
    asks = np.array([row.asks for row in rows], dtype=np.float64)
    named = _named(rows, query)
    columns = [lexical, _nearness(words, none), _strength(words, rarity, none), semantic, _nearness(vectors, none)]
    columns += [_beside(places, scores, d, 0.0) for scores in (lexical, semantic) for d in _AROUND]
    columns += [*_around(places, lexical), *_around(places, semantic)]
    columns += _shares(rows, rarity, places)
    columns.append(np.full(len(rows), sum(each > 0 for each in rarity) / max(len(rarity), 1)))
    columns += [length, np.full(len(rows), length.mean() if len(rows) else 0.0)]
    columns += [np.array([row.role == role for row in rows], dtype=np.float64) for role in ("user", "assistant")]
    columns += [named, asks]
    for distance in (-1, 1):
        columns += [
            _beside(places, asks, distance, -1.0),
            _beside(places, length, distance, -1.0),
            _beside(places, named, distance, 0.0),
        ]
    columns.append(_when(rows, periods))
    return np.stack(columns, axis=1)


def _places(rows: Sequence[Candidate]) -> _Places:
    import numpy as np

    numbers: dict[str, int] = {}
    chat = np.array([numbers.setdefault(row.key.conversation, len(numbers)) for row in rows], dtype=np.int64)
    position = np.array([row.position for row in rows], dtype=np.int64)
    order = np.lexsort((position, chat))
    return _Places(order, chat[order], position[order])


def _scaled(listed: Listed | None) -> Floats | None:
    """Scores over the best one, 0 for rows that the list does not have.

    A list that was cut says only that the rows it left out score at most its last entry. So that entry is the zero
    point: a list whose scores are all alike (a model that does not know the language) then decides nothing.
    """
    import numpy as np

    if listed is None or not (best := float(listed.scores.max(initial=0.0))) > 0.0:
        return None
    has = listed.ranks > 0
    floor = listed.scores[has].min() if listed.cut else 0.0
    return np.where(has, (listed.scores - floor) / best, 0.0)


def _nearness(listed: Listed | None, none: Floats) -> Floats:
    import numpy as np

    return none if listed is None else np.where(listed.ranks > 0, 1.0 / (5.0 + listed.ranks), 0.0)


def _strength(listed: Listed | None, rarity: Sequence[float], none: Floats) -> Floats:
    """The score over that of a row that repeats every word of the question without end, at most 1."""
    import numpy as np

    highest = (K1 + 1) * sum(rarity)
    return none if listed is None or not highest else np.minimum(listed.scores, highest) / highest


def _beside(places: _Places, values: Floats, distance: int, missing: float) -> Floats:
    """The value of the row `distance` positions away in the conversation, `missing` where it is no candidate."""
    import numpy as np

    ordered = values[places.order]
    found = np.full(len(values), missing)
    # Positions are distinct: the row at a distance d stands at most d places away in the order.
    for step in range(1, abs(distance) + 1):
        here, there = (
            (slice(step, None), slice(None, -step)) if distance < 0 else (slice(None, -step), slice(step, None))
        )
        right = (places.chat[here] == places.chat[there]) & (places.position[here] + distance == places.position[there])
        found[here] = np.where(right, ordered[there], found[here])
    back = np.empty(len(values))
    back[places.order] = found
    return back


def _around(places: _Places, values: Floats) -> tuple[Floats, Floats]:
    """The mean of the best three, and the best, of the values within `REACH` positions; missing ones count as 0."""
    import numpy as np

    ordered = values[places.order]
    first, second, third = ordered.copy(), np.zeros(len(values)), np.zeros(len(values))
    for step in range(1, min(REACH, len(values) - 1) + 1):
        near = (places.chat[step:] == places.chat[:-step]) & (places.position[step:] - places.position[:-step] <= REACH)
        if not near.any():
            break
        for here, there in ((slice(step, None), slice(None, -step)), (slice(None, -step), slice(step, None))):
            more = np.where(near, ordered[there], 0.0)
            one, two, three = first[here], second[here], third[here]
            third[here] = np.maximum(three, np.minimum(two, more))
            second[here] = np.maximum(two, np.minimum(one, more))
            first[here] = np.maximum(one, more)
    mean, best = np.empty(len(values)), np.empty(len(values))
    mean[places.order], best[places.order] = (first + second + third) / 3.0, first
    return mean, best


def _shares(rows: Sequence[Candidate], rarity: Sequence[float], places: _Places) -> list[Floats]:
    """How much of the question the row has, alone and together with what stands around it."""
    import numpy as np

    weights = np.array(rarity[:TOLD], dtype=np.float64)
    total = weights.sum()
    if not total:
        return [np.zeros(len(rows)) for _ in range(7)]
    told = np.array([row.having for row in rows], dtype=np.int64)[places.order]
    before, after, near = _joined(places, told)
    chats = np.flatnonzero(np.diff(places.chat, prepend=-1))
    together = np.bitwise_or.reduceat(told, chats)[places.chat]
    bits = np.arange(len(weights))
    spread = [(each[:, None] >> bits & 1).astype(np.float64) for each in (told, before | after, near, before, together)]
    columns = [each @ weights / total for each in spread]
    columns += [(spread[0] * weights).max(axis=1) / weights.max(), spread[0].mean(axis=1)]
    back = []
    for column in columns:
        placed = np.empty(len(rows))
        placed[places.order] = column
        back.append(placed)
    return back


def _joined(places: _Places, told: Ints) -> tuple[Ints, Ints, Ints]:
    """The words of each row and the one before it; of it and the one after; of all within two. In places' order."""
    before, after, near = told.copy(), told.copy(), told.copy()
    for step in (1, 2):
        apart = places.position[step:] - places.position[:-step]
        same = places.chat[step:] == places.chat[:-step]
        for distance in (1, 2):
            linked = same & (apart == distance)
            earlier, later = told[:-step] * linked, told[step:] * linked
            near[step:] |= earlier
            near[:-step] |= later
            if distance == 1:
                before[step:] |= earlier
                after[:-step] |= later
    return before, after, near


def _named(rows: Sequence[Candidate], query: Query) -> Floats:
    """1 where the question names the row's author, −1 where it names another one, else 0."""
    import numpy as np

    asked = set(query.terms)
    authors = {row.author for row in rows if row.author}
    called = {author for author in authors if not asked.isdisjoint(index_terms(author))}
    values = {author: 1.0 if author in called else -1.0 for author in authors} if called else {}
    return np.array([values.get(row.author or "", 0.0) for row in rows])


def _when(rows: Sequence[Candidate], periods: Sequence[Period]) -> Floats:
    import numpy as np

    if not periods:
        return np.full(len(rows), UNDATED)
    return nearness_of(periods, np.array([to_micros(row.at) / 1e6 for row in rows]))

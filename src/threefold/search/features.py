"""What the learned ranker looks at: a row of numbers for each candidate. Pure.

Scores of a list are scaled to its best one (`_scaled`). A row is read in its conversation: what its neighbours score
and which words of the question they have often tells more than its own, since an answer stands after its question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from threefold.model.candidates import CandidateRows
from threefold.model.kinds import ROLES
from threefold.model.query import TOLD, ListName, Query
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


class _Neighbours(NamedTuple):
    """For each row the place of the one that stands `distance` positions away, by distance; the last row is nobody.

    `chat` numbers the conversations; rows of one stand together.
    """

    places: Mapping[int, Ints]
    chat: Ints


def features(
    rows: CandidateRows,
    listed: Mapping[ListName, Listed],
    rarity: Sequence[float],
    query: Query,
    periods: Sequence[Period],
) -> Floats:
    """The features of every row: float64 of shape (rows, len(FEATURES)).

    Rows of a conversation stand together, in order of their position.
    """
    import numpy as np

    beside = _neighbours(rows)
    none = np.zeros(len(rows))
    # Where words were corrected, the list of their variants holds all that the lexical one does.
    words = listed.get("trigram")
    if words is None or not words.ranks.any():
        words = listed.get("lexical")
    vectors = listed.get("semantic")
    lexical, semantic = (none if (one := _scaled(found)) is None else one for found in (words, vectors))
    length = np.log1p(rows.words.astype(np.float64))
    asks, named = rows.asks.astype(np.float64), _named(rows, query)
    user, assistant = ((rows.role == ROLES.index(role)).astype(np.float64) for role in ("user", "assistant"))
    columns = [lexical, _nearness(words, none), _strength(words, rarity, none), semantic, _nearness(vectors, none)]
    columns += [_there(beside.places[d], scores, 0.0) for scores in (lexical, semantic) for d in _AROUND]
    columns += _around(rows.position, beside.chat, np.stack((lexical, semantic)))
    columns += _shares(rows.having, rarity, beside)
    columns.append(np.full(len(rows), sum(each > 0 for each in rarity) / max(len(rarity), 1)))
    columns += [length, np.full(len(rows), length.mean() if len(rows) else 0.0), user, assistant, named, asks]
    for distance in (-1, 1):
        columns += [
            _there(beside.places[distance], values, missing)
            for values, missing in ((asks, -1.0), (length, -1.0), (named, 0.0))
        ]
    columns.append(_when(rows, periods))
    return np.stack(columns).T


def _neighbours(rows: CandidateRows) -> _Neighbours:
    import numpy as np

    count = len(rows)
    chat = np.cumsum(np.diff(rows.conversation, prepend=rows.conversation[:1]) != 0)
    places = {distance: np.full(count, count) for distance in _AROUND}
    # Positions are distinct: the row at a distance of d stands at most d places away.
    for step in (1, 2):
        apart = rows.position[step:] - rows.position[:-step]
        for distance in range(step, 3):
            earlier = np.flatnonzero((apart == distance) & (chat[step:] == chat[:-step]))
            places[distance][earlier] = earlier + step
            places[-distance][earlier + step] = earlier
    return _Neighbours(places, chat)


def _there(places: Ints, values: Floats, missing: float) -> Floats:
    """The values at these places, `missing` where nobody is."""
    import numpy as np

    there: Floats = np.append(values, missing)[places]
    return there


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


def _around(position: Ints, chat: Ints, values: Floats) -> list[Floats]:
    """For each row of `values`: the mean of the best three within `REACH` positions, and the best.

    Missing ones count as 0.
    """
    import numpy as np

    first, second, third = values.copy(), np.zeros_like(values), np.zeros_like(values)
    for step in range(1, min(REACH, len(position) - 1) + 1):
        near = (chat[step:] == chat[:-step]) & (position[step:] - position[:-step] <= REACH)
        if not near.any():
            break
        for here, there in ((slice(step, None), slice(None, -step)), (slice(None, -step), slice(step, None))):
            more = values[:, there] * near
            one, two, three = first[:, here], second[:, here], third[:, here]
            np.maximum(three, np.minimum(two, more), out=three)
            np.maximum(two, np.minimum(one, more), out=two)
            np.maximum(one, more, out=one)
    return [column for each in zip((first + second + third) / 3.0, first, strict=True) for column in each]


def _shares(having: Ints, rarity: Sequence[float], beside: _Neighbours) -> list[Floats]:
    """How much of the question the row has, alone and together with what stands around it."""
    import numpy as np

    weights = np.array(rarity[:TOLD], dtype=np.float64)
    total = weights.sum()
    if not total:
        return [np.zeros(len(having)) for _ in range(7)]
    # Nobody has no words.
    of = {distance: np.append(having, 0)[places] for distance, places in beside.places.items()}
    before, around = having | of[-1], having | of[-1] | of[1]
    near = around | of[-2] | of[2]
    starts = np.flatnonzero(np.diff(beside.chat, prepend=-1))
    together = np.bitwise_or.reduceat(having, starts)[beside.chat]
    has = np.stack((having, around, near, before, together))[:, :, None] >> np.arange(len(weights)) & 1
    spread = has * weights
    return [*(spread.sum(axis=2) / total), spread[0].max(axis=1) / weights.max(), has[0].mean(axis=1)]


def _named(rows: CandidateRows, query: Query) -> Floats:
    """1 where the question names the row's author, −1 where it names another one, else 0."""
    import numpy as np

    values = np.zeros(len(rows.authors))
    asked = set(query.terms)
    codes = np.unique(rows.author, return_index=True)[0]
    authors = {code: author for code in codes.tolist() if (author := rows.authors[code])}
    called = [code for code, author in authors.items() if not asked.isdisjoint(index_terms(author))]
    if called:
        values[list(authors)] = -1.0
        values[called] = 1.0
    named: Floats = values[rows.author]
    return named


def _when(rows: CandidateRows, periods: Sequence[Period]) -> Floats:
    import numpy as np

    if not periods:
        return np.full(len(rows), UNDATED)
    return nearness_of(periods, rows.at / 1e6)

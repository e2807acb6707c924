"""Asking the full-text index: BM25 whose rarity of words and average length are those of the owner's rows alone.

The index only tells where a term occurs. FTS5's own `bm25()` counts the rows of the whole file, so what others write
would move one's ranking; and it looks the length of each row up, which is in memory here.
"""

from __future__ import annotations

import math
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import apsw

from threefold.backends.sqlite.columns import Columns
from threefold.backends.sqlite.keys import Owner, term_key
from threefold.model.query import TOLD
from threefold.search.bm25 import BESIDE, K1, B
from threefold.search.spelling import Phrases
from threefold.text.terms import WILDCARD

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

# Behind every text that begins with what it is put behind.
_LAST = "\U0010ffff"


class Occurrences(NamedTuple):
    """Where a term occurs: places of rows, ascending, and how often it does in each."""

    places: Ints
    times: Ints


class Scored(NamedTuple):
    """For every row its score, 0 without any of the words, and the bits of the question's words that it has.

    `rarity` is that of those words of the question that occur, by number.
    """

    scores: Floats
    having: Ints
    rarity: dict[int, float]


class Words:
    """The full-text index of one owner as one snapshot sees it; what was asked is not asked again."""

    def __init__(self, db: apsw.Connection, owner: Owner, columns: Columns) -> None:
        self._db, self._owner, self._columns = db, owner, columns
        self._found: dict[str, Occurrences] = {}

    def occurrences(self, term: str) -> Occurrences:
        """Where a term occurs; one that ends in `*` stands for every term that begins so."""
        import numpy as np

        found = self._found.get(term)
        if found is None:
            key = term_key(self._owner.id, term.removesuffix(WILDCARD))
            if term.endswith(WILDCARD):
                docs = self._db.execute("SELECT doc FROM occurrences WHERE term >= ? AND term < ?", (key, key + _LAST))
            else:
                docs = self._db.execute("SELECT doc FROM occurrences WHERE term = ?", (key,))
            rows = np.fromiter(chain.from_iterable(docs), dtype=np.int64)
            if term.endswith(WILDCARD):  # of one term they are in order
                rows.sort()
            first = np.flatnonzero(np.diff(rows, prepend=-1))
            found = self._found[term] = Occurrences(self._columns.places(rows[first]), np.diff(first, append=len(rows)))
        return found

    def score(self, asked: Phrases) -> Scored:
        """Score the owner's rows by BM25 for phrases that stand for the words of a question."""
        import numpy as np

        rows = len(self._columns.ids)
        scores, having = np.zeros(rows), np.zeros(rows, dtype=np.int64)
        rarities: dict[int, float] = {}
        average = BESIDE + self._owner.words / max(rows, 1)
        for number, (phrase, stands_for) in enumerate(zip(asked.phrases, asked.stands_for, strict=True)):
            places, times = self.occurrences(phrase)
            if not len(places):
                continue
            rare = rarity(rows, len(places))
            length = (1 - B) + B / average * (self._columns.rows.words[places] + BESIDE)
            scores[places] += (K1 + 1) * rare * times / (times + K1 * length)
            if number < TOLD:
                having[places] |= stands_for
                rarities[number] = rare
        return Scored(scores, having, asked.rarity(rarities))


def rarity(rows: int, having: int) -> float:
    """Inverse document frequency, never negative: log(1 + (N − n + ½) / (n + ½)), as Lucene has it."""
    return math.log(1 + (rows - having + 0.5) / (having + 0.5))

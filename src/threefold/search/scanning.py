"""Candidates from rows that are at hand: the plainest statement of the three lists. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from threefold.model.candidates import Candidate, Candidates
from threefold.model.query import ListName, Query
from threefold.model.rows import RowKey
from threefold.search.bm25 import bm25
from threefold.search.spelling import MAX_CORRECTED, Phrases, correctable, corrections, phrases_of, rarity_of
from threefold.text.asking import ENDING, asks

if TYPE_CHECKING:
    import numpy as np

Hits = list[tuple[RowKey, float]]


class Scanned(NamedTuple):
    """A row: `seen` where the query's filter lets it through, `vector` (float32, (dimensions,)) where it has one."""

    key: RowKey
    role: str
    at: datetime
    position: int
    text: str
    terms: Sequence[str]
    author: str | None = None
    vector: np.ndarray | None = None
    seen: bool = True


@dataclass
class _Found:
    """Lists of rows, the bits of the question's words that rows have, and the words' rarity."""

    lists: dict[ListName, Hits] = field(default_factory=dict)
    having: dict[RowKey, int] = field(default_factory=dict)
    rarity: list[dict[int, float]] = field(default_factory=list)

    def take(
        self, name: ListName, asked: Phrases, terms: Mapping[RowKey, Sequence[str]], seen: set[RowKey], depth: int
    ) -> None:
        """Score a list of words over all rows; rows that may be seen are in it."""
        scored = bm25(asked.phrases, terms)
        self.lists[name] = _best(scored.scores, seen, depth)
        self.rarity.append(asked.rarity(scored.rarity))
        for key, _ in self.lists[name]:
            self.having[key] = self.having.get(key, 0) | asked.having(scored.having[key])


def scan(rows: Sequence[Scanned], query: Query, warnings: tuple[str, ...] = ()) -> Candidates:
    """Answer a query from all rows of its owner; its filter is `Scanned.seen`."""
    seen = {row.key for row in rows if row.seen}
    terms = {row.key: row.terms for row in rows}
    found = _Found()
    corrected: dict[str, tuple[tuple[str, float], ...]] = {}
    if "lexical" in query.lists:
        found.take("lexical", phrases_of(query.terms), terms, seen, query.depth)
    if "trigram" in query.lists:
        vocabulary = sorted({term for each in terms.values() for term in each})
        known = set(vocabulary)
        unknown = [term for term in correctable(query.terms) if term not in known][:MAX_CORRECTED]
        corrected = {word: corrections(word, vocabulary) for word in unknown}
        # Without a misspelling this list would be the lexical one again, and count twice.
        if any(corrected.values()) or "lexical" not in query.lists:
            found.take("trigram", phrases_of(query.terms, corrected), terms, seen, query.depth)
        else:
            found.lists["trigram"] = []
    if "semantic" in query.lists:
        asked = query.vector
        near = {} if asked is None else {r.key: float(r.vector @ asked) for r in rows if r.vector is not None}
        found.lists["semantic"] = _best(near, seen, query.depth)
    return _answer(rows, query, found, {w: v for w, v in corrected.items() if v}, warnings)


def _best(scores: Mapping[RowKey, float], seen: set[RowKey], depth: int) -> Hits:
    kept = [(key, score) for key, score in scores.items() if key in seen and score > 0]
    kept.sort(key=lambda item: (-item[1], item[0].conversation, item[0].turn, item[0].seq))
    return kept[:depth]


def _answer(
    rows: Sequence[Scanned],
    query: Query,
    found: _Found,
    corrected: Mapping[str, tuple[tuple[str, float], ...]],
    warnings: tuple[str, ...],
) -> Candidates:
    by_key = {row.key: row for row in rows}
    keys = list(dict.fromkeys(key for hits in found.lists.values() for key, _ in hits))
    index = {key: i for i, key in enumerate(keys)}
    candidates = [
        Candidate(
            key,
            row.role,
            row.at,
            row.position,
            len(row.terms),
            row.author,
            asks(row.text[-ENDING:]),
            found.having.get(key, 0),
        )
        for key, row in ((key, by_key[key]) for key in keys)
    ]
    lists = {name: [(index[key], score) for key, score in hits] for name, hits in found.lists.items()}
    return Candidates.of(candidates, lists, rarity_of(len(query.terms), *found.rarity), corrected, warnings)

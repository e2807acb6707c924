"""Candidates from what one owner has in memory: the plainest statement of the three lists."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from threefold.backends.owned import Kept, Owned
from threefold.model.candidates import Candidate, Candidates
from threefold.model.query import Filter, ListName, Query
from threefold.model.rows import Row, RowKey
from threefold.model.scope import Scope
from threefold.search.bm25 import bm25
from threefold.search.spelling import MAX_CORRECTED, Phrases, correctable, corrections, phrases_of, rarity_of
from threefold.text.asking import ENDING, asks

Hits = list[tuple[RowKey, float]]
Model = tuple[str, int]


@dataclass
class _Found:
    """Lists of rows, the bits of the question's words that rows have, and the words' rarity."""

    lists: dict[ListName, Hits] = field(default_factory=dict)
    having: dict[RowKey, int] = field(default_factory=dict)
    rarity: list[dict[int, float]] = field(default_factory=list)

    def take(
        self,
        name: ListName,
        asked: Phrases,
        terms: Mapping[RowKey, Sequence[str]],
        seen: Collection[RowKey],
        depth: int,
    ) -> None:
        """Score a list of words over all rows; rows that may be seen are in it."""
        scored = bm25(asked.phrases, terms)
        self.lists[name] = _best(scored.scores, seen, depth)
        self.rarity.append(asked.rarity(scored.rarity))
        for key, _ in self.lists[name]:
            self.having[key] = self.having.get(key, 0) | asked.having(scored.having[key])


def candidates(owner: Owned, query: Query, model: Model | None) -> Candidates:
    """Answer a query; `model` made the vectors."""
    seen = {key: (kept, row) for kept, row, key in owner.rows() if _passes(kept, row, query.where, query.scope)}
    terms = {key: row.terms for _, row, key in owner.rows()}
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
    warnings: tuple[str, ...] = ()
    if "semantic" in query.lists:
        scores, warnings = _semantic(owner, query, model)
        found.lists["semantic"] = _best(scores, seen, query.depth)
    return _answer(query, seen, found, {w: v for w, v in corrected.items() if v}, warnings)


def _semantic(owner: Owned, query: Query, model: Model | None) -> tuple[dict[RowKey, float], tuple[str, ...]]:
    if query.vector is None:
        return {}, ()
    asked = (query.model, int(query.vector.shape[0]))
    if model not in (None, asked):
        return {}, (
            f"semantic search is off: the store was embedded by {model}, this program uses {asked}; "
            "run `threefold reembed`",
        )
    return {key: float(vector @ query.vector) for key, vector in owner.vectors.items()}, ()


def _passes(kept: Kept, row: Row, where: Filter, scope: Scope) -> bool:
    record = kept.record
    return (
        kept.live(where.now)
        and scope.app in (None, record.app)
        and (where.roles is None or row.role in where.roles)
        and where.conversation in (None, record.conversation)
        and where.agent in (None, record.agent)
        and (where.since is None or row.at >= where.since)
        and (where.until is None or row.at < where.until)
        and all(not kept.labels.isdisjoint(group) for group in where.labels)
    )


def _best(scores: Mapping[RowKey, float], seen: Collection[RowKey], depth: int) -> Hits:
    kept = [(key, score) for key, score in scores.items() if key in seen and score > 0]
    kept.sort(key=lambda item: (-item[1], item[0].conversation, item[0].turn, item[0].seq))
    return kept[:depth]


def _answer(
    query: Query,
    seen: Mapping[RowKey, tuple[Kept, Row]],
    found: _Found,
    corrected: Mapping[str, tuple[tuple[str, float], ...]],
    warnings: tuple[str, ...],
) -> Candidates:
    keys = list(dict.fromkeys(key for hits in found.lists.values() for key, _ in hits))
    index = {key: i for i, key in enumerate(keys)}
    rows = [
        Candidate(
            key,
            row.role,
            row.at,
            kept.first_position + row.seq,
            len(row.terms),
            row.author,
            asks(row.text[-ENDING:]),
            found.having.get(key, 0),
        )
        for key, (kept, row) in ((key, seen[key]) for key in keys)
    ]
    lists = {name: [(index[key], score) for key, score in hits] for name, hits in found.lists.items()}
    return Candidates.of(rows, lists, rarity_of(len(query.terms), *found.rarity), corrected, warnings)

"""Candidates: three lists over one owner's rows, in one snapshot and one round trip.

Only where the question has a word that the owner never wrote, and others that are nearly it, does the list of
near-literal variants need a second trip.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from psycopg import Cursor

from threefold.backends.postgres.connection import Db, run
from threefold.backends.postgres.filtering import join_and_condition, named, narrow
from threefold.backends.postgres.keys import owner_key, term_key, vector_text
from threefold.backends.postgres.words import lexical
from threefold.model.query import Candidate, Candidates, ListName, Query
from threefold.model.record import RowKey
from threefold.model.times import from_micros
from threefold.search.spelling import corrections, vocabulary_lengths
from threefold.text.terms import WILDCARD

Hits = list[tuple[int, float]]


@dataclass
class _Found:
    """Rows by their number in the order in which they came, and the lists over them."""

    rows: dict[int, Candidate] = field(default_factory=dict)
    lists: dict[ListName, Hits] = field(default_factory=dict)

    def take(self, name: ListName, cursor: Cursor[tuple[Any, ...]] | None) -> None:
        """Read a list's answer."""
        hits: Hits = []
        for number, score, conversation, turn, seq, role, at, position, words in cursor.fetchall() if cursor else ():
            hits.append((number, score))
            if number not in self.rows:
                key = RowKey(conversation, turn, seq)
                self.rows[number] = Candidate(key, role, from_micros(at), position, words)
        self.lists[name] = hits

    def answer(self, corrected: Mapping[str, tuple[tuple[str, float], ...]], warnings: tuple[str, ...]) -> Candidates:
        """As candidates: lists by index into the rows."""
        index = {number: i for i, number in enumerate(self.rows)}
        lists = {name: tuple((index[n], score) for n, score in hits) for name, hits in self.lists.items()}
        return Candidates(tuple(self.rows.values()), lists, {w: v for w, v in corrected.items() if v}, warnings)


def candidates(db: Db, query: Query) -> Candidates:
    """Answer a query inside one read transaction."""
    owner = owner_key(query.scope)
    narrowing, values = narrow(query)
    found = _Found()
    # Everything is sent before anything is read.
    meta = run(db, "SELECT key, value FROM threefold.meta WHERE key IN ('embedder', 'dimensions')")
    known, vocabulary = _ask_vocabulary(db, owner, query) if "trigram" in query.lists else (None, None)
    words = lexical(db, owner, query.terms, narrowing, values, query.depth) if "lexical" in query.lists else None
    near = _semantic(db, owner, query, narrowing, values) if "semantic" in query.lists else None
    if "lexical" in query.lists:
        found.take("lexical", words)
    corrected: dict[str, tuple[tuple[str, float], ...]] = {}
    if known is not None and vocabulary is not None:
        stored = {key for (key,) in known.fetchall()}
        unknown = [t for t in query.terms if not t.endswith(WILDCARD) and term_key(owner, t) not in stored]
        terms = [term for (term,) in vocabulary.fetchall()]
        corrected = {word: corrections(word, terms) for word in unknown}
        found.take("trigram", _variants(db, owner, query, corrected, narrowing, values))
    warnings: tuple[str, ...] = ()
    if "semantic" in query.lists:
        found.take("semantic", near)
        warnings = _model_warning(query, dict(meta.fetchall()))
    return found.answer(corrected, warnings)


def _ask_vocabulary(db: Db, owner: UUID, query: Query) -> tuple[Cursor[tuple[Any, ...]], Cursor[tuple[Any, ...]]]:
    """The keys of words that the owner wrote; and, for those it did not, the stored words of a fitting length."""
    asked = [term for term in query.terms if not term.endswith(WILDCARD)]
    keys = [term_key(owner, term) for term in asked]
    lengths = [vocabulary_lengths([term]) for term in asked]
    known = run(
        db,
        "SELECT key FROM threefold.vocabulary WHERE owner = %s AND key = ANY(%s::bigint[])",
        (owner, keys),
    )
    fitting = run(
        db,
        """WITH unknown AS MATERIALIZED (
               SELECT a.low, a.high FROM unnest(%(keys)s::bigint[], %(low)s::integer[], %(high)s::integer[])
                   AS a (key, low, high)
               WHERE NOT EXISTS (
                   SELECT 1 FROM threefold.vocabulary AS v WHERE v.owner = %(owner)s AND v.key = a.key))
           SELECT v.term FROM threefold.vocabulary AS v
           WHERE v.owner = %(owner)s AND (SELECT count(*) FROM unknown) > 0
             AND EXISTS (SELECT 1 FROM unknown AS u WHERE length(v.term) BETWEEN u.low AND u.high)""",
        {"owner": owner, "keys": keys, "low": [low for low, _ in lengths], "high": [high for _, high in lengths]},
    )
    return known, fitting


def _variants(
    db: Db,
    owner: UUID,
    query: Query,
    corrected: Mapping[str, Sequence[tuple[str, float]]],
    narrowing: str,
    values: Mapping[str, object],
) -> Cursor[tuple[Any, ...]] | None:
    """Rows that have the question's words or what they were corrected to.

    Without a misspelling this list would be the lexical one again, and count twice.
    """
    if not any(corrected.values()) and "lexical" in query.lists:
        return None
    near = [term for term in query.terms if term not in corrected]
    near += [variant for variants in corrected.values() for variant, _ in variants]
    return lexical(db, owner, near, narrowing, values, query.depth)


def _semantic(
    db: Db, owner: UUID, query: Query, narrowing: str, values: Mapping[str, object]
) -> Cursor[tuple[Any, ...]] | None:
    """Rows by inner product, an exact scan of the owner's vectors."""
    if query.vector is None:
        return None
    mine = {
        **values,
        "owner": owner,
        "vector": vector_text(query.vector),
        "model": query.model,
        "dimensions": str(query.vector.shape[0]),
    }
    return run(db, semantic_statement(narrowing, query.depth), mine)


def semantic_statement(narrowing: str, depth: int) -> str:
    """The nearest rows. `+ 0` keeps the order exact: an index on vectors would order first and filter by owner after.

    Nothing is read where the store's vectors are another model's.
    """
    join, condition = join_and_condition("v.row", narrowing)
    return f"""WITH nearest AS MATERIALIZED (
            SELECT v.row, -(v.embedding <#> %(vector)s::halfvec) AS score
            FROM threefold.vectors AS v {join}
            WHERE v.owner = %(owner)s AND (SELECT count(*) FROM threefold.meta
                WHERE (key, value) IN (('embedder', %(model)s), ('dimensions', %(dimensions)s))) = 2 {condition}
            ORDER BY (v.embedding <#> %(vector)s::halfvec) + 0, v.row LIMIT {depth:d}
        ), best AS (SELECT * FROM nearest WHERE score > 0) {named("ASC")}"""


def _model_warning(query: Query, stored: Mapping[str, str]) -> tuple[str, ...]:
    if query.vector is None or not stored:
        return ()
    asked = {"embedder": query.model, "dimensions": str(query.vector.shape[0])}
    if stored == asked:
        return ()
    return (
        f"semantic search is off: the store was embedded by {stored['embedder']!r} ({stored['dimensions']} "
        f"dimensions), this program uses {query.model!r} ({asked['dimensions']}); run `threefold reembed`",
    )

"""Candidates: three lists over one owner's rows, in one snapshot and one round trip.

Only where the question has a word that the owner never wrote, and others that are nearly it, does the list of
near-literal variants need a second trip.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from psycopg import Cursor

from threefold.backends.postgres.connection import Db, run
from threefold.backends.postgres.filtering import join_and_condition, named, narrow
from threefold.backends.postgres.keys import owner_key, term_key, vector_text
from threefold.backends.postgres.words import lexical
from threefold.model.candidates import Candidate, Candidates
from threefold.model.query import ListName, Query
from threefold.model.rows import RowKey
from threefold.model.times import from_micros
from threefold.search.spelling import (
    MAX_CORRECTED,
    Phrases,
    correctable,
    corrections,
    phrases_of,
    rarity_of,
    vocabulary_lengths,
)
from threefold.text.asking import asks

Hits = list[tuple[int, float]]


@dataclass
class _Found:
    """Rows by their number in the order in which they came, the lists over them, and the rarity of the words."""

    rows: dict[int, Candidate] = field(default_factory=dict)
    lists: dict[ListName, Hits] = field(default_factory=dict)
    rarity: list[dict[int, float]] = field(default_factory=list)

    def take(self, name: ListName, cursor: Cursor[tuple[Any, ...]] | None, asked: Phrases | None = None) -> None:
        """Read a list's answer; `asked` are the phrases of a list of words."""
        hits: Hits = []
        for number, score, told, once, *row in cursor.fetchall() if cursor else ():
            hits.append((number, score))
            if number not in self.rows:
                conversation, turn, seq, role, at, position, words, author, ending = row
                key = RowKey(conversation, turn, seq)
                self.rows[number] = Candidate(key, role, from_micros(at), position, words, author, asks(ending))
            if asked is not None:
                known = self.rows[number]
                self.rows[number] = known._replace(having=known.having | asked.having(told))
                if once is not None:
                    self.rarity.append(asked.rarity({i: r for i, r in enumerate(once) if r}))
        self.lists[name] = hits

    def answer(
        self, query: Query, corrected: Mapping[str, tuple[tuple[str, float], ...]], warnings: tuple[str, ...]
    ) -> Candidates:
        """As candidates: lists by index into the rows."""
        index = {number: i for i, number in enumerate(self.rows)}
        lists = {name: [(index[n], score) for n, score in hits] for name, hits in self.lists.items()}
        rarity = rarity_of(len(query.terms), *self.rarity)
        kept = {word: variants for word, variants in corrected.items() if variants}
        return Candidates.of(self.rows.values(), lists, rarity, kept, warnings)


def candidates(db: Db, query: Query) -> Candidates:
    """Answer a query inside one read transaction."""
    owner = owner_key(query.scope)
    narrowing, values = narrow(query)
    found = _Found()
    # Everything is sent before anything is read.
    meta = run(db, "SELECT key, value FROM threefold.meta WHERE key IN ('embedder', 'dimensions')")
    known, vocabulary = _ask_vocabulary(db, owner, query) if "trigram" in query.lists else (None, None)
    asked = phrases_of(query.terms)
    words = lexical(db, owner, asked.phrases, narrowing, values, query.depth) if "lexical" in query.lists else None
    nearest = _semantic(db, owner, query, narrowing, values) if "semantic" in query.lists else None
    if "lexical" in query.lists:
        found.take("lexical", words, asked)
    corrected: dict[str, tuple[tuple[str, float], ...]] = {}
    if known is not None and vocabulary is not None:
        stored = {key for (key,) in known.fetchall()}
        unknown = [t for t in correctable(query.terms) if term_key(owner, t) not in stored][:MAX_CORRECTED]
        terms = [term for (term,) in vocabulary.fetchall()]
        corrected = {word: corrections(word, terms) for word in unknown}
        # Without a misspelling this list would be the lexical one again, and count twice.
        if any(corrected.values()) or "lexical" not in query.lists:
            near = phrases_of(query.terms, corrected)
            found.take("trigram", lexical(db, owner, near.phrases, narrowing, values, query.depth), near)
        else:
            found.take("trigram", None)
    warnings: tuple[str, ...] = ()
    if "semantic" in query.lists:
        found.take("semantic", nearest)
        warnings = _model_warning(query, dict(meta.fetchall()))
    return found.answer(query, corrected, warnings)


def _ask_vocabulary(db: Db, owner: UUID, query: Query) -> tuple[Cursor[tuple[Any, ...]], Cursor[tuple[Any, ...]]]:
    """The keys of words that the owner wrote; and, for those it did not, the stored words of a fitting length."""
    asked = correctable(query.terms)
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

"""Candidates: three lists over one owner's rows, in one snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import apsw

from threefold.backends.sqlite.connection import fetch, one
from threefold.backends.sqlite.keys import find_owner, marks
from threefold.backends.sqlite.vectors import VectorCache
from threefold.backends.sqlite.words import Scored, best_rows, quoted
from threefold.model.query import Candidate, Candidates, Filter, ListName, Query
from threefold.model.record import RowKey
from threefold.model.times import from_micros, to_micros
from threefold.model.turn import ROLES
from threefold.search.spelling import (
    MAX_CORRECTED,
    Phrases,
    correctable,
    corrections,
    phrases_of,
    rarity_of,
    vocabulary_lengths,
)
from threefold.text.asking import ENDING, asks

Hits = list[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class _Narrowing:
    """A filter in the shapes that the statements need.

    `match` narrows the full-text match itself; `sql` with `values` is a condition on `rows AS r` (and `turns AS t`
    where `joins_turns`), empty where every row of the owner may be seen; `beyond_match`: it says more than the match.
    """

    match: str
    sql: str
    values: tuple[object, ...]
    joins_turns: bool
    beyond_match: bool

    @property
    def turns(self) -> str:
        return "JOIN turns AS t ON t.id = r.turn" if self.joins_turns else ""


def candidates(db: apsw.Connection, query: Query, cache: VectorCache) -> Candidates:
    """Answer a query inside one read transaction."""
    owner = find_owner(db, query.scope)
    empty: Mapping[ListName, tuple[tuple[int, float], ...]] = dict.fromkeys(query.lists, ())
    if owner is None:
        return Candidates((), empty)
    narrowing = _narrow(db, owner, query)
    if narrowing is None:
        return Candidates((), empty)
    found = _Found()
    if "lexical" in query.lists:
        found.take("lexical", phrases_of(query.terms), db, owner, narrowing, query.depth)
    if "trigram" in query.lists:
        found.corrected = _corrected(db, owner, query.terms)
        # Without a misspelling this list would be the lexical one again, and count twice.
        if any(found.corrected.values()) or "lexical" not in query.lists:
            phrases = phrases_of(query.terms, found.corrected)
            found.take("trigram", phrases, db, owner, narrowing, query.depth)
        else:
            found.lists["trigram"] = []
    if "semantic" in query.lists:
        found.lists["semantic"], found.warnings = _semantic(db, owner, query, narrowing, cache)
    return _answer(db, owner, query, found)


@dataclass
class _Found:
    """Lists of row numbers, the bits of the question's words that rows have, and the words' rarity."""

    lists: dict[ListName, Hits] = field(default_factory=dict)
    having: dict[int, int] = field(default_factory=dict)
    rarity: list[dict[int, float]] = field(default_factory=list)
    corrected: dict[str, tuple[tuple[str, float], ...]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def take(
        self, name: ListName, asked: Phrases, db: apsw.Connection, owner: int, narrowing: _Narrowing, depth: int
    ) -> None:
        """Ask for a list of words."""
        scored = _lexical(db, owner, asked.phrases, narrowing, depth)
        self.lists[name] = [(number, score) for number, score, _ in scored.hits]
        self.rarity.append(asked.rarity(scored.rarity))
        for number, _, told in scored.hits:
            self.having[number] = self.having.get(number, 0) | asked.having(told)


def _narrow(db: apsw.Connection, owner: int, query: Query) -> _Narrowing | None:
    """The filter as conditions; None where it can match nothing (an unknown conversation)."""
    where, match, sql, values = query.where, [], [], list[object]()
    joins_turns = False
    if where.conversation is not None:
        found = one(db, "SELECT id FROM conversations WHERE owner = ? AND name = ?", (owner, where.conversation))
        if found is None:
            return None
        match.append("scope : " + quoted(f"{owner}:c{found[0]}"))
        sql.append("r.conversation = ?")
        values.append(found[0])
    if where.roles is not None:
        known = [role for role in where.roles if role in ROLES]  # the index does not tell `USER` from `user`
        if not known:
            return None
        match.append("scope : (" + " OR ".join(quoted(f"{owner}:r{role}") for role in known) + ")")
        sql.append(f"r.role IN ({marks(len(where.roles))})")
        values.extend(where.roles)
    in_match = len(sql)
    for condition, value in _row_conditions(db, owner, where):
        sql.append(condition)
        values.append(value)
    for column, name in (("agent", where.agent), ("app", query.scope.app)):
        if name is not None:
            sql.append(f"t.{column} = ?")
            values.append(name)
            joins_turns = True
    joined = " AND ".join(["r.owner = ?", *sql]) if sql else ""
    return _Narrowing(" AND ".join(match), joined, (owner, *values), joins_turns, len(sql) > in_match)


def _row_conditions(db: apsw.Connection, owner: int, where: Filter) -> Iterable[tuple[str, object]]:
    if where.since is not None:
        yield "r.at >= ?", to_micros(where.since)
    if where.until is not None:
        yield "r.at < ?", to_micros(where.until)
    now = to_micros(where.now)
    # Expired rows are swept soon after their time, so most of the time there is nothing to leave out.
    if one(db, "SELECT 1 FROM turns WHERE expires <= ? AND +owner = ? LIMIT 1", (now, owner)):
        yield "(r.expires IS NULL OR r.expires > ?)", now


def _lexical(db: apsw.Connection, owner: int, terms: Sequence[str], narrowing: _Narrowing, depth: int) -> Scored:
    """Rows that have any of the terms, by BM25."""
    if not narrowing.beyond_match:
        return best_rows(db, owner, terms, narrowing.match, "", (), depth)
    joined = f"JOIN rows AS r ON r.id = found.rowid {narrowing.turns} WHERE +{narrowing.sql}"
    return best_rows(db, owner, terms, narrowing.match, joined, narrowing.values, depth)


def _corrected(db: apsw.Connection, owner: int, terms: Sequence[str]) -> dict[str, tuple[tuple[str, float], ...]]:
    """For every term that the owner never used, the stored words that are nearly it."""
    words = correctable(terms)
    known = {
        term
        for (term,) in fetch(
            db,
            "SELECT term FROM vocabulary WHERE owner = ? AND term IN (SELECT value FROM json_each(?))",
            (owner, json.dumps(words)),
        )
    }
    unknown = [word for word in words if word not in known][:MAX_CORRECTED]
    if not unknown:
        return {}
    vocabulary = [
        term
        for (term,) in fetch(
            db,
            "SELECT term FROM vocabulary WHERE owner = ? AND length(term) BETWEEN ? AND ?",
            (owner, *vocabulary_lengths(unknown)),
        )
    ]
    return {word: corrections(word, vocabulary) for word in unknown}


def _semantic(
    db: apsw.Connection, owner: int, query: Query, narrowing: _Narrowing, cache: VectorCache
) -> tuple[Hits, tuple[str, ...]]:
    """Rows by cosine, an exact scan of the owner's vectors."""
    if query.vector is None:
        return [], ()
    stored = dict(fetch(db, "SELECT key, value FROM meta WHERE key IN ('embedder', 'dimensions')"))
    asked = {"embedder": query.model, "dimensions": int(query.vector.shape[0])}
    if stored and stored != asked:
        return [], (
            f"semantic search is off: the store was embedded by {stored['embedder']!r} ({stored['dimensions']} "
            f"dimensions), this program uses {query.model!r} ({asked['dimensions']}); run `threefold reembed`",
        )
    allowed = None
    if narrowing.sql:
        sql = f"SELECT r.id FROM rows AS r {narrowing.turns} WHERE {narrowing.sql}"
        allowed = [number for (number,) in fetch(db, sql, narrowing.values)]
    return cache.nearest(db, owner, query.vector, query.depth, allowed), ()


def _answer(db: apsw.Connection, owner: int, query: Query, found: _Found) -> Candidates:
    numbers = {number for hits in found.lists.values() for number, _ in hits}
    index: dict[int, int] = {}
    rows: list[Candidate] = []
    # CROSS JOIN keeps SQLite to this order: not knowing that the list is short, it would scan all rows of the owner.
    for number, conversation, turn, seq, role, at, position, words, author, ending in fetch(
        db,
        f"""SELECT r.id, c.name, t.name, r.seq, r.role, r.at, r.position, r.word_count, r.author,
                  substr(CAST(r.text AS BLOB), -{4 * ENDING})
           FROM json_each(?) AS wanted CROSS JOIN rows AS r ON r.id = wanted.value AND +r.owner = ?
           CROSS JOIN turns AS t ON t.id = r.turn CROSS JOIN conversations AS c ON c.id = r.conversation""",
        (json.dumps(sorted(numbers)), owner),
    ):
        index[number] = len(rows)
        key, having = RowKey(conversation, turn, seq), found.having.get(number, 0)
        # Cut as bytes, at most four a character: as text it would end at a NUL.
        asking = asks(ending.decode("utf-8", "ignore")[-ENDING:])
        rows.append(Candidate(key, role, from_micros(at), position, words, author, asking, having))
    lists = {name: tuple((index[n], score) for n, score in hits if n in index) for name, hits in found.lists.items()}
    rarity = rarity_of(len(query.terms), *found.rarity)
    return Candidates(tuple(rows), lists, rarity, {w: v for w, v in found.corrected.items() if v}, found.warnings)

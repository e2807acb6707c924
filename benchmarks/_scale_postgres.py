"""PostgreSQL under measurement, and its floors: the same statements by psycopg alone, on one connection."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any
from uuid import UUID

import psycopg
from _scale_data import MadeUp, User
from _scale_engines import DEPTH, Ask, Write, opened

from threefold.backends.opening import open_backend
from threefold.backends.postgres.connection import planned_anew
from threefold.backends.postgres.inserting import Inserts
from threefold.backends.postgres.keys import owner_key, term_key, vector_text
from threefold.backends.postgres.opening import split_partitions
from threefold.backends.postgres.search import semantic_statement
from threefold.backends.postgres.words import lexical_statement
from threefold.model.scope import Scope
from threefold.model.times import now, to_micros
from threefold.model.turn import Turn
from threefold.text.terms import query_terms

# What a turn leaves, by columns as `Inserts` takes them; arrays travel as text.
_OF_A_TURN = {
    "conversations": """number, name, title, app, started, last_activity, turns, positions FROM threefold.conversations
        WHERE owner = %(owner)s AND number = %(conversation)s""",
    "turns": """number, conversation, name, state, status, started, ended, expires, agent, app, digest, head, log,
        replay, title FROM threefold.turns WHERE owner = %(owner)s AND number = %(turn)s""",
    "rows": """number, conversation, turn, seq, position, role, event_type, path, batch, author, at, expires,
        word_count, text FROM threefold.rows WHERE owner = %(owner)s AND turn = %(turn)s""",
    "words": """w.row, w.length, w.terms::text, w.counts::text FROM threefold.words AS w JOIN threefold.rows AS r
        ON r.owner = w.owner AND r.number = w.row WHERE w.owner = %(owner)s AND r.turn = %(turn)s""",
    "vocabulary": """DISTINCT v.key, v.term FROM threefold.rows AS r
        JOIN threefold.words AS w ON w.owner = r.owner AND w.row = r.number CROSS JOIN unnest(w.terms) AS u (key)
        JOIN threefold.vocabulary AS v ON v.owner = w.owner AND v.key = u.key
        WHERE r.owner = %(owner)s AND r.turn = %(turn)s""",
    "waiting": "number FROM threefold.rows WHERE owner = %(owner)s AND turn = %(turn)s",
}
_LOADED = ("owners", "conversations", "turns", "rows", "words", "vocabulary", "vectors")


class Postgres:
    """The server. Floors of writing need a second database (`floor`), which gets the same tables without policies."""

    name = "postgres"

    def __init__(self, store: str, floor: str | None, model: MadeUp) -> None:
        self.store, self._model = store, model
        self.db = opened(store, model)
        self.backend, _ = open_backend(store)
        self._read = _connected(store)
        self._read.execute("SELECT set_config('threefold.operator', 'on', false)")
        self._searching = _connected(store)
        self._bare = None
        if floor is not None:
            opened(floor, None).close()
            self._bare = _connected(floor)
            _without_policies(self._bare)

    def feed(self, scope: Scope, turns: Sequence[Turn]) -> None:
        """See `Engine.feed`: the floor asks the product's own tables."""

    def settle(self) -> None:
        """See `Engine.settle`: what autovacuum does in time."""
        for (table,) in self._read.execute(_TABLES).fetchall():
            self._read.execute(f"VACUUM (ANALYZE) threefold.{table}")
        # A plan is kept for each connection; those made for empty tables go.
        for db in (self.db, self.backend):
            db.close()
        self.db, (self.backend, _) = opened(self.store, self._model), open_backend(self.store)

    def size(self) -> dict[str, Any]:
        """See `Engine.size`; also by table, its parts and their indexes together."""
        rows, text = self._read.execute("SELECT count(*), sum(octet_length(text)) FROM threefold.rows").fetchall()[0]
        found = self._read.execute(
            r"""SELECT regexp_replace(relname, '_\d+$', '') AS name, sum(pg_total_relation_size(oid)) FROM pg_class
                WHERE relnamespace = 'threefold'::regnamespace AND relkind = 'r' GROUP BY name ORDER BY 2 DESC"""
        )
        tables = {name: int(size) for name, size in found.fetchall()}
        return {"rows": rows, "text_bytes": int(text), "bytes": sum(tables.values()), "tables": tables}

    def bare_search(self, user: User) -> Ask:
        """See `Engine.bare_search`: both lists, in one transaction that speaks for the owner."""
        db, owner = self._searching, owner_key(user.scope)
        semantic = semantic_statement("", DEPTH)

        def ask(question: str) -> None:
            vector = self._model.embed([question])[0]
            keys = [term_key(owner, term) for term in query_terms(question)]
            common = {"owner": owner, "now": to_micros(now())}
            asked = {"vector": vector_text(vector), "model": self._model.name, "dimensions": str(len(vector))}
            words = {"keys": keys, **{f"k{i}": key for i, key in enumerate(keys)}}
            with db.pipeline(), db.transaction():
                _speak_for(db, owner)
                # Both planned for the values at hand: the best that the statements can do.
                with planned_anew(db):
                    near = db.execute(semantic, common | asked)
                    found = db.execute(lexical_statement(len(keys), 0, "", DEPTH), common | words)
                near.fetchall()
                found.fetchall()

        return ask

    def bare_load(self, scope: Scope) -> Write | None:
        """See `Engine.bare_load`: COPY, one transaction."""
        bare, owner = self._bare, owner_key(scope)
        if bare is None:
            return None
        data = {name: self._copied(name, owner) for name in _LOADED}

        def write() -> None:
            with bare.transaction(), bare.cursor() as cursor:
                for name, pieces in data.items():
                    with cursor.copy(f"COPY threefold.{name} FROM STDIN (FORMAT BINARY)") as copy:
                        for piece in pieces:
                            copy.write(piece)

        return write

    def _copied(self, table: str, owner: UUID) -> list[bytes]:
        source = f"COPY (SELECT * FROM threefold.{table} WHERE owner = '{owner}') TO STDOUT (FORMAT BINARY)"
        with self._read.cursor() as cursor, cursor.copy(source) as copy:
            return [bytes(piece) for piece in copy]

    def bare_write(self, scope: Scope, conversation: str, turn: str) -> Write | None:
        """See `Engine.bare_write`: everything is sent before anything is waited for."""
        bare, owner = self._bare, owner_key(scope)
        if bare is None:
            return None
        place = self._read.execute(
            """SELECT c.number, t.number FROM threefold.conversations AS c
               JOIN threefold.turns AS t ON t.owner = c.owner AND t.conversation = c.number
               WHERE c.owner = %s AND c.name = %s AND t.name = %s""",
            (owner, conversation, turn),
        ).fetchone()
        assert place is not None
        named = {"owner": owner, "conversation": place[0], "turn": place[1]}
        inserts = Inserts(owner)
        for table, columns in _OF_A_TURN.items():
            for row in self._read.execute(f"SELECT {columns}", named).fetchall():
                inserts.add(table, *row)

        def write() -> None:
            with bare.pipeline(), bare.transaction():
                inserts.flush(bare)

        return write

    def close(self) -> None:
        """See `Engine.close`."""
        self.db.close()
        self.backend.close()
        for db in (self._read, self._searching, self._bare):
            if db is not None:
                db.close()


_TABLES = """SELECT relname FROM pg_class WHERE relnamespace = 'threefold'::regnamespace AND relkind IN ('r', 'p')
             AND NOT relispartition"""


def _connected(url: str) -> psycopg.Connection[Any]:
    """As the product's connections are, without its pool."""
    return psycopg.connect(split_partitions(url)[0], autocommit=True, prepare_threshold=0)


def _speak_for(db: psycopg.Connection[Any], owner: UUID) -> None:
    db.execute(
        "SELECT set_config('threefold.owner', %s, true), set_config('plan_cache_mode', 'force_generic_plan', true)",
        (str(owner),),
    )


def _without_policies(db: psycopg.Connection[Any]) -> None:
    """COPY does not work where row-level security does; so the floor goes without."""
    tables = """SELECT relname FROM pg_class WHERE relnamespace = 'threefold'::regnamespace AND relkind IN ('r', 'p')
                AND relrowsecurity"""
    for (table,) in db.execute(tables).fetchall():
        db.execute(f"ALTER TABLE threefold.{table} DISABLE ROW LEVEL SECURITY")


def is_empty(url: str) -> bool:
    """Whether no store is in the database yet."""
    with closing(_connected(url)) as db:
        found = db.execute("SELECT to_regclass('threefold.migrations') IS NULL").fetchone()
        return found is not None and bool(found[0])

"""Rows on their way into the tables: collected, then sent with one statement for each table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from threefold.backends.postgres.connection import Db, run

# Columns after the owner, with the types in which they are sent; `a::b` is sent as a and cast to b in the server.
_TABLES: dict[str, dict[str, str]] = {
    "conversations": {
        "number": "integer", "name": "text", "title": "text", "app": "text", "started": "bigint",
        "last_activity": "bigint", "turns": "integer", "positions": "integer",
    },
    "turns": {
        "number": "integer", "conversation": "integer", "name": "text", "state": "text", "status": "text",
        "started": "bigint", "ended": "bigint", "expires": "bigint", "agent": "text", "app": "text",
        "digest": "bytea", "head": "text", "log": "bytea", "replay": "bytea", "title": "text",
    },
    "files": {
        "turn": "integer", "seq": "integer", "path": "text", "digest": "text", "size": "bigint", "mime": "text",
    },
    "rows": {
        "number": "integer", "conversation": "integer", "turn": "integer", "seq": "integer", "position": "integer",
        "role": "text", "event_type": "text", "path": "text", "batch": "text", "author": "text", "at": "bigint",
        "expires": "bigint", "word_count": "integer", "text": "text",
    },
    "labels": {"label": "text", "turn": "integer"},
    "feedback": {
        "turn": "integer", "number": "integer", "origin": "text", "reaction": "text", "text": "text", "at": "bigint",
    },
    "words": {
        # Arrays of arrays must not be ragged, so the inner ones travel as text.
        "row": "integer", "length": "integer", "terms": "text::bigint[]", "counts": "text::smallint[]",
    },
    "vocabulary": {"key": "bigint", "term": "text"},
    "vectors": {"row": "integer", "embedding": "text::halfvec"},
    "waiting": {"row": "integer"},
    "tombstones": {"hash": "bytea", "why": "text"},
}  # fmt: skip
_EXISTING = {
    "conversations": """(owner, number) DO UPDATE SET title = excluded.title, started = excluded.started,
        last_activity = excluded.last_activity, turns = excluded.turns, positions = excluded.positions""",
    "tombstones": "(owner, hash) DO UPDATE SET why = excluded.why",
    "vectors": "(owner, row) DO UPDATE SET embedding = excluded.embedding",
    "labels": "DO NOTHING",
    "vocabulary": "DO NOTHING",
    "waiting": "DO NOTHING",
}


def _statement(table: str) -> str:
    columns = _TABLES[table]
    sent = ", ".join(f"%s::{kind.partition('::')[0]}[]" for kind in columns.values())
    chosen = ", ".join(f"u.{name}" + (f"::{kind.partition('::')[2]}" if "::" in kind else "")
                       for name, kind in columns.items())  # fmt: skip
    names = ", ".join(columns)
    existing = f" ON CONFLICT {_EXISTING[table]}" if table in _EXISTING else ""
    return (
        f"INSERT INTO threefold.{table} (owner, {names}) SELECT %s, {chosen} FROM unnest({sent}) AS u ({names})"
        + existing
    )


_STATEMENTS = {table: _statement(table) for table in _TABLES}


class Inserts:
    """What one transaction inserts for one owner. Nothing is sent before `flush`."""

    def __init__(self, owner: UUID) -> None:
        self._owner = owner
        self._rows: dict[str, list[tuple[Any, ...]]] = defaultdict(list)

    def add(self, table: str, *values: Any) -> None:
        """A row: the values of the table's columns after the owner."""
        self._rows[table].append(values)

    def flush(self, db: Db) -> None:
        """Send what was added, without waiting for the server."""
        for table, rows in self._rows.items():
            columns = zip(_TABLES[table].values(), zip(*rows, strict=True), strict=True)
            run(db, _STATEMENTS[table], (self._owner, *(_sent(kind, values) for kind, values in columns)))
        self._rows.clear()


def _sent(kind: str, values: Sequence[Any]) -> Any:
    """A column as it travels: numbers as the text of an array, which is quicker than having the driver look at each."""
    if kind in ("integer", "bigint"):
        return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"
    return list(values)

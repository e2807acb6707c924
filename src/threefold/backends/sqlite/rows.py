"""Content rows: how one is kept, and those of some turns read back. All that a search reads beside its candidates."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import apsw

from threefold.backends.sqlite.connection import fetch
from threefold.backends.sqlite.keys import find_owner
from threefold.model.rows import Row, RowKey, StoredRow
from threefold.model.scope import Scope
from threefold.model.times import from_micros, to_micros

LIVE = "(t.expires IS NULL OR t.expires > ?)"
# Event type and path of nearly all rows of a role: such a row keeps two empty texts instead. Part of the stored format.
_USUAL = {
    "user": ("event.user.prompt", "user.prompt"),
    "assistant": ("agent.completion", "assistant.completion"),
}
_UNWRITTEN = ("", "")

ROW = "r.seq, r.role, r.event_type, r.path, r.text, r.at, r.batch, r.author"


def usual_name(row: Row) -> tuple[str, str]:
    """Event type and path as they are stored."""
    name = (row.event_type, row.path)
    return _UNWRITTEN if name == _USUAL.get(row.role) else name


def make_row(
    turn: str,
    seq: int,
    role: str,
    event_type: str,
    path: str,
    text: str,
    at: int,
    batch: str | None,
    author: str | None,
) -> Row:
    """A row from the columns of `ROW`."""
    # NULL stands for the turn's own batch, an empty text for none.
    kept = f"{turn}.batch" if batch is None else batch or None
    if (event_type, path) == _UNWRITTEN:
        event_type, path = _USUAL[role]
    return Row(seq, role, event_type, path, text, from_micros(at), kept, author)


# Of a row `r` with its turn `t` and its conversation `c`.
_STORED = f"SELECT c.name, t.name, t.agent, r.position, {ROW}"
_SEEN = f"{LIVE} AND (? IS NULL OR t.app = ?) ORDER BY c.name, r.position"


def rows(
    db: apsw.Connection, scope: Scope, keys: Sequence[RowKey], now: datetime, around: int, whole: bool
) -> tuple[StoredRow, ...]:
    """Rows of the named turns and their neighbours, or the named rows, in order of conversation and position."""
    owner = find_owner(db, scope)
    if owner is None:
        return ()
    seen = (to_micros(now), scope.app, scope.app)
    found = _of_turns(db, owner, keys, around, seen) if whole else _named(db, owner, keys, seen)
    return tuple(
        StoredRow(RowKey(name, turn, rest[0]), make_row(turn, *rest), position, agent)
        for name, turn, agent, position, *rest in found
    )


def _named(db: apsw.Connection, owner: int, keys: Sequence[RowKey], seen: tuple[object, ...]) -> Sequence[Any]:
    return fetch(
        db,
        f"""{_STORED} FROM json_each(?) AS wanted
            CROSS JOIN conversations AS c ON c.owner = ? AND c.name = wanted.value ->> 0
            CROSS JOIN turns AS t ON t.conversation = c.id AND t.name = wanted.value ->> 1
            CROSS JOIN rows AS r ON r.turn = t.id AND r.seq = wanted.value ->> 2 AND +r.owner = c.owner
            WHERE {_SEEN}""",
        (json.dumps(list(set(keys))), owner, *seen),
    )


def _of_turns(
    db: apsw.Connection, owner: int, keys: Sequence[RowKey], around: int, seen: tuple[object, ...]
) -> Sequence[Any]:
    names = sorted({(key.conversation, key.turn) for key in keys})
    # CROSS JOIN keeps SQLite to this order, from the short list inwards.
    named = fetch(
        db,
        """SELECT t.id, t.conversation, t.started, t.name FROM json_each(?) AS wanted
           CROSS JOIN conversations AS c ON c.owner = ? AND c.name = wanted.value ->> 0
           CROSS JOIN turns AS t ON t.conversation = c.id AND t.name = wanted.value ->> 1""",
        (json.dumps(names), owner),
    )
    turns = {found[0] for found in named}
    if around:
        for _, conversation, started, name in named:
            turns.update(_neighbours(db, conversation, started, name, around))
    return fetch(
        db,
        f"""{_STORED}
            FROM rows AS r JOIN turns AS t ON t.id = r.turn JOIN conversations AS c ON c.id = r.conversation
            WHERE +r.owner = ? AND r.turn IN (SELECT value FROM json_each(?)) AND {_SEEN}""",
        (owner, json.dumps(sorted(turns)), *seen),
    )


def _neighbours(db: apsw.Connection, conversation: int, started: int, name: str, around: int) -> Iterator[int]:
    for comparison, order in (("<", "DESC"), (">", "ASC")):
        yield from (
            number
            for (number,) in fetch(
                db,
                f"""SELECT id FROM turns WHERE conversation = ? AND (started, name) {comparison} (?, ?)
                    ORDER BY started {order}, name {order} LIMIT ?""",
                (conversation, started, name, around),
            )
        )

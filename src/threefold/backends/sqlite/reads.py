"""Reading records back: a turn whole, the catalog, the list of conversations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import apsw

from threefold.backends.packing import unpack
from threefold.backends.sqlite.connection import fetch, one, scalar
from threefold.backends.sqlite.keys import find_owner, marks
from threefold.backends.sqlite.records import read_feedback, read_record, read_records
from threefold.backends.sqlite.rows import LIVE
from threefold.errors import Forbidden
from threefold.model.record import CatalogEntry, Conversation, StoredTurn, TurnRecord
from threefold.model.retention import Gone, tombstone
from threefold.model.scope import Scope
from threefold.model.times import from_micros, to_micros
from threefold.model.titles import ABOUT_SIZE
from threefold.ports import CatalogQuery

# So many turns are read by their numbers; of more, those that come first in time.
_FEW = 500


def turn(db: apsw.Connection, scope: Scope, conversation: str, name: str, now: datetime) -> StoredTurn | Gone | None:
    """A turn whole, or why it is gone, or None."""
    owner = find_owner(db, scope)
    if owner is None:
        return None
    found = one(
        db,
        """SELECT t.id, t.conversation, t.app, t.expires, t.started, c.title
           FROM conversations AS c JOIN turns AS t ON t.conversation = c.id
           WHERE c.owner = ? AND c.name = ? AND t.name = ?""",
        (owner, conversation, name),
    )
    if found is None:
        buried = (owner, tombstone(conversation, name))
        why = one(db, "SELECT why FROM tombstones WHERE owner = ? AND hash = ?", buried)
        return None if why is None else why[0]
    number, parent, app, expires, started, title = found
    if scope.app is not None and app != scope.app:
        raise Forbidden(f"turn {name!r} of conversation {conversation!r} belongs to another app")
    if expires is not None and expires <= to_micros(now):
        return "expired"
    record = replace(read_record(db, owner, number), title=title)
    return StoredTurn(record, _ordinal(db, parent, started, name, now), read_feedback(db, owner, number))


def records(
    db: apsw.Connection, scope: Scope, keys: Sequence[tuple[str, str]], now: datetime, rows: bool
) -> tuple[TurnRecord, ...]:
    """The records of the named turns that are there and not over; without `rows` these are not read."""
    owner = find_owner(db, scope)
    if owner is None:
        return ()
    return read_records(db, owner, [number for number, *_ in _live(db, scope, owner, keys, now, "t.id")], rows)


def replays(
    db: apsw.Connection, scope: Scope, keys: Sequence[tuple[str, str]], now: datetime
) -> dict[tuple[str, str], dict[str, Any]]:
    """The replay artifacts of the named turns that are there and not over."""
    owner = find_owner(db, scope)
    if owner is None:
        return {}
    found = _live(db, scope, owner, keys, now, "t.replay")
    return {(conversation, name): {} if replay is None else unpack(replay) for replay, conversation, name in found}


def _live(
    db: apsw.Connection, scope: Scope, owner: int, keys: Sequence[tuple[str, str]], now: datetime, column: str
) -> list[tuple[Any, str, str]]:
    """A column of each of the named turns that are there and not over, with its key, in order of the keys.

    Raises:
        Forbidden: one belongs to another app.
    """
    found = fetch(
        db,
        f"""SELECT {column}, c.name, t.name, t.app, t.expires FROM json_each(?) AS wanted
            CROSS JOIN conversations AS c ON c.owner = ? AND c.name = wanted.value ->> 0
            CROSS JOIN turns AS t ON t.conversation = c.id AND t.name = wanted.value ->> 1 AND +t.owner = c.owner
            ORDER BY wanted.key""",
        (json.dumps(list(dict.fromkeys(keys))), owner),
    )
    foreign = next((entry for entry in found if scope.app is not None and entry[3] != scope.app), None)
    if foreign is not None:
        raise Forbidden(f"turn {foreign[2]!r} of conversation {foreign[1]!r} belongs to another app")
    moment = to_micros(now)
    return [(value, *key) for value, *key, _, expires in found if expires is None or expires > moment]


def _ordinal(db: apsw.Connection, conversation: int, started: int, name: str, now: datetime) -> int:
    """The place among the live turns; those that are over and not swept yet are few, and have an index."""
    upto = "SELECT count(*) FROM turns AS t WHERE t.conversation = ? AND (t.started, t.name) <= (?, ?)"
    values = (conversation, started, name)
    return int(scalar(db, f"SELECT ({upto}) - ({upto} AND t.expires <= ?)", (*values, *values, to_micros(now))))


# To turns that are listed, where their first row stands, and what they were about: the summary, else what the user said
# first, else the answer. That is cut as bytes: as text it would end at a NUL. A character has at most four bytes.
_TOLD = """
    SELECT x.*, (SELECT coalesce(min(r.position), 0) FROM rows AS r WHERE +r.owner = ? AND r.turn = x.id),
           (SELECT substr(CAST(r.text AS BLOB), 1, ?) FROM rows AS r
            WHERE +r.owner = ? AND r.turn = x.id AND r.role IN ('summary', 'user', 'assistant')
            ORDER BY CASE r.role WHEN 'summary' THEN 0 WHEN 'user' THEN 1 ELSE 2 END, r.seq LIMIT 1)
    FROM ({0}) AS x ORDER BY x.started {1}, x.chat {1}, x.name {1}
"""


def catalog(db: apsw.Connection, scope: Scope, query: CatalogQuery) -> tuple[CatalogEntry, ...]:
    """Turns in order of their start, newest first where asked; ordinals count within each conversation."""
    owner = find_owner(db, scope)
    if owner is None:
        return ()
    conditions, values = ["t.owner = ?", LIVE], [owner, to_micros(query.now)]
    if query.conversation is not None:
        parent = one(db, "SELECT id FROM conversations WHERE owner = ? AND name = ?", (owner, query.conversation))
        if parent is None:
            return ()
        conditions[0] = "+t.owner = ?"
        conditions.append("t.conversation = ?")
        values.append(parent[0])
    if query.ordinal is not None:
        _nth(query, conditions, values)
    _window(scope, query, conditions, values)
    if not _labelled(db, owner, query.labels, conditions, values):
        return ()
    order = "DESC" if query.newest_first else "ASC"
    listed = f"""
        SELECT t.id, t.conversation, c.name AS chat, t.name, t.started, t.ended, t.status, t.state, t.agent, t.app
        FROM turns AS t JOIN conversations AS c ON c.id = t.conversation
        WHERE {" AND ".join(conditions)}
        ORDER BY t.started {order}, c.name {order}, t.name {order} LIMIT ?"""
    if query.bare:
        return tuple(_made(0, turn, 0, b"") for turn in fetch(db, listed, (*values, query.limit)))
    ordinals: dict[int, int] = {}
    entries = []
    for *turn, position, about in fetch(
        db, _TOLD.format(listed, order), (owner, 4 * ABOUT_SIZE, owner, *values, query.limit)
    ):
        parent, name, started = turn[1], turn[3], turn[4]
        if parent in ordinals and scope.app is None:  # nothing of the conversation was left out since the last one
            ordinals[parent] += -1 if query.newest_first else 1
        else:
            ordinals[parent] = _ordinal(db, parent, started, name, query.now)
        entries.append(_made(ordinals[parent], turn, position, about or b""))
    return tuple(entries)


def _nth(query: CatalogQuery, conditions: list[str], values: list[Any]) -> None:
    """Only the turn with the ordinal: counted over the conversation, whatever window or app narrows the answer."""
    ordinal = query.ordinal or 1
    order = "DESC" if ordinal < 0 else "ASC"
    counted = " AND ".join(conditions)
    conditions.append(
        f"""t.id = (SELECT t.id FROM turns AS t WHERE {counted}
                   ORDER BY t.started {order}, t.name {order} LIMIT 1 OFFSET ?)"""
    )
    values.extend([*values, abs(ordinal) - 1])


def _window(scope: Scope, query: CatalogQuery, conditions: list[str], values: list[Any]) -> None:
    for condition, moment in (("t.started >= ?", query.since), ("t.started < ?", query.until)):
        if moment is not None:
            conditions.append(condition)
            values.append(to_micros(moment))
    if scope.app is not None:
        conditions.append("t.app = ?")
        values.append(scope.app)
    if query.after is not None:
        started, conversation, name = query.after
        comparison = "<" if query.newest_first else ">"
        conditions.append(f"(t.started, c.name, t.name) {comparison} (?, ?, ?)")
        values.extend([to_micros(started), conversation, name])


def _labelled(
    db: apsw.Connection, owner: int, labels: Sequence[Sequence[str]], conditions: list[str], values: list[Any]
) -> bool:
    """Only turns with one label of each group: where these are few they are begun with, of many each that comes by is
    looked up. False where a group has none.
    """
    if not labels:
        return True
    having = [f"SELECT turn FROM labels WHERE owner = ? AND label IN ({marks(len(group))})" for group in labels]
    named = [(owner, *group) for group in labels]
    counting = ", ".join(f"(SELECT count(*) FROM ({each} LIMIT {_FEW + 1}))" for each in having)
    counts = fetch(db, f"SELECT {counting}", [value for each in named for value in each])[0]
    for turns, count, given in zip(having, counts, named, strict=True):
        if count <= _FEW:
            conditions[0] = "+t.owner = ?"
        conditions.append(f"t.id IN ({turns})" if count <= _FEW else f"EXISTS ({turns} AND turn = t.id)")
        values.extend(given)
    return bool(min(counts))


def _made(ordinal: int, turn: Sequence[Any], position: int, about: bytes) -> CatalogEntry:
    _, _, conversation, name, started, ended, status, state, agent, app = turn
    return CatalogEntry(
        conversation,
        name,
        ordinal,
        from_micros(started),
        from_micros(ended),
        status,
        state,
        bytes(about).decode(errors="ignore")[:ABOUT_SIZE],
        position,
        agent,
        app,
    )


def conversations(
    db: apsw.Connection, scope: Scope, now: datetime, limit: int, after: tuple[datetime, str] | None
) -> tuple[Conversation, ...]:
    """Conversations with at least one live turn, the last active first."""
    owner = find_owner(db, scope)
    if owner is None:
        return ()
    conditions, values = ["c.owner = ?"], list[Any]([owner])
    if scope.app is not None:
        conditions.append("c.app = ?")
        values.append(scope.app)
    if after is not None:
        conditions.append("(c.last_activity, c.name) < (?, ?)")
        values.extend([to_micros(after[0]), after[1]])
    found = fetch(
        db,
        f"""SELECT c.name, c.title, c.started, c.last_activity, c.turns, c.app FROM conversations AS c
            WHERE {" AND ".join(conditions)}
              AND EXISTS (SELECT 1 FROM turns AS t WHERE t.conversation = c.id AND {LIVE})
            ORDER BY c.last_activity DESC, c.name DESC LIMIT ?""",
        (*values, to_micros(now), limit),
    )
    return tuple(
        Conversation(name, title, from_micros(started), from_micros(last), turns, app)
        for name, title, started, last, turns, app in found
    )


def labelled(
    db: apsw.Connection, realm: str, label: str, now: datetime, before: datetime | None, limit: int
) -> tuple[tuple[Scope, str, str], ...]:
    """Turns of a realm that have a label, of all owners: each owner is looked up by its label, which few have."""
    found = fetch(
        db,
        f"""SELECT o.tenant, o.user, o.realm, c.name, t.name FROM owners AS o
            CROSS JOIN labels AS l ON l.owner = o.id AND l.label = ?
            CROSS JOIN turns AS t ON t.id = l.turn AND +t.owner = o.id
            CROSS JOIN conversations AS c ON c.id = t.conversation AND +c.owner = o.id
            WHERE o.realm = ? AND {LIVE} AND (?4 IS NULL OR t.started < ?4)
            ORDER BY t.started, o.tenant, o.user, c.name, t.name LIMIT ?""",
        (label, realm, to_micros(now), None if before is None else to_micros(before), limit),
    )
    return tuple((Scope.of(*key), conversation, turn) for *key, conversation, turn in found)

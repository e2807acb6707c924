"""Reading records back: rows of turns, a turn whole, the catalog, the list of conversations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from threefold.backends.postgres.connection import Db, fetch, run
from threefold.backends.postgres.keys import given, owner_key
from threefold.backends.postgres.records import ROW, make_feedback, make_record, make_row
from threefold.errors import Forbidden
from threefold.model.record import (
    CatalogEntry,
    Conversation,
    RowKey,
    StoredRow,
    StoredTurn,
)
from threefold.model.retention import Gone, tombstone
from threefold.model.scope import Scope
from threefold.model.times import from_micros, to_micros
from threefold.model.titles import ABOUT_SIZE
from threefold.ports import CatalogQuery

_LIVE = "(t.expires IS NULL OR t.expires > %(now)s)"
# The turn that a conversation's and a turn's name mean, as a condition on its number.
_NAMED = """(SELECT t.number FROM threefold.conversations AS c JOIN threefold.turns AS t
             ON t.owner = %(owner)s AND t.conversation = c.number AND t.name = %(turn)s
             WHERE c.owner = %(owner)s AND c.name = %(conversation)s)"""


_KEYS = """wanted AS (
    SELECT t.number, t.conversation, t.started, t.name
    FROM unnest(%(conversations)s::text[], %(turns)s::text[]) AS k (conversation, turn)
    JOIN threefold.conversations AS c ON c.owner = %(owner)s AND c.name = k.conversation
    JOIN threefold.turns AS t ON t.owner = %(owner)s AND t.conversation = c.number AND t.name = k.turn
)"""
_NEAR = """near AS (
    SELECT number FROM wanted
    UNION SELECT before.number FROM wanted AS w CROSS JOIN LATERAL (
        SELECT n.number FROM threefold.turns AS n WHERE n.owner = %(owner)s AND n.conversation = w.conversation
        AND (n.started, n.name) < (w.started, w.name) ORDER BY n.started DESC, n.name DESC LIMIT %(around)s) AS before
    UNION SELECT after.number FROM wanted AS w CROSS JOIN LATERAL (
        SELECT n.number FROM threefold.turns AS n WHERE n.owner = %(owner)s AND n.conversation = w.conversation
        AND (n.started, n.name) > (w.started, w.name) ORDER BY n.started, n.name LIMIT %(around)s) AS after
)"""


def rows(db: Db, scope: Scope, keys: Sequence[RowKey], now: datetime, around: int) -> tuple[StoredRow, ...]:
    """Rows of the named turns and their neighbours, in order of conversation and position."""
    named = sorted({(key.conversation, key.turn) for key in keys})
    parts, source = ([_KEYS, _NEAR], "near") if around else ([_KEYS], "wanted")
    found = fetch(
        db,
        f"""WITH {", ".join(parts)}
            SELECT c.name, t.name, t.agent, r.position, {ROW}
            FROM {source} AS n JOIN threefold.turns AS t ON t.owner = %(owner)s AND t.number = n.number
            JOIN threefold.conversations AS c ON c.owner = %(owner)s AND c.number = t.conversation
            JOIN threefold.rows AS r ON r.owner = %(owner)s AND r.turn = t.number
            WHERE {_LIVE} AND (%(app)s::text IS NULL OR t.app = %(app)s)
            ORDER BY c.name, r.position""",
        {
            "owner": owner_key(scope),
            "conversations": [conversation for conversation, _ in named],
            "turns": [turn for _, turn in named],
            "around": around,
            "now": to_micros(now),
            "app": scope.app,
        },
    )
    return tuple(
        StoredRow(RowKey(name, turn, rest[0]), make_row(turn, rest), position, agent)
        for name, turn, agent, position, *rest in found
    )


def turn(db: Db, scope: Scope, conversation: str, name: str, now: datetime) -> StoredTurn | Gone | None:
    """A turn whole, or why it is gone, or None. Everything is asked for at once."""
    mine = {
        "owner": owner_key(scope),
        "conversation": conversation,
        "turn": name,
        "now": to_micros(now),
        "hash": tombstone(conversation, name),
    }
    head = run(
        db,
        f"""SELECT t.state, t.agent, t.app, t.expires, t.digest, t.head, t.log, t.replay, c.title,
                   (SELECT count(*) FROM threefold.turns AS t2 WHERE t2.owner = %(owner)s
                    AND t2.conversation = t.conversation AND (t2.started, t2.name) <= (t.started, t.name)
                    AND {_LIVE.replace("t.", "t2.")})
            FROM threefold.conversations AS c
            JOIN threefold.turns AS t ON t.owner = %(owner)s AND t.conversation = c.number AND t.name = %(turn)s
            WHERE c.owner = %(owner)s AND c.name = %(conversation)s""",
        mine,
    )
    row_list = run(
        db, f"SELECT {ROW} FROM threefold.rows AS r WHERE r.owner = %(owner)s AND r.turn = {_NAMED} ORDER BY r.seq",
        mine,
    )  # fmt: skip
    files = run(
        db,
        f"""SELECT f.path, f.digest, f.size, f.mime FROM threefold.files AS f
            WHERE f.owner = %(owner)s AND f.turn = {_NAMED} ORDER BY f.path""",
        mine,
    )
    reactions = run(
        db,
        f"""SELECT b.reaction, b.at, b.text, b.origin FROM threefold.feedback AS b
            WHERE b.owner = %(owner)s AND b.turn = {_NAMED} ORDER BY b.number""",
        mine,
    )
    buried = run(db, "SELECT why FROM threefold.tombstones WHERE owner = %(owner)s AND hash = %(hash)s", mine)
    found = head.fetchone()
    if found is None:
        why = buried.fetchone()
        return None if why is None else why[0]
    state, agent, app, expires, digest, submitted, log, replay, title, ordinal = found
    if scope.app is not None and app != scope.app:
        raise Forbidden(f"turn {name!r} of conversation {conversation!r} belongs to another app")
    if expires is not None and expires <= to_micros(now):
        return "expired"
    columns = (state, agent, app, expires, digest, submitted, log, replay)
    record = make_record(conversation, name, given(title), columns, row_list.fetchall(), files.fetchall())
    return StoredTurn(record, ordinal, make_feedback(reactions.fetchall()))


def catalog(db: Db, scope: Scope, query: CatalogQuery) -> tuple[CatalogEntry, ...]:
    """Turns in order of their start, newest first where asked; ordinals count within each conversation."""
    mine: dict[str, Any] = {"owner": owner_key(scope), "now": to_micros(query.now), "limit": query.limit}
    conditions = ["t.owner = %(owner)s", _LIVE]
    if query.conversation is not None:
        mine["conversation"] = query.conversation
        conditions.append(
            """t.conversation = (SELECT number FROM threefold.conversations
                                 WHERE owner = %(owner)s AND name = %(conversation)s)"""
        )
    if query.ordinal is not None:
        _nth(query.ordinal, conditions, mine)
    _window(scope, query, conditions, mine)
    order = "DESC" if query.newest_first else "ASC"
    found = fetch(
        db,
        f"""SELECT t.conversation, c.name, t.name, t.started, t.ended, t.status, t.state, about.text, place.first,
                   t.agent, t.app
            FROM threefold.turns AS t
            JOIN threefold.conversations AS c ON c.owner = %(owner)s AND c.number = t.conversation
            LEFT JOIN LATERAL (
                SELECT left(r.text, {2 * ABOUT_SIZE}) AS text FROM threefold.rows AS r
                WHERE r.owner = %(owner)s AND r.turn = t.number AND r.role IN ('summary', 'user', 'assistant')
                ORDER BY CASE r.role WHEN 'summary' THEN 0 WHEN 'user' THEN 1 ELSE 2 END, r.seq LIMIT 1
            ) AS about ON true
            CROSS JOIN LATERAL (
                SELECT coalesce(min(r.position), 0) AS first FROM threefold.rows AS r
                WHERE r.owner = %(owner)s AND r.turn = t.number) AS place
            WHERE {" AND ".join(conditions)}
            ORDER BY t.started {order}, c.name {order}, t.name {order} LIMIT %(limit)s""",
        mine,
    )
    return _numbered(db, scope, query, found)


def _nth(ordinal: int, conditions: list[str], mine: dict[str, Any]) -> None:
    """Only the turn with the ordinal: counted over the conversation, whatever window or app narrows the answer."""
    order = "DESC" if ordinal < 0 else "ASC"
    counted = " AND ".join(conditions)
    conditions.append(
        f"""t.number = (SELECT t.number FROM threefold.turns AS t WHERE {counted}
                       ORDER BY t.started {order}, t.name {order} LIMIT 1 OFFSET %(offset)s)"""
    )
    mine["offset"] = abs(ordinal) - 1


def _window(scope: Scope, query: CatalogQuery, conditions: list[str], mine: dict[str, Any]) -> None:
    for name, condition, moment in (("since", "t.started >=", query.since), ("until", "t.started <", query.until)):
        if moment is not None:
            conditions.append(f"{condition} %({name})s")
            mine[name] = to_micros(moment)
    if scope.app is not None:
        conditions.append("t.app = %(app)s")
        mine["app"] = scope.app
    if query.after is not None:
        comparison = "<" if query.newest_first else ">"
        conditions.append(
            f"(t.started, c.name, t.name) {comparison} (%(after_started)s, %(after_conversation)s, %(after_turn)s)"
        )
        started, mine["after_conversation"], mine["after_turn"] = query.after
        mine["after_started"] = to_micros(started)


def _numbered(db: Db, scope: Scope, query: CatalogQuery, found: Sequence[tuple[Any, ...]]) -> tuple[CatalogEntry, ...]:
    """Entries with their ordinals: counted for the first of each conversation, and from there on in steps of one."""
    step = -1 if query.newest_first else 1
    counted: dict[int, tuple[int, str]] = {}  # conversation → start and name of the turn to count up to
    for parent, _, name, started, *_ in found:
        counted.setdefault(parent, (started, name))
    # Where an app sees only some of the turns, each is counted.
    asked = (
        [(parent, started, name) for parent, _, name, started, *_ in found]
        if scope.app is not None
        else [(parent, *place) for parent, place in counted.items()]
    )
    ordinals = _ordinals(db, owner_key(scope), query.now, asked)
    seen: dict[int, int] = {}
    entries = []
    for parent, conversation, name, started, ended, status, state, about, position, agent, app in found:
        known = ordinals.get((parent, started, name))
        seen[parent] = known if known is not None else seen[parent] + step
        entries.append(
            CatalogEntry(
                conversation,
                name,
                seen[parent],
                from_micros(started),
                from_micros(ended),
                status,
                state,
                (given(about) or "")[:ABOUT_SIZE],
                position,
                agent,
                app,
            )
        )
    return tuple(entries)


def _ordinals(
    db: Db, owner: UUID, now: datetime, places: Sequence[tuple[int, int, str]]
) -> dict[tuple[int, int, str], int]:
    """How many live turns of its conversation start no later than each place."""
    if not places:
        return {}
    found = fetch(
        db,
        f"""SELECT p.conversation, p.started, p.name, counted.n
            FROM unnest(%(parents)s::integer[], %(starts)s::bigint[], %(names)s::text[])
                AS p (conversation, started, name)
            CROSS JOIN LATERAL (
                SELECT count(*) AS n FROM threefold.turns AS t WHERE t.owner = %(owner)s
                AND t.conversation = p.conversation AND (t.started, t.name) <= (p.started, p.name) AND {_LIVE}
            ) AS counted""",
        {
            "owner": owner,
            "now": to_micros(now),
            "parents": [p for p, _, _ in places],
            "starts": [s for _, s, _ in places],
            "names": [n for _, _, n in places],
        },
    )
    return {(parent, started, name): n for parent, started, name, n in found}


def conversations(
    db: Db, scope: Scope, now: datetime, limit: int, after: tuple[datetime, str] | None
) -> tuple[Conversation, ...]:
    """Conversations with at least one live turn, the last active first."""
    mine: dict[str, Any] = {"owner": owner_key(scope), "now": to_micros(now), "limit": limit}
    conditions = ["c.owner = %(owner)s"]
    if scope.app is not None:
        conditions.append("c.app = %(app)s")
        mine["app"] = scope.app
    if after is not None:
        conditions.append("(c.last_activity, c.name) < (%(last)s, %(name)s)")
        mine["last"], mine["name"] = to_micros(after[0]), after[1]
    found = fetch(
        db,
        f"""SELECT c.name, c.title, c.started, c.last_activity, c.turns, c.app FROM threefold.conversations AS c
            WHERE {" AND ".join(conditions)}
              AND EXISTS (SELECT 1 FROM threefold.turns AS t WHERE t.owner = %(owner)s
                          AND t.conversation = c.number AND {_LIVE})
            ORDER BY c.last_activity DESC, c.name DESC LIMIT %(limit)s""",
        mine,
    )
    return tuple(
        Conversation(name, given(title), from_micros(started), from_micros(last), turns, app)
        for name, title, started, last, turns, app in found
    )

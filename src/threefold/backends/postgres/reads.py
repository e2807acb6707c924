"""Reading records back: rows of turns, a turn whole."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from threefold.backends.packing import unpack
from threefold.backends.postgres.connection import Db, fetch, run
from threefold.backends.postgres.keys import given, owner_key
from threefold.backends.postgres.records import LIVE, ROW, TURN, grouped, make_feedback, make_record, make_row
from threefold.errors import Forbidden
from threefold.model.record import StoredTurn, TurnRecord
from threefold.model.retention import Gone, tombstone
from threefold.model.rows import RowKey, StoredRow
from threefold.model.scope import Scope
from threefold.model.times import to_micros

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
# The named rows. OFFSET 0 keeps each look-up one by its whole key: of many, the planner would read all the owner has.
_ALONE = """unnest(%(conversations)s::text[], %(turns)s::text[], %(seqs)s::integer[]) AS k (conversation, turn, seq)
    CROSS JOIN LATERAL (SELECT * FROM threefold.conversations AS c
        WHERE c.owner = %(owner)s AND c.name = k.conversation OFFSET 0) AS c
    CROSS JOIN LATERAL (SELECT * FROM threefold.turns AS t
        WHERE t.owner = %(owner)s AND t.conversation = c.number AND t.name = k.turn OFFSET 0) AS t
    CROSS JOIN LATERAL (SELECT * FROM threefold.rows AS r
        WHERE r.owner = %(owner)s AND r.turn = t.number AND r.seq = k.seq OFFSET 0) AS r"""


def rows(
    db: Db, scope: Scope, keys: Sequence[RowKey], now: datetime, around: int, whole: bool
) -> tuple[StoredRow, ...]:
    """Rows of the named turns and their neighbours, or the named rows, in order of conversation and position."""
    named = sorted({key._replace(seq=0) if whole else key for key in keys})
    parts, source = ([_KEYS, _NEAR], "near") if around else ([_KEYS], "wanted")
    of_turns = f"""{source} AS n JOIN threefold.turns AS t ON t.owner = %(owner)s AND t.number = n.number
        JOIN threefold.conversations AS c ON c.owner = %(owner)s AND c.number = t.conversation
        JOIN threefold.rows AS r ON r.owner = %(owner)s AND r.turn = t.number"""
    found = fetch(
        db,
        f"""{"WITH " + ", ".join(parts) if whole else ""}
            SELECT c.name, t.name, t.agent, r.position, {ROW} FROM {of_turns if whole else _ALONE}
            WHERE {LIVE} AND (%(app)s::text IS NULL OR t.app = %(app)s)
            ORDER BY c.name, r.position""",
        {
            "owner": owner_key(scope),
            "conversations": [key.conversation for key in named],
            "turns": [key.turn for key in named],
            "seqs": [key.seq for key in named],
            "around": around,
            "now": to_micros(now),
            "app": scope.app,
        },
    )
    return tuple(
        StoredRow(RowKey(name, turn, rest[0]), make_row(turn, rest), position, agent)
        for name, turn, agent, position, *rest in found
    )


def records(
    db: Db, scope: Scope, keys: Sequence[tuple[str, str]], now: datetime, with_rows: bool
) -> tuple[TurnRecord, ...]:
    """The records of the named turns that are there and not over, in order of the keys; `with_rows` or without."""
    keys = list(dict.fromkeys(keys))
    mine = _mine(scope, keys)
    heads = run(
        db,
        f"""WITH {_KEYS} SELECT t.number, c.name, t.name, t.title, {TURN}
            FROM wanted AS n JOIN threefold.turns AS t ON t.owner = %(owner)s AND t.number = n.number
            JOIN threefold.conversations AS c ON c.owner = %(owner)s AND c.number = t.conversation""",
        mine,
    )
    every_row = f"""WITH {_KEYS} SELECT r.turn, {ROW} FROM wanted AS n
                    JOIN threefold.rows AS r ON r.owner = %(owner)s AND r.turn = n.number ORDER BY r.turn, r.seq"""
    rows = run(db, every_row, mine) if with_rows else None
    files = run(
        db,
        f"""WITH {_KEYS} SELECT f.turn, f.path, f.digest, f.size, f.mime FROM wanted AS n
            JOIN threefold.files AS f ON f.owner = %(owner)s AND f.turn = n.number ORDER BY f.turn, f.path""",
        mine,
    )
    rows_of = None if rows is None else grouped(rows.fetchall())
    files_of = grouped(files.fetchall())
    found = {}
    for number, conversation, name, title, *columns in heads.fetchall():
        if scope.app is not None and columns[2] != scope.app:
            raise Forbidden(f"turn {name!r} of conversation {conversation!r} belongs to another app")
        if columns[3] is not None and columns[3] <= to_micros(now):
            continue
        own = None if rows_of is None else rows_of.get(number, ()), files_of.get(number, ())
        found[conversation, name] = make_record(conversation, name, given(title), columns, *own)
    return tuple(found[key] for key in keys if key in found)


def replays(
    db: Db, scope: Scope, keys: Sequence[tuple[str, str]], now: datetime
) -> dict[tuple[str, str], dict[str, Any]]:
    """The replay artifacts of the named turns that are there and not over, in order of the keys."""
    keys = list(dict.fromkeys(keys))
    stored = fetch(
        db,
        f"""WITH {_KEYS} SELECT c.name, t.name, t.app, t.expires, t.replay
            FROM wanted AS n JOIN threefold.turns AS t ON t.owner = %(owner)s AND t.number = n.number
            JOIN threefold.conversations AS c ON c.owner = %(owner)s AND c.number = t.conversation""",
        _mine(scope, keys),
    )
    found = {}
    for conversation, name, app, expires, replay in stored:
        if scope.app is not None and app != scope.app:
            raise Forbidden(f"turn {name!r} of conversation {conversation!r} belongs to another app")
        if expires is None or expires > to_micros(now):
            found[conversation, name] = {} if replay is None else unpack(replay)
    return {key: found[key] for key in keys if key in found}


def _mine(scope: Scope, keys: Sequence[tuple[str, str]]) -> dict[str, Any]:
    return {
        "owner": owner_key(scope),
        "conversations": [conversation for conversation, _ in keys],
        "turns": [turn for _, turn in keys],
    }


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
        f"""SELECT {TURN}, c.title,
                   (SELECT count(*) FROM threefold.turns AS t2 WHERE t2.owner = %(owner)s
                    AND t2.conversation = t.conversation AND (t2.started, t2.name) <= (t.started, t.name)
                    AND {LIVE.replace("t.", "t2.")})
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
    *columns, title, ordinal = found
    app, expires = columns[2:4]
    if scope.app is not None and app != scope.app:
        raise Forbidden(f"turn {name!r} of conversation {conversation!r} belongs to another app")
    if expires is not None and expires <= to_micros(now):
        return "expired"
    record = make_record(conversation, name, given(title), columns, row_list.fetchall(), files.fetchall())
    return StoredTurn(record, ordinal, make_feedback(reactions.fetchall()))

"""Writing: what one commit does inside the transaction it is given."""

from __future__ import annotations

import apsw

from threefold.backends.packing import pack, pack_log
from threefold.backends.sqlite.connection import fetch, one, scalar
from threefold.backends.sqlite.indexing import index_row
from threefold.backends.sqlite.keys import find_owner, make_owner
from threefold.backends.sqlite.removal import remove_turns, settle_conversation
from threefold.errors import BytesGone, Forbidden, NotFound
from threefold.model.commit import Commit, Outcome, PutFeedback, Recorded, RecordTurn, supersede
from threefold.model.record import TurnRecord
from threefold.model.retention import tombstone
from threefold.model.scope import Scope
from threefold.model.times import from_micros, to_micros
from threefold.model.titles import title_of
from threefold.ports import Blobs

INSERT_FEEDBACK = "INSERT INTO feedback (owner, turn, origin, reaction, text, at) VALUES (?, ?, ?, ?, ?, ?)"


def apply(db: apsw.Connection, commit: Commit, blobs: Blobs) -> tuple[Outcome, ...]:
    """Apply every write of the commit; raises before anything of it is left."""
    outcomes: list[Outcome] = []
    for write in commit.writes:
        if isinstance(write, RecordTurn):
            outcomes.append(_record(db, commit.scope, write.record, blobs))
        else:
            outcomes.append(_feedback(db, commit.scope, write))
    return tuple(outcomes)


def _record(db: apsw.Connection, scope: Scope, record: TurnRecord, blobs: Blobs) -> Outcome:
    owner = make_owner(db, scope)
    conversation = _find_conversation(db, scope, owner, record.conversation)
    stored = None if conversation is None else recorded(db, owner, conversation, record.turn)
    outcome = supersede(None if stored is None else stored[1], record)
    if outcome == "unchanged":
        return outcome
    reactions = []
    if stored is not None:
        reactions = fetch(db, "SELECT origin, reaction, text, at FROM feedback WHERE turn = ? ORDER BY id", stored[:1])
        remove_turns(db, owner, [stored[0]])
    _secure_blobs(db, scope, record, blobs)
    if conversation is None:
        conversation = make_conversation(db, owner, record, record.app)
    turn = insert(db, owner, conversation, record, _next_position(db, owner, conversation, len(record.rows)))
    if stored is not None:
        settle_conversation(db, owner, conversation)
    db.executemany(INSERT_FEEDBACK, [(owner, turn, *reaction) for reaction in reactions])
    return outcome


def insert(db: apsw.Connection, owner: int, conversation: int, record: TurnRecord, position: int) -> int:
    """Put a turn into every table, its first row at `position`; returns its number."""
    turn = _insert_turn(db, owner, conversation, record)
    _insert_rows(db, owner, conversation, turn, record, position)
    _touch_conversation(db, owner, conversation, record)
    buried = (owner, tombstone(record.conversation, record.turn))
    db.execute("DELETE FROM tombstones WHERE owner = ? AND hash = ?", buried)
    return turn


def _next_position(db: apsw.Connection, owner: int, conversation: int, rows: int) -> int:
    last = scalar(
        db,
        "UPDATE conversations SET positions = positions + ? WHERE owner = ? AND id = ? RETURNING positions",
        (rows, owner, conversation),
    )
    return int(last) - rows + 1


def _find_conversation(db: apsw.Connection, scope: Scope, owner: int, name: str) -> int | None:
    found = one(db, "SELECT id, app FROM conversations WHERE owner = ? AND name = ?", (owner, name))
    if found is None:
        return None
    if found[1] != scope.app and scope.app is not None:
        raise Forbidden(f"conversation {name!r} belongs to another app; use another conversation id")
    return int(found[0])


def recorded(db: apsw.Connection, owner: int, conversation: int, turn: str) -> tuple[int, Recorded] | None:
    """Number of a turn that is there, and what is known of it."""
    found = one(
        db,
        "SELECT id, state, digest, head, ended FROM turns WHERE owner = ? AND conversation = ? AND name = ?",
        (owner, conversation, turn),
    )
    if found is None:
        return None
    number, state, digest, head, ended = found
    return int(number), Recorded(state, bytes(digest).hex(), head, from_micros(ended))


def _secure_blobs(db: apsw.Connection, scope: Scope, record: TurnRecord, blobs: Blobs) -> None:
    """Blobs are written before the commit. Under the write lock, take them off the list of those to delete.

    After an older edition of the turn was removed, since that put its files on the list.
    """
    for file in record.files:
        db.execute(
            "DELETE FROM doomed WHERE tenant = ? AND user = ? AND digest = ?", (scope.tenant, scope.user, file.digest)
        )
        if not blobs.has(scope, file.digest):
            raise BytesGone(f"the bytes of {file.path!r} were removed while the turn was recorded; record it again")


def make_conversation(db: apsw.Connection, owner: int, record: TurnRecord, app: str | None) -> int:
    """The number of a new conversation that begins with this turn."""
    started = to_micros(record.log.started)
    db.execute(
        "INSERT INTO conversations (owner, name, title, app, started, last_activity) VALUES (?, ?, ?, ?, ?, ?)",
        (owner, record.conversation, title_of(record), app, started, to_micros(record.log.ended)),
    )
    return db.last_insert_rowid()


def _insert_turn(db: apsw.Connection, owner: int, conversation: int, record: TurnRecord) -> int:
    log = record.log
    db.execute(
        """INSERT INTO turns (owner, conversation, name, state, status, started, ended, expires, agent, app,
                              digest, head, log, replay, title)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        (
            owner,
            conversation,
            record.turn,
            record.state,
            log.status,
            to_micros(log.started),
            to_micros(log.ended),
            None if record.expires is None else to_micros(record.expires),
            record.agent,
            record.app,
            bytes.fromhex(record.digest),
            record.head,
            pack_log(log, record.rows),
            pack(dict(record.replay)) if record.replay else None,
            record.title or None,
        ),
    )
    return db.last_insert_rowid()


def _insert_rows(
    db: apsw.Connection, owner: int, conversation: int, turn: int, record: TurnRecord, position: int
) -> None:
    db.executemany(
        "INSERT INTO files (turn, path, owner, digest, size, mime) VALUES (?, ?, ?, ?, ?, ?)",
        [(turn, f.path, owner, f.digest, f.size, f.mime) for f in record.files],
    )
    if not record.rows:
        return
    words = sum(len(row.terms) for row in record.rows)
    db.execute("UPDATE owners SET rows = rows + ?, words = words + ? WHERE id = ?", (len(record.rows), words, owner))
    expires = None if record.expires is None else to_micros(record.expires)
    default_batch = f"{record.turn}.batch"
    for row in record.rows:
        batch = None if row.batch == default_batch else row.batch or ""
        db.execute(
            """INSERT INTO rows (owner, conversation, turn, seq, position, role, event_type, path, batch, author, at,
                                 expires, word_count, text)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            (
                owner, conversation, turn, row.seq, position + row.seq, row.role, row.event_type, row.path, batch,
                row.author, to_micros(row.at), expires, len(row.terms), row.text,
            ),
        )  # fmt: skip
        index_row(db, owner, db.last_insert_rowid(), conversation, row)


def _touch_conversation(db: apsw.Connection, owner: int, conversation: int, record: TurnRecord) -> None:
    db.execute(
        """UPDATE conversations SET turns = turns + 1, title = coalesce(?, title),
                  started = min(started, ?), last_activity = max(last_activity, ?)
           WHERE owner = ? AND id = ?""",
        (
            title_of(record) if record.title else None,
            to_micros(record.log.started),
            to_micros(record.log.ended),
            owner,
            conversation,
        ),
    )


def _feedback(db: apsw.Connection, scope: Scope, write: PutFeedback) -> Outcome:
    owner = find_owner(db, scope)
    conversation = None if owner is None else _find_conversation(db, scope, owner, write.conversation)
    turn = None
    if owner is not None and conversation is not None:
        turn = one(
            db,
            "SELECT id FROM turns WHERE owner = ? AND conversation = ? AND name = ?",
            (owner, conversation, write.turn),
        )
    if turn is None:
        raise NotFound(f"turn {write.turn!r} of conversation {write.conversation!r} is not recorded")
    given = write.feedback
    if given is None or given.origin == "user":
        db.execute("DELETE FROM feedback WHERE owner = ? AND turn = ? AND origin = 'user'", (owner, turn[0]))
    if given is None:
        return "replaced"
    db.execute(INSERT_FEEDBACK, (owner, turn[0], given.origin, given.reaction, given.text, to_micros(given.at)))
    return "created"

"""Writing: what one commit does inside the transaction it is given."""

from __future__ import annotations

import apsw

from threefold.backends.packing import pack, pack_log
from threefold.backends.sqlite.connection import fetch, one, scalar
from threefold.backends.sqlite.indexing import index_rows
from threefold.backends.sqlite.keys import WHOSE, find_owner, make_owner
from threefold.backends.sqlite.removal import remove_turns, settle_conversation
from threefold.backends.sqlite.rows import usual_name
from threefold.errors import BytesGone, Forbidden, NotFound
from threefold.model.commit import Commit, Outcome, PutFeedback, Recorded, RecordTurn, outcome_of
from threefold.model.record import TurnRecord
from threefold.model.retention import tombstone
from threefold.model.scope import Scope
from threefold.model.times import from_micros, to_micros
from threefold.model.titles import title_of
from threefold.ports import Blobs
from threefold.text.asking import asks

# The number of a turn that is there, and what is known of it.
Stored = tuple[int, Recorded]

INSERT_FEEDBACK = "INSERT INTO feedback (owner, turn, origin, reaction, text, at) VALUES (?, ?, ?, ?, ?, ?)"


def apply(db: apsw.Connection, commit: Commit, blobs: Blobs) -> tuple[Outcome, ...]:
    """Apply every write of the commit; raises before anything of it is left."""
    outcomes: list[Outcome] = []
    for write in commit.writes:
        if isinstance(write, RecordTurn):
            outcomes.append(_record(db, commit.scope, write, blobs))
        else:
            outcomes.append(_feedback(db, commit.scope, write))
    return tuple(outcomes)


def _record(db: apsw.Connection, scope: Scope, write: RecordTurn, blobs: Blobs) -> Outcome:
    record = write.record
    owner, conversation, stored = _find(db, scope, record.conversation, record.turn)
    outcome = outcome_of(None if stored is None else stored[1], write)
    if outcome == "unchanged":
        return outcome
    if owner is None:
        owner = make_owner(db, scope)
    reactions = []
    if stored is not None:
        reactions = fetch(db, "SELECT origin, reaction, text, at FROM feedback WHERE turn = ? ORDER BY id", stored[:1])
        remove_turns(db, owner, [stored[0]])
    if record.files:
        _secure_blobs(db, scope, record, blobs)
    if conversation is None:
        conversation = make_conversation(db, owner, record, record.app)
    turn = insert(db, owner, conversation, record)
    if stored is not None:
        settle_conversation(db, owner, conversation)
        db.executemany(INSERT_FEEDBACK, [(owner, turn, *reaction) for reaction in reactions])
    return outcome


def insert(db: apsw.Connection, owner: int, conversation: int, record: TurnRecord, position: int | None = None) -> int:
    """Put a turn into every table, its first row at `position`, by default the next one; returns its number."""
    turn = _insert_turn(db, owner, conversation, record)
    last = _touch_conversation(db, owner, conversation, record, len(record.rows) if position is None else 0)
    if record.files:
        db.executemany(
            "INSERT INTO files (turn, path, owner, digest, size, mime) VALUES (?, ?, ?, ?, ?, ?)",
            [(turn, f.path, owner, f.digest, f.size, f.mime) for f in record.files],
        )
    if record.labels:
        db.executemany(
            "INSERT OR IGNORE INTO labels (owner, label, turn) VALUES (?, ?, ?)",
            [(owner, label, turn) for label in record.labels],
        )
    if record.rows:
        first = last - len(record.rows) + 1 if position is None else position
        _insert_rows(db, owner, conversation, turn, record, first)
    buried = (owner, tombstone(record.conversation, record.turn))
    db.execute("DELETE FROM tombstones WHERE owner = ? AND hash = ?", buried)
    return turn


def _find(db: apsw.Connection, scope: Scope, name: str, turn: str) -> tuple[int | None, int | None, Stored | None]:
    """(owner, conversation, turn) as far as they are there; the turn with what is known of it.

    Three statements: SQLite takes several times as long for one that joins the tables.
    """
    owner = find_owner(db, scope)
    if owner is None:
        return None, None, None
    found = one(db, "SELECT id, app FROM conversations WHERE owner = ? AND name = ?", (owner, name))
    if found is None:
        return owner, None, None
    conversation, app = found
    if app != scope.app and scope.app is not None:
        raise Forbidden(f"conversation {name!r} belongs to another app; use another conversation id")
    return owner, conversation, recorded(db, owner, conversation, turn)


def recorded(db: apsw.Connection, owner: int, conversation: int, turn: str) -> Stored | None:
    """Number of a turn that is there, and what is known of it."""
    found = one(
        db,
        "SELECT id, state, digest, head, ended FROM turns WHERE +owner = ? AND conversation = ? AND name = ?",
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
        db.execute(f"DELETE FROM doomed WHERE {WHOSE} AND digest = ?", (*scope.key, file.digest))
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
    expires = None if record.expires is None else to_micros(record.expires)
    default_batch = f"{record.turn}.batch"
    db.executemany(
        """INSERT INTO rows (owner, conversation, turn, seq, position, role, event_type, path, batch, author, at,
                             expires, word_count, asks, text)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        [
            (
                owner, conversation, turn, row.seq, position + row.seq, row.role, *usual_name(row),
                None if row.batch == default_batch else row.batch or "",
                row.author, to_micros(row.at), expires, len(row.terms), asks(row.text), row.text,
            )
            for row in record.rows
        ],
    )  # fmt: skip
    words = sum(len(row.terms) for row in record.rows)
    db.execute("UPDATE owners SET rows = rows + ?, words = words + ? WHERE id = ?", (len(record.rows), words, owner))
    # Under the write lock numbers are given one after the other.
    first = db.last_insert_rowid() - len(record.rows) + 1
    index_rows(db, owner, list(enumerate(record.rows, first)))


def _touch_conversation(db: apsw.Connection, owner: int, conversation: int, record: TurnRecord, positions: int) -> int:
    """Count the turn in, and take so many positions for its rows; returns the last one."""
    last = scalar(
        db,
        """UPDATE conversations SET turns = turns + 1, positions = positions + ?, title = coalesce(?, title),
                  started = min(started, ?), last_activity = max(last_activity, ?)
           WHERE owner = ? AND id = ? RETURNING positions""",
        (
            positions,
            title_of(record) if record.title else None,
            to_micros(record.log.started),
            to_micros(record.log.ended),
            owner,
            conversation,
        ),
    )
    return int(last)


def _feedback(db: apsw.Connection, scope: Scope, write: PutFeedback) -> Outcome:
    owner, _, turn = _find(db, scope, write.conversation, write.turn)
    if owner is None or turn is None:
        raise NotFound(f"turn {write.turn!r} of conversation {write.conversation!r} is not recorded")
    given = write.feedback
    if given is None or given.origin == "user":
        db.execute("DELETE FROM feedback WHERE owner = ? AND turn = ? AND origin = 'user'", (owner, turn[0]))
    if given is None:
        return "replaced"
    db.execute(INSERT_FEEDBACK, (owner, turn[0], given.origin, given.reaction, given.text, to_micros(given.at)))
    return "created"

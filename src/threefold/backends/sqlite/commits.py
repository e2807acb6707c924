"""Writing: what one commit does inside the transaction it is given."""

from __future__ import annotations

import apsw

from threefold.backends.sqlite.connection import one
from threefold.backends.sqlite.keys import WHOSE, find_owner, make_owner
from threefold.backends.sqlite.turns import Stored, change, insert, make_conversation, recorded
from threefold.errors import BytesGone, Forbidden, NotFound
from threefold.model.commit import Commit, Outcome, PutFeedback, RecordTurn, outcome_of
from threefold.model.record import TurnRecord
from threefold.model.scope import Scope
from threefold.model.times import to_micros
from threefold.ports import Blobs

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
    if conversation is None:
        conversation = make_conversation(db, owner, record, record.app)
    if stored is None:
        insert(db, owner, conversation, record)
    else:
        change(db, owner, conversation, stored[0], record)
    if record.files:
        _secure_blobs(db, scope, record, blobs)
    return outcome


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


def _secure_blobs(db: apsw.Connection, scope: Scope, record: TurnRecord, blobs: Blobs) -> None:
    """Blobs are written before the commit. Under the write lock, take them off the list of those to delete.

    After an older edition of the turn went, since that put its files on the list.
    """
    for file in record.files:
        db.execute(f"DELETE FROM doomed WHERE {WHOSE} AND digest = ?", (*scope.key, file.digest))
        if not blobs.has(scope, file.digest):
            raise BytesGone(f"the bytes of {file.path!r} were removed while the turn was recorded; record it again")


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

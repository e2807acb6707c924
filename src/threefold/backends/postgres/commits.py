"""Writing: what one commit does inside the transaction it is given."""

from __future__ import annotations

from threefold.backends.postgres import work as working
from threefold.backends.postgres.connection import Db, run
from threefold.backends.postgres.keys import kept
from threefold.backends.postgres.work import Work
from threefold.errors import BytesGone, Forbidden, NotFound
from threefold.model.commit import Commit, Outcome, PutFeedback, RecordTurn, outcome_of
from threefold.model.record import TurnRecord
from threefold.model.scope import Scope
from threefold.model.times import to_micros
from threefold.ports import Blobs


def apply(db: Db, commit: Commit, blobs: Blobs, again: bool = False) -> tuple[Outcome, ...]:
    """Apply every write of the commit; raises before anything of it is left. `again`: it was tried before.

    Two trips to the server: one locks the owner and looks, the other writes and commits.
    """
    if not commit.writes:
        return ()
    named = [write.record if isinstance(write, RecordTurn) else write for write in commit.writes]
    work = working.begin(db, commit.scope, [(n.conversation, n.turn) for n in named])
    outcomes: list[Outcome] = []
    for write in commit.writes:
        if isinstance(write, RecordTurn):
            outcomes.append(_record(work, commit.scope, write, blobs))
        else:
            outcomes.append(_feedback(work, commit.scope, write, again))
    if any(outcome != "unchanged" for outcome in outcomes):
        work.finish()
    return tuple(outcomes)


def _check_app(work: Work, scope: Scope, conversation: str) -> None:
    found = work.conversations.get(conversation)
    if found is not None and scope.app is not None and found.app != scope.app:
        raise Forbidden(f"conversation {conversation!r} belongs to another app; use another conversation id")


def _record(work: Work, scope: Scope, write: RecordTurn, blobs: Blobs) -> Outcome:
    record = write.record
    _check_app(work, scope, record.conversation)
    stored = work.turns.get((record.conversation, record.turn))
    outcome = outcome_of(None if stored is None else stored[1], write)
    if outcome == "unchanged":
        return outcome
    work.put(record, record.app)
    _secure_blobs(work, scope, record, blobs)
    return outcome


def _secure_blobs(work: Work, scope: Scope, record: TurnRecord, blobs: Blobs) -> None:
    """Blobs are written before the commit. With the owner locked, take them off the list of those to delete.

    After an older edition of the turn went, since that put its files on the list.
    """
    if record.files:
        digests = [file.digest for file in record.files]
        mine = (work.owner.key, digests)
        # Waited for: whoever is deleting one of them holds its entry until it is gone.
        run(
            work.db, "DELETE FROM threefold.doomed WHERE owner = %s AND digest = ANY(%s) RETURNING digest", mine
        ).fetchall()
    for file in record.files:
        if not blobs.has(scope, file.digest):
            raise BytesGone(f"the bytes of {file.path!r} were removed while the turn was recorded; record it again")


def _feedback(work: Work, scope: Scope, write: PutFeedback, again: bool) -> Outcome:
    _check_app(work, scope, write.conversation)
    found = work.turns.get((write.conversation, write.turn))
    if found is None:
        raise NotFound(f"turn {write.turn!r} of conversation {write.conversation!r} is not recorded")
    number, given = found[0], write.feedback
    work.inserts.flush(work.db)
    if given is None or given.origin == "user":
        run(
            work.db,
            "DELETE FROM threefold.feedback WHERE owner = %s AND turn = %s AND origin = 'user'",
            (work.owner.key, number),
        )
    if given is None:
        return "replaced"
    if again:
        # The answer to the first COMMIT may have been lost: then the reaction is there already.
        run(
            work.db,
            """DELETE FROM threefold.feedback WHERE owner = %s AND turn = %s AND origin = %s AND reaction = %s
               AND at = %s AND text IS NOT DISTINCT FROM %s""",
            (work.owner.key, number, given.origin, given.reaction, to_micros(given.at), kept(given.text)),
        )
    work.react(number, given.origin, given.reaction, kept(given.text), to_micros(given.at))
    return "created"

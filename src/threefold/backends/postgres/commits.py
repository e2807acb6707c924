"""Writing: what one commit does inside the transaction it is given."""

from __future__ import annotations

from dataclasses import dataclass, field

from threefold.backends.packing import pack, pack_log, tombstone
from threefold.backends.postgres.connection import Db, fetch, run
from threefold.backends.postgres.indexing import index_row
from threefold.backends.postgres.inserting import Inserts
from threefold.backends.postgres.keys import kept, owner_key
from threefold.backends.postgres.owners import Owner, lock_owner, send_lock
from threefold.backends.postgres.removal import remove_turns, settle_conversations
from threefold.errors import Forbidden, NotFound, Unavailable
from threefold.model.commit import Commit, Outcome, PutFeedback, Recorded, RecordTurn, supersede
from threefold.model.record import TurnRecord
from threefold.model.scope import Scope
from threefold.model.times import from_micros, to_micros
from threefold.model.titles import title_of
from threefold.ports import Blobs


@dataclass
class _Conversation:
    """A conversation as it will stand when the commit is through."""

    number: int
    app: str | None
    title: str
    started: int
    last_activity: int
    turns: int
    positions: int


@dataclass
class _Work:
    """A commit on its way: the locked owner, what is known of the conversations and turns that it names."""

    db: Db
    owner: Owner
    inserts: Inserts
    conversations: dict[str, _Conversation] = field(default_factory=dict)
    turns: dict[tuple[str, str], tuple[int, Recorded]] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)
    resettle: set[int] = field(default_factory=set)


def apply(db: Db, commit: Commit, blobs: Blobs) -> tuple[Outcome, ...]:
    """Apply every write of the commit; raises before anything of it is left.

    Two trips to the server: one locks the owner and looks, the other writes and commits.
    """
    if not commit.writes:
        return ()
    work = _begin(db, commit)
    outcomes: list[Outcome] = []
    for write in commit.writes:
        if isinstance(write, RecordTurn):
            outcomes.append(_record(work, commit.scope, write.record, blobs))
        else:
            outcomes.append(_feedback(work, commit.scope, write))
    _finish(work)
    return tuple(outcomes)


def _begin(db: Db, commit: Commit) -> _Work:
    makes = any(isinstance(write, RecordTurn) for write in commit.writes)
    named = [write.record if isinstance(write, RecordTurn) else write for write in commit.writes]
    key, names = owner_key(commit.scope), sorted({n.conversation for n in named})
    lock = send_lock(db, key)
    conversations = run(
        db,
        """SELECT name, number, app, title, started, last_activity, turns, positions FROM threefold.conversations
           WHERE owner = %s AND name = ANY(%s)""",
        (key, names),
    )
    turns = run(
        db,
        """SELECT c.name, t.name, t.number, t.state, t.digest, t.head, t.ended
           FROM unnest(%s::text[], %s::text[]) AS w (conversation, turn)
           JOIN threefold.conversations AS c ON c.owner = %s AND c.name = w.conversation
           JOIN threefold.turns AS t ON t.owner = %s AND t.conversation = c.number AND t.name = w.turn""",
        ([n.conversation for n in named], [n.turn for n in named], key, key),
    )
    found = lock.fetchone()
    owner = Owner(key, commit.scope.owner, *found) if found else lock_owner(db, commit.scope, makes)
    if owner is None:
        raise NotFound(f"turn {named[0].turn!r} of conversation {named[0].conversation!r} is not recorded")
    if not found and owner.last_number:  # made by another transaction since we looked
        return _begin(db, commit)
    work = _Work(db, owner, Inserts(key))
    work.conversations = {name: _Conversation(*rest) for name, *rest in conversations.fetchall()}
    for conversation, turn, number, state, digest, head, ended in turns.fetchall():
        work.turns[conversation, turn] = (number, Recorded(state, digest.hex(), head, from_micros(ended)))
    return work


def _finish(work: _Work) -> None:
    for name in work.touched:
        c = work.conversations[name]
        work.inserts.add(
            "conversations", c.number, name, kept(c.title), c.app, c.started, c.last_activity, c.turns, c.positions
        )
    work.inserts.flush(work.db)
    if work.resettle:
        settle_conversations(work.db, work.owner.key, sorted(work.resettle))
    if work.touched:
        work.owner.save(work.db)


def _record(work: _Work, scope: Scope, record: TurnRecord, blobs: Blobs) -> Outcome:
    parent = _own_conversation(work, scope, record.conversation)
    stored = work.turns.get((record.conversation, record.turn))
    outcome = supersede(None if stored is None else stored[1], record)
    if outcome == "unchanged":
        return outcome
    reactions = [] if stored is None else _take_out(work, record, stored[0])
    _secure_blobs(work.db, scope, record, blobs)
    if parent is None:
        parent = _make_conversation(work, record)
    number = _insert_turn(work, parent, record)
    _insert_rows(work, parent, number, record)
    for reaction in reactions:
        work.inserts.add("feedback", number, work.owner.number(), *reaction)
    parent.turns += 1
    if record.title:
        parent.title = title_of(record)
    parent.started = min(parent.started, to_micros(record.log.started))
    parent.last_activity = max(parent.last_activity, to_micros(record.log.ended))
    if stored is not None:
        work.resettle.add(parent.number)
    work.touched.add(record.conversation)
    run(
        work.db,
        "DELETE FROM threefold.tombstones WHERE owner = %s AND hash = %s",
        (work.owner.key, tombstone(record.conversation, record.turn)),
    )
    return outcome


def _own_conversation(work: _Work, scope: Scope, name: str) -> _Conversation | None:
    found = work.conversations.get(name)
    if found is not None and scope.app is not None and found.app != scope.app:
        raise Forbidden(f"conversation {name!r} belongs to another app; use another conversation id")
    return found


def _take_out(work: _Work, record: TurnRecord, number: int) -> list[tuple[object, ...]]:
    """Remove an older edition of the turn; returns its reactions."""
    work.inserts.flush(work.db)
    reactions = fetch(
        work.db,
        """SELECT origin, reaction, text, at FROM threefold.feedback WHERE owner = %s AND turn = %s ORDER BY number""",
        (work.owner.key, number),
    )
    remove_turns(work.db, work.owner, [number])
    work.conversations[record.conversation].turns -= 1
    return reactions


def _secure_blobs(db: Db, scope: Scope, record: TurnRecord, blobs: Blobs) -> None:
    """Blobs are written before the commit. With the owner locked, take them off the list of those to delete.

    After an older edition of the turn was removed, since that put its files on the list.
    """
    if not record.files:
        return
    run(
        db,
        "DELETE FROM threefold.doomed WHERE owner = %s AND digest = ANY(%s)",
        (owner_key(scope), [file.digest for file in record.files]),
    )
    for file in record.files:
        if not blobs.has(scope, file.digest):
            raise Unavailable(f"the bytes of {file.path!r} were removed while the turn was recorded; record it again")


def _make_conversation(work: _Work, record: TurnRecord) -> _Conversation:
    started, ended = to_micros(record.log.started), to_micros(record.log.ended)
    made = _Conversation(work.owner.number(), record.app, title_of(record), started, ended, 0, 0)
    work.conversations[record.conversation] = made
    return made


def _insert_turn(work: _Work, parent: _Conversation, record: TurnRecord) -> int:
    log, number = record.log, work.owner.number()
    expires = None if record.expires is None else to_micros(record.expires)
    work.owner.expect(expires)
    work.inserts.add(
        "turns",
        number,
        parent.number,
        record.turn,
        record.state,
        log.status,
        to_micros(log.started),
        to_micros(log.ended),
        expires,
        record.agent,
        record.app,
        bytes.fromhex(record.digest),
        kept(record.head),
        pack_log(log, record.rows),
        pack(dict(record.replay)) if record.replay else None,
        kept(record.title or None),
    )
    for seq, file in enumerate(record.files):
        work.inserts.add("files", number, seq, kept(file.path), file.digest, file.size, kept(file.mime))
    recorded = Recorded(record.state, record.digest, record.head, log.ended)
    work.turns[record.conversation, record.turn] = (number, recorded)
    return number


def _insert_rows(work: _Work, parent: _Conversation, turn: int, record: TurnRecord) -> None:
    expires = None if record.expires is None else to_micros(record.expires)
    default_batch = f"{record.turn}.batch"
    for row in record.rows:
        number = work.owner.number()
        batch = None if row.batch == default_batch else row.batch or ""
        work.inserts.add(
            "rows", number, parent.number, turn, row.seq, parent.positions + 1 + row.seq, row.role, row.event_type,
            kept(row.path), kept(batch), kept(row.author), to_micros(row.at), expires, len(row.terms), kept(row.text),
        )  # fmt: skip
        index_row(work.inserts, work.owner.key, number, row.terms)
        work.inserts.add("waiting", number)
        work.owner.words += len(row.terms)
    parent.positions += len(record.rows)
    work.owner.rows += len(record.rows)


def _feedback(work: _Work, scope: Scope, write: PutFeedback) -> Outcome:
    _own_conversation(work, scope, write.conversation)
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
    # Where this is tried again since the answer to the first COMMIT was lost, the reaction is there already.
    run(
        work.db,
        """DELETE FROM threefold.feedback WHERE owner = %s AND turn = %s AND origin = %s AND reaction = %s
           AND at = %s AND text IS NOT DISTINCT FROM %s""",
        (work.owner.key, number, given.origin, given.reaction, to_micros(given.at), kept(given.text)),
    )
    place = (number, work.owner.number())
    work.inserts.add("feedback", *place, given.origin, given.reaction, kept(given.text), to_micros(given.at))
    work.touched.add(write.conversation)
    return "created"

"""Turns whole, out of this store and into it: what moving from one store to another needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from threefold.backends.postgres import work as working
from threefold.backends.postgres.connection import Db, fetch, planned_anew, run
from threefold.backends.postgres.keys import given, kept, owner_key, vector_text
from threefold.backends.postgres.owners import make_owner
from threefold.backends.postgres.records import ROW, TURN, grouped, make_feedback, make_record
from threefold.backends.postgres.upkeep import check_model
from threefold.backends.postgres.work import Work
from threefold.errors import Conflict
from threefold.model.commit import supersede
from threefold.model.moving import MovedTurn, TurnKey
from threefold.model.record import Feedback
from threefold.model.retention import Gone
from threefold.model.scope import Scope
from threefold.model.times import to_micros

if TYPE_CHECKING:
    import numpy as np


def turn_keys(db: Db, scope: Scope, after: int, limit: int) -> tuple[TurnKey, ...]:
    """A page of the owner's turns in order of arrival."""
    owner = owner_key(scope)
    found = fetch(
        db,
        """SELECT t.number, c.name, t.name, t.digest,
                  (SELECT count(*) FROM threefold.rows AS r
                   JOIN threefold.vectors AS v ON v.owner = %(owner)s AND v.row = r.number
                   WHERE r.owner = %(owner)s AND r.turn = t.number)
           FROM threefold.turns AS t
           JOIN threefold.conversations AS c ON c.owner = %(owner)s AND c.number = t.conversation
           WHERE t.owner = %(owner)s AND t.number > %(after)s ORDER BY t.number LIMIT %(limit)s""",
        {"owner": owner, "after": after, "limit": limit},
    )
    feedback = _feedback(db, owner, [number for number, *_ in found])
    return tuple(
        TurnKey(number, conversation, turn, digest.hex(), vectors, feedback.get(number, ()))
        for number, conversation, turn, digest, vectors in found
    )


def _feedback(db: Db, owner: UUID, turns: Sequence[int]) -> dict[int, tuple[Feedback, ...]]:
    found = fetch(
        db,
        """SELECT turn, reaction, at, text, origin FROM threefold.feedback
           WHERE owner = %s AND turn = ANY(%s::integer[]) ORDER BY turn, number""",
        (owner, list(turns)),
    )
    return {turn: make_feedback(rest) for turn, rest in grouped(found).items()}


def moved(db: Db, scope: Scope, keys: Sequence[TurnKey]) -> tuple[MovedTurn, ...]:
    """The turns that `keys` name, as they are now."""
    owner, wanted = owner_key(scope), {key.arrival: key for key in keys}
    mine = {"owner": owner, "turns": list(wanted)}
    heads = run(
        db,
        f"""SELECT t.number, c.name, c.positions, c.app, t.title, t.name, {TURN}
           FROM threefold.turns AS t
           JOIN threefold.conversations AS c ON c.owner = %(owner)s AND c.number = t.conversation
           WHERE t.owner = %(owner)s AND t.number = ANY(%(turns)s::integer[])""",
        mine,
    )
    rows = run(
        db,
        f"""SELECT r.turn, r.position, {ROW} FROM threefold.rows AS r
            WHERE r.owner = %(owner)s AND r.turn = ANY(%(turns)s::integer[]) ORDER BY r.turn, r.seq""",
        mine,
    )
    files = run(
        db,
        """SELECT turn, path, digest, size, mime FROM threefold.files
           WHERE owner = %(owner)s AND turn = ANY(%(turns)s::integer[]) ORDER BY turn, path""",
        mine,
    )
    vectors = run(
        db,
        """SELECT r.turn, r.seq, halfvec_send(v.embedding) FROM threefold.rows AS r
           JOIN threefold.vectors AS v ON v.owner = %(owner)s AND v.row = r.number
           WHERE r.owner = %(owner)s AND r.turn = ANY(%(turns)s::integer[])""",
        mine,
    )
    feedback = _feedback(db, owner, list(wanted))
    rows_of, files_of, vectors_of = (grouped(cursor.fetchall()) for cursor in (rows, files, vectors))
    found = {}
    for number, conversation, positions, made_by, title, turn, *rest in heads.fetchall():
        if wanted[number].name == (conversation, turn):
            own = rows_of.get(number, [])
            record = make_record(
                conversation, turn, given(title), rest, [row for _, *row in own], files_of.get(number, [])
            )
            found[number] = MovedTurn(
                record,
                own[0][0] if own else 0,
                positions,
                made_by,
                feedback.get(number, ()),
                {seq: _vector(data) for seq, data in vectors_of.get(number, [])},
            )
    return tuple(found[key.arrival] for key in keys if key.arrival in found)


def _vector(data: bytes) -> np.ndarray:
    """pgvector's binary form of a half vector: two numbers of two bytes, then the elements, big-endian."""
    import numpy as np

    return np.frombuffer(data[4:], dtype=">f2").astype("<f2")


def receive(db: Db, scope: Scope, turns: Sequence[MovedTurn], model: str | None) -> int:
    """Take in turns; returns how many are new or replaced."""
    for dimensions in {vector.shape[0] for turn in turns for vector in turn.vectors.values()}:
        check_model(db, str(model), dimensions)
    if not turns:
        return 0
    work = working.begin(db, scope, [(turn.record.conversation, turn.record.turn) for turn in turns])
    there: list[tuple[int, MovedTurn]] = []
    count = 0
    for turn in turns:
        if _receive(work, turn, there):
            count += 1
    _bring_in_step(work, there)
    work.finish()
    return count


def _receive(work: Work, turn: MovedTurn, there: list[tuple[int, MovedTurn]]) -> bool:
    record = turn.record
    parent = work.conversations.get(record.conversation)
    if parent is not None and parent.app != turn.made_by:
        raise Conflict(
            f"conversation {record.conversation!r} is there and app {parent.app!r} made it, not {turn.made_by!r}; "
            "remove one"
        )
    stored = work.turns.get((record.conversation, record.turn))
    outcome = supersede(None if stored is None else stored[1], record)
    if stored is not None and outcome == "unchanged":
        if stored[1].digest == record.digest:
            there.append((stored[0], turn))
        return False
    number = work.put(record, turn.made_by, turn.position, turn.vectors)
    if record.files:
        run(
            work.db,
            "DELETE FROM threefold.doomed WHERE owner = %s AND digest = ANY(%s)",
            (work.owner.key, [file.digest for file in record.files]),
        )
    parent = work.conversations[record.conversation]
    parent.positions = max(parent.positions, turn.positions)
    if stored is not None:
        there.append((number, turn))
        return True
    for given_ in turn.feedback:
        work.react(number, *_kept_feedback(given_))
    return True


def _kept_feedback(given_: Feedback) -> tuple[object, ...]:
    return given_.origin, given_.reaction, kept(given_.text), to_micros(given_.at)


def _bring_in_step(work: Work, there: Sequence[tuple[int, MovedTurn]]) -> None:
    """Turns that were there already get the feedback of the others, and vectors for rows that wait."""
    if not there:
        return
    work.inserts.flush(work.db)
    numbers = [number for number, _ in there]
    stored = _feedback(work.db, work.owner.key, numbers)
    waiting = grouped(
        fetch(
            work.db,
            """SELECT r.turn, r.seq, r.number FROM threefold.rows AS r
               JOIN threefold.waiting AS w ON w.owner = %(owner)s AND w.row = r.number
               WHERE r.owner = %(owner)s AND r.turn = ANY(%(turns)s::integer[])""",
            {"owner": work.owner.key, "turns": numbers},
        )
    )
    embedded = []
    for number, turn in there:
        if stored.get(number, ()) != turn.feedback:
            run(work.db, "DELETE FROM threefold.feedback WHERE owner = %s AND turn = %s", (work.owner.key, number))
            for given_ in turn.feedback:
                work.react(number, *_kept_feedback(given_))
        for seq, row in waiting.get(number, []):
            if seq in turn.vectors:
                work.inserts.add("vectors", row, vector_text(turn.vectors[seq]))
                embedded.append(row)
    with planned_anew(work.db):
        run(
            work.db,
            "DELETE FROM threefold.waiting WHERE owner = %s AND row = ANY(%s::integer[])",
            (work.owner.key, embedded),
        )


def tombstones(db: Db, scope: Scope) -> dict[bytes, Gone]:
    """The owner's tombstones."""
    return dict(fetch(db, "SELECT hash, why FROM threefold.tombstones WHERE owner = %s", (owner_key(scope),)))


def bury(db: Db, scope: Scope, buried: Mapping[bytes, Gone]) -> None:
    """Add tombstones; those that are there stay as they are."""
    if buried:
        make_owner(db, scope)
        run(
            db,
            """INSERT INTO threefold.tombstones (owner, hash, why)
               SELECT %s, u.hash, u.why FROM unnest(%s::bytea[], %s::text[]) AS u (hash, why) ON CONFLICT DO NOTHING""",
            (owner_key(scope), list(buried), list(buried.values())),
        )

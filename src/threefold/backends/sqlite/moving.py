"""Turns whole, out of this store and into it: what moving from one store to another needs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import apsw

from threefold.backends.sqlite.commits import INSERT_FEEDBACK
from threefold.backends.sqlite.connection import fetch, one
from threefold.backends.sqlite.keys import WHOSE, find_owner, make_owner
from threefold.backends.sqlite.records import read_feedback, read_record
from threefold.backends.sqlite.turns import change, insert, make_conversation, recorded
from threefold.backends.sqlite.upkeep import agree_on_model, store_vectors
from threefold.errors import Conflict
from threefold.model.commit import supersede
from threefold.model.moving import MovedTurn, TurnKey
from threefold.model.record import Feedback
from threefold.model.retention import Gone
from threefold.model.scope import Scope
from threefold.model.times import to_micros

if TYPE_CHECKING:
    import numpy as np


def turn_keys(db: apsw.Connection, scope: Scope, after: int, limit: int) -> tuple[TurnKey, ...]:
    """A page of the owner's turns in order of arrival."""
    owner = find_owner(db, scope)
    # By the owner's index: in order of the primary key, SQLite would go through everyone's turns.
    found = fetch(
        db,
        """SELECT t.id, c.name, t.name, t.digest,
                  (SELECT count(*) FROM rows AS r JOIN vectors AS v ON v.owner = t.owner AND v.row = r.id
                   WHERE +r.owner = t.owner AND r.turn = t.id)
           FROM turns AS t INDEXED BY turns_of_owner JOIN conversations AS c ON c.id = t.conversation
           WHERE t.owner = ? AND t.id > ? ORDER BY t.id LIMIT ?""",
        (owner, after, limit),
    )
    reacted = fetch(
        db,
        "SELECT DISTINCT turn FROM feedback WHERE +owner = ? AND turn IN (SELECT value FROM json_each(?))",
        (owner, json.dumps([number for number, *_ in found])),
    )
    feedback = {} if owner is None else {number: read_feedback(db, owner, number) for (number,) in reacted}
    return tuple(
        TurnKey(number, conversation, turn, bytes(digest).hex(), vectors, feedback.get(number, ()))
        for number, conversation, turn, digest, vectors in found
    )


def moved(db: apsw.Connection, scope: Scope, keys: Sequence[TurnKey]) -> tuple[MovedTurn, ...]:
    """The turns that `keys` name, as they are now."""
    owner = find_owner(db, scope)
    if owner is None:
        return ()
    turns = (_moved(db, owner, key) for key in keys)
    return tuple(turn for turn in turns if turn is not None)


def _moved(db: apsw.Connection, owner: int, key: TurnKey) -> MovedTurn | None:
    found = one(
        db,
        """SELECT c.positions, c.app, (SELECT min(position) FROM rows WHERE +owner = t.owner AND turn = t.id)
           FROM turns AS t JOIN conversations AS c ON c.id = t.conversation
           WHERE t.id = ? AND +t.owner = ? AND c.name = ? AND t.name = ?""",
        (key.arrival, owner, *key.name),
    )
    if found is None:
        return None
    positions, app, first = found
    record = read_record(db, owner, key.arrival)
    feedback = read_feedback(db, owner, key.arrival)
    return MovedTurn(record, first or 0, positions, app, feedback, _vectors(db, owner, key.arrival))


def _vectors(db: apsw.Connection, owner: int, turn: int) -> dict[int, np.ndarray]:
    import numpy as np

    found = fetch(
        db,
        """SELECT r.seq, v.embedding FROM rows AS r JOIN vectors AS v ON v.owner = ? AND v.row = r.id
           WHERE +r.owner = ? AND r.turn = ? ORDER BY r.seq""",
        (owner, owner, turn),
    )
    return {seq: np.frombuffer(embedding, dtype="<f2") for seq, embedding in found}


def receive(db: apsw.Connection, scope: Scope, turns: Sequence[MovedTurn], model: str | None) -> int:
    """Take in turns; returns how many are new or replaced."""
    sizes = {vector.shape[0] for turn in turns for vector in turn.vectors.values()}
    for dimensions in sizes:
        agree_on_model(db, str(model), dimensions)
    if not turns:
        return 0
    owner = make_owner(db, scope)
    return sum(_receive(db, scope, owner, turn) for turn in turns)


def _receive(db: apsw.Connection, scope: Scope, owner: int, turn: MovedTurn) -> bool:
    record = turn.record
    conversation = _conversation(db, owner, turn)
    stored = None if conversation is None else recorded(db, owner, conversation, record.turn)
    outcome = supersede(None if stored is None else stored[1], record)
    if stored is not None and outcome == "unchanged":
        if stored[1].digest == record.digest:
            _bring_in_step(db, owner, stored[0], turn)
        return False
    if conversation is None:
        conversation = make_conversation(db, owner, record, turn.made_by)
    if stored is None:
        number = insert(db, owner, conversation, record, turn.position)
    else:
        number = stored[0]
        change(db, owner, conversation, number, record, turn.position)
    db.executemany(
        f"DELETE FROM doomed WHERE {WHOSE} AND digest = ?",
        [(*scope.key, file.digest) for file in record.files],
    )
    db.execute(
        "UPDATE conversations SET positions = max(positions, ?) WHERE owner = ? AND id = ?",
        (turn.positions, owner, conversation),
    )
    _bring_in_step(db, owner, number, turn)
    return True


def _conversation(db: apsw.Connection, owner: int, turn: MovedTurn) -> int | None:
    name = turn.record.conversation
    found = one(db, "SELECT id, app FROM conversations WHERE owner = ? AND name = ?", (owner, name))
    if found is None:
        return None
    if found[1] != turn.made_by:
        raise Conflict(f"conversation {name!r} is there and app {found[1]!r} made it, not {turn.made_by!r}; remove one")
    return int(found[0])


def _bring_in_step(db: apsw.Connection, owner: int, number: int, turn: MovedTurn) -> None:
    if read_feedback(db, owner, number) != turn.feedback:
        db.execute("DELETE FROM feedback WHERE +owner = ? AND turn = ?", (owner, number))
        db.executemany(INSERT_FEEDBACK, [_feedback_values(owner, number, given) for given in turn.feedback])
    waiting = fetch(
        db,
        "SELECT r.seq, r.id FROM rows AS r JOIN waiting AS w ON w.row = r.id WHERE +r.owner = ? AND r.turn = ?",
        (owner, number),
    )
    store_vectors(db, [((owner, row), turn.vectors[seq]) for seq, row in waiting if seq in turn.vectors])


def _feedback_values(owner: int, number: int, given: Feedback) -> tuple[object, ...]:
    return owner, number, given.origin, given.reaction, given.text, to_micros(given.at)


def tombstones(db: apsw.Connection, scope: Scope) -> dict[bytes, Gone]:
    """The owner's tombstones."""
    found = fetch(db, "SELECT hash, why FROM tombstones WHERE owner = ?", (find_owner(db, scope),))
    return {bytes(buried): why for buried, why in found}


def bury(db: apsw.Connection, scope: Scope, tombstones: Mapping[bytes, Gone]) -> None:
    """Add tombstones; those that are there stay as they are."""
    owner = make_owner(db, scope)
    db.executemany(
        "INSERT OR IGNORE INTO tombstones (owner, hash, why) VALUES (?, ?, ?)",
        [(owner, buried, why) for buried, why in tombstones.items()],
    )

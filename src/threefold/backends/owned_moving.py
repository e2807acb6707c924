"""Turns whole, out of what the memory back end holds of one owner and into it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from threefold.backends.owned import Kept, Owned
from threefold.errors import Conflict
from threefold.model.commit import supersede
from threefold.model.moving import MovedTurn, TurnKey
from threefold.model.rows import RowKey


def turn_keys(owner: Owned) -> Iterator[TurnKey]:
    """Every turn in order of arrival, which is the order in which a dictionary holds them."""
    for (conversation, turn), kept in owner.turns.items():
        vectors = sum(RowKey(conversation, turn, row.seq) in owner.vectors for row in kept.record.rows)
        yield TurnKey(kept.arrival, conversation, turn, kept.record.digest, vectors, tuple(kept.feedback))


def moved(owner: Owned, keys: Sequence[TurnKey]) -> tuple[MovedTurn, ...]:
    """The turns that `keys` name, as they are now."""
    found = ((key, owner.turns.get(key.name)) for key in keys)
    return tuple(_moved(owner, kept) for key, kept in found if kept is not None and kept.arrival == key.arrival)


def _moved(owner: Owned, kept: Kept) -> MovedTurn:
    record = kept.record
    parent = owner.conversations[record.conversation]
    rows = tuple(row._replace(terms=()) for row in record.rows)
    files = tuple(sorted(record.files, key=lambda file: file.path))
    keys = {row.seq: RowKey(record.conversation, record.turn, row.seq) for row in rows}
    return MovedTurn(
        replace(record, rows=rows, files=files, title=record.title or None),
        kept.first_position if rows else 0,
        parent.positions,
        parent.app,
        tuple(kept.feedback),
        {seq: owner.vectors[key] for seq, key in keys.items() if key in owner.vectors},
    )


def receive(owner: Owned, turn: MovedTurn) -> bool:
    """Take in a turn; False where it was there.

    Raises:
        Conflict: another turn is recorded under its id, or another app made the conversation.
    """
    record = turn.record
    key = (record.conversation, record.turn)
    parent = owner.conversations.get(record.conversation)
    if parent is not None and parent.app != turn.made_by:
        raise Conflict(
            f"conversation {record.conversation!r} is there and app {parent.app!r} made it, not {turn.made_by!r}; "
            "remove one"
        )
    old = owner.turns.get(key)
    known = None if old is None else old.recorded
    new = supersede(known, record) != "unchanged"
    if new:
        owner.put(record, turn.made_by, turn.position)
        parent = owner.conversations[record.conversation]
        parent.positions = max(parent.positions, turn.positions)
    if owner.turns[key].record.digest == record.digest:
        owner.turns[key].feedback = list(turn.feedback)
        for seq, vector in turn.vectors.items():
            if owner.waiting.pop(RowKey(*key, seq), None) is not None:
                owner.vectors[RowKey(*key, seq)] = vector.astype("<f4")
    return new

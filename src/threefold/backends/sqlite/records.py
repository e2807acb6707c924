"""A turn's record put together from its tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from threefold.backends.packing import unpack, unpack_log
from threefold.backends.sqlite.connection import fetch
from threefold.backends.sqlite.rows import ROW, make_row
from threefold.model.record import Feedback, FileEntry, TurnRecord
from threefold.model.times import from_micros


def read_record(db: apsw.Connection, owner: int, number: int) -> TurnRecord:
    """The record of a turn that is there, with the title that the turn itself gave; its rows have no terms."""
    return read_records(db, owner, [number])[0]


def read_records(
    db: apsw.Connection, owner: int, numbers: Sequence[int], with_rows: bool = True
) -> tuple[TurnRecord, ...]:
    """The records of turns that are there, in their order: four statements, however many; or three, `with_rows` off."""
    mine = (json.dumps(numbers), owner)
    heads = fetch(
        db,
        """SELECT c.name, t.id, t.name, t.state, t.agent, t.app, t.expires, t.digest, t.head, t.log, t.replay, t.title
           FROM json_each(?) AS wanted CROSS JOIN turns AS t ON t.id = wanted.value AND +t.owner = ?
           CROSS JOIN conversations AS c ON c.id = t.conversation ORDER BY wanted.key""",
        mine,
    )
    of_turn = "FROM json_each(?) AS wanted CROSS JOIN {0} AS r ON r.turn = wanted.value AND +r.owner = ? ORDER BY {1}"
    every_row = f"SELECT r.turn, {ROW} {of_turn.format('rows', 'r.turn, r.seq')}"
    rows = _grouped(fetch(db, every_row, mine)) if with_rows else None
    files = _grouped(
        fetch(db, f"SELECT r.turn, r.path, r.digest, r.size, r.mime {of_turn.format('files', 'r.turn, r.path')}", mine)
    )
    labels = _grouped(fetch(db, f"SELECT r.turn, r.label {of_turn.format('labels', 'r.turn, r.label')}", mine))
    found = []
    for head in heads:
        number = head[1]
        own = None if rows is None else rows.get(number, ())
        found.append(_record(head, own, files.get(number, ()), labels.get(number, ())))
    return tuple(found)


def _grouped(found: Sequence[tuple[Any, ...]]) -> Mapping[int, list[Sequence[Any]]]:
    """What was found by its first column, the turn's number."""
    groups: dict[int, list[Sequence[Any]]] = {}
    for turn, *rest in found:
        groups.setdefault(turn, []).append(rest)
    return groups


def _record(
    head: Sequence[Any],
    rows: Sequence[Sequence[Any]] | None,
    files: Sequence[Sequence[Any]],
    labels: Sequence[Sequence[Any]],
) -> TurnRecord:
    conversation, _, name, state, agent, app, expires, digest, submitted, log, replay, title = head
    own = tuple(make_row(name, *row) for row in rows or ())
    return TurnRecord(
        conversation=conversation,
        turn=name,
        state=state,
        log=unpack_log(bytes(log), None if rows is None else {row.seq: row.text for row in own}),
        rows=own,
        files=tuple(FileEntry(*file) for file in files),
        replay={} if replay is None else unpack(bytes(replay)),
        digest=bytes(digest).hex(),
        head=submitted,
        title=title,
        app=app,
        agent=agent,
        expires=None if expires is None else from_micros(expires),
        labels=tuple(label for (label,) in labels),
    )


def read_feedback(db: apsw.Connection, owner: int, number: int) -> tuple[Feedback, ...]:
    """Reactions to a turn, in order of arrival."""
    found = fetch(
        db, "SELECT reaction, at, text, origin FROM feedback WHERE owner = ? AND turn = ? ORDER BY id", (owner, number)
    )
    return tuple(Feedback(reaction, from_micros(at), text, origin) for reaction, at, text, origin in found)

"""A turn's record put together from its tables."""

from __future__ import annotations

import apsw

from threefold.backends.packing import unpack, unpack_log
from threefold.backends.sqlite.connection import fetch
from threefold.backends.sqlite.rows import ROW, make_row
from threefold.model.record import Feedback, FileEntry, TurnRecord
from threefold.model.times import from_micros


def read_record(db: apsw.Connection, owner: int, number: int, conversation: str) -> TurnRecord:
    """The record of a turn that is there, with the title that the turn itself gave; its rows have no terms."""
    mine = (owner, number)
    ((name, state, agent, app, expires, digest, head, log, replay, title),) = fetch(
        db,
        """SELECT name, state, agent, app, expires, digest, head, log, replay, title FROM turns
           WHERE +owner = ? AND id = ?""",
        mine,
    )
    rows = tuple(
        make_row(name, *rest)
        for rest in fetch(db, f"SELECT {ROW} FROM rows AS r WHERE +owner = ? AND turn = ? ORDER BY seq", mine)
    )
    return TurnRecord(
        conversation=conversation,
        turn=name,
        state=state,
        log=unpack_log(bytes(log), {row.seq: row.text for row in rows}),
        rows=rows,
        files=_files(db, owner, number),
        replay={} if replay is None else unpack(bytes(replay)),
        digest=bytes(digest).hex(),
        head=head,
        title=title,
        app=app,
        agent=agent,
        expires=None if expires is None else from_micros(expires),
        labels=tuple(label for (label,) in fetch(db, "SELECT label FROM labels WHERE +owner = ? AND turn = ?", mine)),
    )


def _files(db: apsw.Connection, owner: int, number: int) -> tuple[FileEntry, ...]:
    found = fetch(
        db, "SELECT path, digest, size, mime FROM files WHERE owner = ? AND turn = ? ORDER BY path", (owner, number)
    )
    return tuple(FileEntry(*entry) for entry in found)


def read_feedback(db: apsw.Connection, owner: int, number: int) -> tuple[Feedback, ...]:
    """Reactions to a turn, in order of arrival."""
    found = fetch(
        db, "SELECT reaction, at, text, origin FROM feedback WHERE owner = ? AND turn = ? ORDER BY id", (owner, number)
    )
    return tuple(Feedback(reaction, from_micros(at), text, origin) for reaction, at, text, origin in found)

"""Values of the model put together from columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from threefold.backends.packing import unpack, unpack_log
from threefold.backends.postgres.keys import given
from threefold.model.record import Feedback, FileEntry, TurnRecord
from threefold.model.rows import Row
from threefold.model.times import from_micros

# Of a turn `t`: its time to live is not over.
LIVE = "(t.expires IS NULL OR t.expires > %(now)s)"
TURN = """t.state, t.agent, t.app, t.expires, t.digest, t.head, t.log, t.replay, ARRAY(
    SELECT l.label FROM threefold.labels AS l WHERE l.owner = %(owner)s AND l.turn = t.number ORDER BY l.label)"""
ROW = "r.seq, r.role, r.event_type, r.path, r.text, r.at, r.batch, r.author"


def make_row(turn: str, columns: Sequence[Any]) -> Row:
    """A row of the turn from the columns of `ROW`."""
    seq, role, event_type, path, text, at, batch, author = columns
    # NULL stands for the turn's own batch, an empty text for none.
    own_batch = f"{turn}.batch" if batch is None else given(batch) or None
    return Row(seq, role, event_type, given(path), given(text), from_micros(at), own_batch, given(author))


def make_feedback(rows: Iterable[Sequence[Any]]) -> tuple[Feedback, ...]:
    """Reactions from (reaction, at, text, origin)."""
    return tuple(Feedback(reaction, from_micros(at), given(text), origin) for reaction, at, text, origin in rows)


def make_files(rows: Iterable[Sequence[Any]]) -> tuple[FileEntry, ...]:
    """Files from (path, digest, size, mime)."""
    return tuple(FileEntry(given(path), digest, size, given(mime)) for path, digest, size, mime in rows)


def make_record(
    conversation: str,
    turn: str,
    title: str | None,
    columns: Sequence[Any],
    rows: Iterable[Sequence[Any]] | None,
    files: Iterable[Sequence[Any]],
) -> TurnRecord:
    """A turn from `TURN`'s columns, its rows, None where these were not read, and its files."""
    state, agent, app, expires, digest, head, log, replay, labels = columns
    own_rows = tuple(make_row(turn, row) for row in rows or ())
    return TurnRecord(
        conversation=conversation,
        turn=turn,
        state=state,
        log=unpack_log(log, None if rows is None else {row.seq: row.text for row in own_rows}),
        rows=own_rows,
        files=make_files(files),
        replay={} if replay is None else unpack(replay),
        digest=digest.hex(),
        head=given(head),
        title=title,
        app=app,
        agent=agent,
        expires=None if expires is None else from_micros(expires),
        labels=tuple(labels),
    )


def grouped(rows: Sequence[tuple[Any, ...]]) -> dict[int, list[tuple[Any, ...]]]:
    """Rows by their first column, the turn's number."""
    groups: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for turn, *rest in rows:
        groups[turn].append(tuple(rest))
    return groups

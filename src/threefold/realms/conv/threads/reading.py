"""Reading a thread from its end: the turns of the window, and those before it that no kept summary covers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import Final, NamedTuple

from threefold.model.record import CatalogEntry
from threefold.model.rows import RowKey, StoredRow
from threefold.model.scope import Scope
from threefold.ports import CatalogQuery, Store
from threefold.realms.conv.refs import ref_for
from threefold.realms.conv.threads.keeping import Mark, Summary
from threefold.realms.conv.view import Message

# Turns that are read first: with answers they are the window and what is not summarised yet. And at most at once then.
_FIRST, _MOST = 40, 500
_SPEAKERS: Final = ("user", "assistant")


class Said(NamedTuple):
    """A turn and its messages, in order of time."""

    entry: CatalogEntry
    messages: tuple[Message, ...]


class Stretch(NamedTuple):
    """The last turns of a thread, oldest first, whole: all that is behind `covered`, a kept summary, or all there is.

    `covered` is None where no summary was kept, or it is not of what is recorded now, or covers some of the window.
    """

    turns: tuple[Said, ...]
    covered: Summary | None

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of the turns."""
        return tuple(message for said in self.turns for message in said.messages)


def read_stretch(
    store: Store, scope: Scope, conversation: str, now: datetime, window: int, summary: Summary | None
) -> Stretch:
    """The last `window` messages at least, and those before them back to what the summary covers.

    What is read does not grow with the conversation, as long as its summary is kept up.
    """
    newest_first: list[Said] = []
    messages, after, limit = 0, None, _FIRST
    while True:
        query = CatalogQuery(now, conversation, newest_first=True, limit=limit, after=after)
        page = store.catalog(scope, query)
        for said in _said(store, scope, page, now):
            if summary is not None and said.entry.turn == summary.mark.turn:
                if messages >= window and Mark.of(said.entry) == summary.mark:
                    return Stretch(tuple(reversed(newest_first)), summary)
                summary = None
            newest_first.append(said)
            messages += len(said.messages)
        if len(page) < limit:
            return Stretch(tuple(reversed(newest_first)), None)
        after = (page[-1].started, page[-1].conversation, page[-1].turn)
        to_mark = _MOST if summary is None else page[-1].ordinal - summary.mark.ordinal
        limit = min(to_mark, _MOST) if to_mark > 0 else _MOST


def _said(store: Store, scope: Scope, page: Sequence[CatalogEntry], now: datetime) -> list[Said]:
    keys = [RowKey(entry.conversation, entry.turn, 0) for entry in page]
    rows: dict[str, list[StoredRow]] = {entry.turn: [] for entry in page}
    for row in store.rows(scope, keys, now) if keys else ():
        if row.row.role in _SPEAKERS:
            rows[row.key.turn].append(row)
    return [Said(entry, _messages(rows[entry.turn])) for entry in page]


def _messages(rows: list[StoredRow]) -> tuple[Message, ...]:
    rows.sort(key=lambda stored: (stored.row.at, stored.key.seq))
    return tuple(
        Message(
            role=row.role,
            kind=row.event_type.rpartition(".")[2],
            text=row.text,
            at=row.at,
            ref=ref_for(key.conversation, key.turn, row.path),
            batch=row.batch,
            author=row.author,
        )
        for key, row, *_ in rows
    )


def parts(turns: Sequence[Said], window: int, step: int) -> list[tuple[Said, ...]]:
    """Turns that left the window whole, in parts of at least `step` messages; the last ones may be left for later."""
    left = sum(len(said.messages) for said in turns) - window
    made: list[tuple[Said, ...]] = []
    part: list[Said] = []
    for said in turns:
        left -= len(said.messages)
        if left < 0:
            break
        part.append(said)
        if sum(len(each.messages) for each in part) >= step:
            made.append(tuple(part))
            part = []
    return made


def joined(made: Sequence[tuple[Said, ...]], separate: int) -> list[tuple[Said, ...]]:
    """The parts with all but the last few, `separate`, made one: what is far behind is summarised at once."""
    behind = max(0, len(made) - separate)
    first = tuple(said for part in islice(made, behind) for said in part)
    return [*([first] if first else []), *made[behind:]]

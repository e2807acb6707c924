"""The record of a turn as it is kept: the TurnLog, its content rows and its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

from threefold.model.kinds import State, Status
from threefold.model.paging import Cursor
from threefold.model.rows import Row

LOG_VERSION = "conv.turnlog.v1"
TIMELINE_VERSION = "conv.timeline.v1"


@dataclass(frozen=True, slots=True)
class Block:
    """One entry of a TurnLog. `path` is the body of its reference, such as `user.prompt.1`."""

    type: str
    path: str
    at: datetime
    text: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TurnLog:
    """The envelope of one turn and its blocks in order.

    `counts` is the number of blocks by type, `redacted` that of things that were taken out of its texts, by kind.
    """

    turn: str
    started: datetime
    ended: datetime
    status: Status
    blocks: tuple[Block, ...]
    sources: tuple[Mapping[str, Any], ...] = ()
    tokens: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None
    origin: Mapping[str, Any] = field(default_factory=dict)
    redacted: Mapping[str, int] = field(default_factory=dict)


class FileEntry(NamedTuple):
    """A file that belongs to a turn: where it is named, and which bytes it is (SHA-256 in hex)."""

    path: str
    digest: str
    size: int
    mime: str | None = None


@dataclass(frozen=True, slots=True)
class Feedback:
    """A reaction to a turn: one by the person (replaced), any number by machines."""

    reaction: Literal["ok", "not_ok", "neutral"]
    at: datetime
    text: str | None = None
    origin: Literal["user", "machine"] = "user"


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """Everything that one turn leaves behind, ready to be committed.

    `digest` identifies the content, `head` the submissions only: a later recording with the same head is a fuller
    edition of the same turn. `expires` is the end of its time to live, or None for no end. `labels` are what it can be
    asked for by.
    """

    conversation: str
    turn: str
    state: State
    log: TurnLog
    rows: tuple[Row, ...]
    files: tuple[FileEntry, ...]
    replay: Mapping[str, Any]
    digest: str
    head: str
    title: str | None = None
    app: str | None = None
    agent: str | None = None
    expires: datetime | None = None
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A turn as it comes back: the record with its ordinal in the conversation (1 = first) and feedback."""

    record: TurnRecord
    ordinal: int
    feedback: tuple[Feedback, ...] = ()


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One turn in a list: when, how it ended and what it was about (at most 800 characters).

    `position` is that of its first content row in the conversation, in order of arrival; 0 where it has none.
    """

    conversation: str
    turn: str
    ordinal: int
    started: datetime
    ended: datetime
    status: Status
    state: State
    about: str
    position: int
    agent: str | None = None
    app: str | None = None

    @property
    def cursor(self) -> Cursor:
        """Where a page that ends with it ended."""
        return Cursor(self.started, self.conversation, self.turn)


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation in a list, as its timeline says. `turns` is how many are recorded."""

    id: str
    title: str
    started: datetime
    last_activity: datetime
    turns: int
    app: str | None = None

    @property
    def cursor(self) -> Cursor:
        """Where a page that ends with it ended."""
        return Cursor(self.last_activity, self.id)


@dataclass(frozen=True, slots=True)
class Timeline:
    """`conv.timeline.v1`: title, times and turn ids in order. In the minimal case it holds no blocks."""

    conversation: str
    title: str
    started: datetime
    last_activity: datetime
    turn_ids: tuple[str, ...]
    version: str = TIMELINE_VERSION
    blocks: tuple[Block, ...] = ()

"""A turn as the host saw it: an immutable value made of what happened, not of how it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from threefold.model.kinds import Status, StepStatus, SubmissionKind


@dataclass(frozen=True, slots=True)
class Submission:
    """What a person sent: its own text, kind, arrival time and batch. `author` is the speaker's name, if known."""

    kind: SubmissionKind
    text: str
    at: datetime
    batch: str | None = None
    author: str | None = None


@dataclass(frozen=True, slots=True)
class ContextEvent:
    """Something that happened around the turn, kept verbatim (`payload` is JSON)."""

    type: str
    payload: Any
    at: datetime


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that the person gave. `text` is what the file says where the host knows it; only that is searchable."""

    name: str
    data: bytes
    at: datetime
    mime: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One visible action of the agent, such as a tool call. `arguments` and `result` are JSON."""

    name: str
    at: datetime
    arguments: Any = None
    result: Any = None
    status: StepStatus = "completed"


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """A file that the host decided to keep, at a relative `path` within the turn."""

    path: str
    data: bytes
    at: datetime
    mime: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A source that the answer used."""

    url: str
    title: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """The agent's own account of the turn: what it meant, which references matter, which phrases to find it by."""

    text: str
    at: datetime
    refs: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """An internal note that the agent chose to expose to search."""

    text: str
    at: datetime
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """The one final answer. `author` is a speaker's name where one is known."""

    text: str
    at: datetime
    author: str | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """What was shown live and is to be rebuilt on reload: communicator events and aggregated stream panels."""

    events: tuple[Mapping[str, Any], ...] = ()
    streams: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn, whole. `id` is unique within the conversation; recording the same id again is idempotent.

    `partials` are answers that a steer interrupted, as far as they were shown, each from when it began.
    `origin` says where an imported turn came from (free JSON, shown on reload). `redacted` is how many things of which
    kind were taken out of its texts.
    """

    conversation: str
    id: str
    started: datetime
    ended: datetime
    status: Status = "completed"
    title: str | None = None
    submissions: tuple[Submission, ...] = ()
    context: tuple[ContextEvent, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    steps: tuple[Step, ...] = ()
    files: tuple[PublishedFile, ...] = ()
    sources: tuple[Source, ...] = ()
    notes: tuple[Note, ...] = ()
    summary: Summary | None = None
    partials: tuple[Completion, ...] = ()
    completion: Completion | None = None
    error: str | None = None
    tokens: Mapping[str, int] = field(default_factory=dict)
    replay: Replay = Replay()
    origin: Mapping[str, Any] = field(default_factory=dict)
    redacted: Mapping[str, int] = field(default_factory=dict)

"""What a lane holds, and what it tells about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

from threefold.model.kinds import SubmissionKind
from threefold.model.scope import Scope
from threefold.model.times import iso

Joined = Literal["opened", "queued", "folded", "steered", "repeated"]
"""What became of a submission: it opens a turn; it waits for the next one, alone or with others; it interrupted the
one that runs; it had been accepted before."""


class LaneKey(NamedTuple):
    """Which lane: whose (tenant, user, app), of which conversation, of which agent; None: of none that was named."""

    scope: Scope
    conversation: str
    agent: str | None = None


class Attached(NamedTuple):
    """A file that came with a text: its name, and which bytes it is."""

    name: str
    digest: str
    size: int
    mime: str | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """What a person sent at once: a text with its files and context objects (type, payload). `id` is its batch too.

    `redacted` is how many things of which kind were taken out of it.
    """

    id: str
    kind: SubmissionKind
    text: str
    at: datetime
    author: str | None = None
    attachments: tuple[Attached, ...] = ()
    context: tuple[tuple[str, Any], ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The submission as plain JSON values."""
        return {
            "submission": self.id, "kind": self.kind, "text": self.text, "at": iso(self.at), "author": self.author,
            "attachments": [{"name": a.name, "size": a.size, "mime": a.mime} for a in self.attachments],
            "context": [{"type": type_, "payload": payload} for type_, payload in self.context],
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Running:
    """The turn that runs. `holder` is which door runs it, and has it until `until` unless it says so again.

    When it is `closed` it takes no more in; when it is `cancelled` it is to stop.
    """

    turn: str
    since: datetime
    sent: tuple[Sent, ...]
    holder: str
    until: datetime
    closed: bool = False
    cancelled: bool = False


class Key(NamedTuple):
    """A key that a submission came under: hashes of the key and of what was sent, and what was answered."""

    key: str
    what: str
    submission: str
    turn: str
    position: int


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane. `next` is the id of the turn that will have what waits; `ended` are the last turns, the newest last.

    `digest` is what a change names; it is empty where nothing is kept yet.
    """

    conversation: str
    app: str | None = None
    agent: str | None = None
    next: str = ""
    waiting: tuple[Sent, ...] = ()
    running: Running | None = None
    ended: tuple[str, ...] = ()
    keys: tuple[Key, ...] = ()
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The acknowledgement of a submission: it is kept, whatever happens to the process.

    `turn` is the turn that it joined or will open, `position` its place among the submissions of that turn, from 1.
    """

    submission: str
    turn: str
    joined: Joined
    position: int

    @property
    def after(self) -> str:
        """Where `Door.events` begins to follow that turn from its beginning, whether it runs, did, or waits."""
        return f"{self.turn}:000000:000000000"

    def as_json(self) -> dict[str, Any]:
        """The acknowledgement as plain JSON values."""
        return {"submission": self.submission, "turn": self.turn, "joined": self.joined, "position": self.position,
                "after": self.after}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LaneView:
    """A lane as it is now. `turn` is the turn that runs, since when and with which submissions; None: none does.

    `waiting` are the submissions that the next turn will have, `next` is its id.
    """

    conversation: str
    agent: str | None
    turn: str | None = None
    since: datetime | None = None
    submissions: tuple[Sent, ...] = ()
    next: str | None = None
    waiting: tuple[Sent, ...] = ()

    @classmethod
    def of(cls, lane: Lane) -> LaneView:
        """What is to be seen of a lane."""
        running = lane.running
        return cls(
            lane.conversation,
            lane.agent,
            None if running is None else running.turn,
            None if running is None else running.since,
            () if running is None else running.sent,
            lane.next or None,
            lane.waiting,
        )

    def as_json(self) -> dict[str, Any]:
        """The lane as plain JSON values."""
        return {
            "conversation": self.conversation, "agent": self.agent, "turn": self.turn,
            "since": None if self.since is None else iso(self.since),
            "submissions": [each.as_json() for each in self.submissions],
            "next": self.next, "waiting": [each.as_json() for each in self.waiting],
        }  # fmt: skip

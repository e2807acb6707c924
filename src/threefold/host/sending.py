"""What a request is made of: what a person sent, at once or while it runs; and how it goes into the turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from threefold.model.kinds import SubmissionKind
from threefold.realms.conv.recorder import TurnHandle


@dataclass(frozen=True, slots=True)
class File:
    """A file that a person attached or an agent publishes, with its bytes."""

    name: str
    data: bytes = field(repr=False)
    mime: str | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """A text with the files and context objects (type, payload) that came with it. `at` is None for now."""

    kind: SubmissionKind
    text: str
    at: datetime | None = None
    id: str | None = None
    author: str | None = None
    attachments: tuple[File, ...] = ()
    context: tuple[tuple[str, Any], ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)


class Closing(NamedTuple):
    """Whether a turn takes no more in, and what came since the last time.

    `why` is said where the turn is cancelled, however its agent ended.
    """

    closed: bool
    came: tuple[Batch, ...] = ()
    why: str | None = None


class Inbox(Protocol):
    """What comes for a turn while it runs. The first two are called from any thread."""

    @property
    def waiting(self) -> bool:
        """Whether something came that nobody has taken."""
        ...

    def take(self) -> tuple[Batch, ...]:
        """What came since the last time."""
        ...

    async def close(self, force: bool) -> Closing:
        """Take in no more; returns whether that is so, what came since the last time, and whether it is cancelled.

        Where something came, it stays open unless it is forced.

        Raises:
            Conflict: the turn is another's by now, and must not be recorded.
        """
        ...


class NoInbox:
    """The inbox of a request that nothing can come for."""

    waiting = False

    def take(self) -> tuple[Batch, ...]:
        """See `Inbox.take`."""
        return ()

    async def close(self, force: bool) -> Closing:  # noqa: ARG002 - it never was open
        """See `Inbox.close`."""
        return Closing(True)


def put_in(turn: TurnHandle, batches: Sequence[Batch]) -> None:
    """Have a turn record what was sent."""
    for batch in batches:
        say = {"prompt": turn.prompt, "followup": turn.followup, "steer": turn.steer}[batch.kind]
        say(batch.text, batch.at, batch.id, batch.author)
        for type_, payload in batch.context:
            turn.context(type_, payload, batch.at)
        for file in batch.attachments:
            turn.attach((file.name, file.data), file.mime, at=batch.at)
        turn.taken_out(batch.redacted)


def goal_of(batches: Sequence[Batch]) -> str:
    """What is asked for by all that was sent, in order."""
    return "\n\n".join(batch.text for batch in batches if batch.text.strip())

"""What a thread tells about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from threefold.model.paging import Cursor
from threefold.model.times import iso
from threefold.realms.conv.view import Message
from threefold.text.tokens import count_tokens

Status = Literal["active", "archived"]


@dataclass(frozen=True, slots=True)
class ThreadContext:
    """What an agent is given of a thread: the last messages whole, oldest first, and a summary of all before them.

    `summary` has lines such as `user: …`, each literally said unless a model wrote it; it is of the first `summarised`
    messages. `warnings` say in a sentence what is not as it should be.
    """

    name: str
    summary: str
    messages: tuple[Message, ...]
    summarised: int
    status: Status
    warnings: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """What summary and messages come to, each message with its role (`o200k_base`); counted when it is read."""
        return count_tokens(self.summary) + sum(count_tokens(f"{m.role}: {m.text}\n") for m in self.messages)

    def as_json(self) -> dict[str, Any]:
        """The context as plain JSON values."""
        return {
            "name": self.name,
            "status": self.status,
            "summary": self.summary,
            "summarised": self.summarised,
            "messages": [
                {"role": m.role, "text": m.text, "at": iso(m.at), "ref": m.ref, "author": m.author}
                for m in self.messages
            ],
            "tokens": self.tokens,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class ThreadInfo:
    """A thread and how far it is: times, counts of turns and messages, and its kept summary.

    `summarised` is how many messages the kept summary covers, `parts` how many parts of it were written by whom:
    `extract`, or a model's name. `created` is None for a conversation that was recorded without making it a thread.
    """

    name: str
    status: Status
    created: datetime | None
    started: datetime | None
    last_activity: datetime | None
    turns: int
    messages: int
    summarised: int = 0
    parts: Mapping[str, int] = field(default_factory=dict)
    archived: datetime | None = None

    def as_json(self) -> dict[str, Any]:
        """The state as plain JSON values."""
        moments = {name: getattr(self, name) for name in ("created", "started", "last_activity", "archived")}
        return {
            "name": self.name,
            "status": self.status,
            **{name: None if moment is None else iso(moment) for name, moment in moments.items()},
            "turns": self.turns,
            "messages": self.messages,
            "summarised": self.summarised,
            "parts": dict(self.parts),
        }


@dataclass(frozen=True, slots=True)
class ThreadEntry:
    """A thread in a list. `active` is when it was last written to, to the minute."""

    name: str
    status: Status
    created: datetime
    active: datetime

    @property
    def cursor(self) -> Cursor:
        """Where a page that ends with it ended."""
        return Cursor(self.active, self.name)

    def as_json(self) -> dict[str, Any]:
        """The entry as plain JSON values."""
        return {
            "name": self.name, "status": self.status, "created": iso(self.created), "active": iso(self.active),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Maintained:
    """How many parts of the summary were written, and where a model failed, why."""

    parts: int
    warnings: tuple[str, ...] = ()

"""What an agent is given to see for one request, and how it came about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, get_args

from threefold.model.chat import Message
from threefold.model.times import iso

Section = Literal[
    "working", "session", "longterm", "organizational", "global", "thread", "board", "document", "turn", "extra"
]
SECTIONS: Final[tuple[Section, ...]] = get_args(Section)
"""By priority: what stands further back is dropped first. `extra` is what other engines add."""
# The agent that answers without a model, by quoting: what it said is an echo of what is kept elsewhere.
FINDER: Final = "finder"
Why = Literal["budget", "irrelevant", "duplicate"]


@dataclass(frozen=True, slots=True)
class Intent:
    """A request that a context is computed for.

    `budget` is how many tokens it may have. `thread` is the conversation that it belongs to, None for none.
    `permissions` and `policies` are the host's to tell; they are handed on as they are.
    """

    id: str
    goal: str
    budget: int
    thread: str | None = None
    permissions: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that was taken in. `label` is its name in the text, `ref` its reference; `text` is quoted there.

    `score` is how likely it is what the goal asks for, None where that was not asked. `whole` is False where only a
    part of it is quoted. `because` says why it is there. `about` is what is known of it: kind, time, source, …
    """

    label: str
    section: Section
    ref: str
    text: str
    because: str
    score: float | None = None
    whole: bool = True
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Dropped:
    """Something that was found and left out: why, and how many tokens it would have taken."""

    section: Section
    ref: str
    why: Why
    tokens: int
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """One message of the thread's window, whole; `label` is its name in the text."""

    role: Literal["user", "assistant"]
    text: str
    at: datetime
    ref: str
    author: str | None = None
    label: str = ""


@dataclass(frozen=True, slots=True)
class ThreadPart:
    """What is shown of the thread: a summary of what left its window, then messages, oldest first.

    `left_out` is how many of the window's oldest messages found no room. `status` is `active` or `archived`.
    """

    name: str
    summary: str = ""
    messages: tuple[Said, ...] = ()
    left_out: int = 0
    status: str = "active"


@dataclass(frozen=True, slots=True)
class ComputedContext:
    """The context of one request. `text` is all of it, quoted and framed; its tokens are `estimated_tokens`.
    `background` is the same without the messages of the thread, which `messages` gives as messages.

    `memories` are a user's own (layers working, session, longterm), `knowledge` what is shared (organizational,
    global), `boards` cards of boards that are attached to the thread, `turns` earlier ones of the record, `extra` what
    another engine added. `dropped` is what found no room or was not to the point, `warnings` what could not be looked
    at. `user` is who asks, with `preferences` among the memories.
    """

    intent_id: str
    goal: str
    text: str
    background: str
    estimated_tokens: int
    budget: int
    computed_at: datetime
    user: Mapping[str, Any]
    engine: str = "default"
    permissions: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    memories: tuple[Entry, ...] = ()
    knowledge: tuple[Entry, ...] = ()
    boards: tuple[Entry, ...] = ()
    documents: tuple[Entry, ...] = ()
    turns: tuple[Entry, ...] = ()
    extra: tuple[Entry, ...] = ()
    thread: ThreadPart | None = None
    dropped: tuple[Dropped, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Everything that was taken in but the thread, by priority."""
        return (*self.memories, *self.knowledge, *self.boards, *self.documents, *self.turns, *self.extra)

    @property
    def refs(self) -> Mapping[str, str]:
        """The reference behind each label of the text, such as `t1`."""
        said = () if self.thread is None else self.thread.messages
        return {entry.label: entry.ref for entry in self.entries} | {m.label: m.ref for m in said if m.label}

    def messages(self, instructions: str = "") -> list[Message]:
        """For a chat model: instructions, what is known, the thread, the goal.

        What is known comes as the user's message, never as the system's: it is data.
        """
        return list(self._messages(instructions))

    def _messages(self, instructions: str) -> Iterator[Message]:
        if instructions:
            yield Message("system", instructions)
        if self.background:
            yield Message("user", self.background)
        for said in self.thread.messages if self.thread is not None else ():
            yield Message(said.role, said.text)
        yield Message("user", self.goal)

    def __str__(self) -> str:
        return self.text

    def as_json(self) -> dict[str, Any]:
        """All of it as plain JSON values."""
        value = asdict(self)
        value["computed_at"] = iso(self.computed_at)
        if self.thread is not None:
            value["thread"]["messages"] = [{**asdict(said), "at": iso(said.at)} for said in self.thread.messages]
        return value

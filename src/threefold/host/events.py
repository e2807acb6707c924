"""What happens while a request is answered, as it is streamed; and what came of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from threefold.host.sending import File
from threefold.model.context import ComputedContext
from threefold.model.kinds import Status, StepStatus

Kind = Literal["start", "step", "delta", "file", "panel", "complete", "error"]


@dataclass(frozen=True, slots=True)
class Step:
    """Something that an agent did on the way: a tool with its arguments, and what came of it."""

    name: str
    arguments: Any = None
    result: Any = None
    status: StepStatus = "completed"


@dataclass(frozen=True, slots=True)
class Panel:
    """A piece of a panel that is shown beside the answer: `canvas`, `tool` or `subsystem`, by a name."""

    marker: str
    text: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a request. `ref` is the recorded turn; `citations` are the references behind the labels that the
    answer cites. `error` says why there is no answer, or no whole one; `warnings` what else is to be known of it. Where
    the turn could not be recorded, the outcome is a failure with the answer, and `ref` is empty.
    """

    intent_id: str
    goal: str
    owner: str
    agent: str
    status: Status
    answer: str
    ref: str
    context: ComputedContext
    citations: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    tokens: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None
    thread: str | None = None
    warnings: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The outcome as plain JSON values, without the text of the context."""
        return {
            "intent": self.intent_id, "goal": self.goal, "owner": self.owner, "agent": self.agent,
            "thread": self.thread, "status": self.status, "answer": self.answer, "ref": self.ref,
            "citations": dict(self.citations), "tokens": dict(self.tokens), "error": self.error,
            "steps": [{"name": each.name, "status": each.status} for each in self.steps],
            "warnings": list(self.warnings),
            "context": {"tokens": self.context.estimated_tokens, "budget": self.context.budget,
                        "engine": self.context.engine, "refs": dict(self.context.refs),
                        "warnings": list(self.context.warnings)},
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a stream. `start` has the agent's name and the context, `step` a step, `delta` a piece of the
    answer, `file` a file that the agent publishes, `panel` a piece of a panel; `complete` or `error`, with one of which
    every stream ends, has the outcome.

    A delta that is `fresh` begins the answer anew, where the agent gave another one in the end. An agent that was
    steered starts again, with another `start`.
    """

    kind: Kind
    text: str = ""
    agent: str = ""
    context: ComputedContext | None = None
    step: Step | None = None
    outcome: Outcome | None = None
    file: File | None = None
    panel: Panel | None = None
    fresh: bool = False


class Events:
    """Events on their way to whoever listens; they may be put from any thread. None is the end."""

    def __init__(self) -> None:
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._queue = asyncio.Queue[Event | None]()

    def put(self, event: Event | None) -> None:
        """Tell an event."""
        if threading.get_ident() == self._thread:
            self._queue.put_nowait(event)
        else:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, event)

    async def get(self) -> Event | None:
        """The next event, waited for."""
        return await self._queue.get()

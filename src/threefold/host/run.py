"""One run of an agent: what it is given, and what it tells on the way."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any

from threefold.errors import AgentFailed, ThreefoldError
from threefold.host.events import Event, Step
from threefold.model.context import ComputedContext, Intent
from threefold.model.kinds import StepStatus

if TYPE_CHECKING:
    from threefold.host.people import Person


class Run:
    """What an agent works with: the request, its context, and the person's handle, which writes as the agent.

    `say` gives out a piece of the answer at once, `step` tells what was done, `spend` counts tokens.
    """

    def __init__(self, intent: Intent, context: ComputedContext, user: Person) -> None:
        self.intent, self.context, self.user = intent, context, user
        self.steps: list[Step] = []
        self.pieces: list[str] = []
        self.tokens: dict[str, int] = {}
        self.events: asyncio.Queue[Event] = asyncio.Queue()

    @property
    def goal(self) -> str:
        """What was asked for."""
        return self.intent.goal

    def say(self, text: str) -> None:
        """Give out a piece of the answer."""
        if text:
            self.pieces.append(text)
            self.events.put_nowait(Event("delta", text=text))

    def step(self, name: str, arguments: Any = None, result: Any = None, status: StepStatus = "completed") -> None:
        """Tell something that was done: it is shown, and recorded with the turn."""
        done = Step(name, arguments, result, status)
        self.steps.append(done)
        self.events.put_nowait(Event("step", step=done))

    def spend(self, **tokens: int) -> None:
        """Count tokens, such as `spend(input=1200, output=80)`."""
        for name, count in tokens.items():
            self.tokens[name] = self.tokens.get(name, 0) + count


async def called(what: str, call: Callable[..., Any], *values: object, **named: object) -> Any:
    """Call foreign code: a plain function in a thread, what it gives awaited; an iterator of pieces is handed back.

    Raises:
        AgentFailed: it raised something. Cancellation passes.
    """
    try:
        if inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call):
            made = call(*values, **named)
        else:
            made = await asyncio.to_thread(call, *values, **named)
        return await made if inspect.isawaitable(made) else made
    except ThreefoldError:
        raise
    except Exception as error:
        raise AgentFailed(f"{what} failed: {type(error).__name__}: {error}".rstrip(": ")) from error


async def drained(what: str, pieces: AsyncIterator[Any], run: Run) -> None:
    """Give out the pieces of an agent's answer as they come.

    Raises:
        AgentFailed: it raised something, or gave something else than text.
    """
    try:
        async for piece in pieces:
            if not isinstance(piece, str):
                raise AgentFailed(f"{what} gave {type(piece).__name__} as a piece of its answer, not text")
            run.say(piece)
    except ThreefoldError:
        raise
    except Exception as error:
        raise AgentFailed(f"{what} failed: {type(error).__name__}: {error}".rstrip(": ")) from error


def as_text(result: Any) -> str:
    """What a tool gave as text for a model: as it is, or as JSON."""
    if isinstance(result, str):
        return result
    from threefold.model.codec import compact_json, plain_json

    return compact_json(plain_json(result, "the tool's result"))


Arguments = Mapping[str, Any]

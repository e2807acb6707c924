"""One run of an agent: what it is given, and what it tells on the way; and how agents and tools are called."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from threefold.errors import AgentFailed, InvalidInput, ThreefoldError
from threefold.host.events import Event, Step
from threefold.host.pools import within
from threefold.model.clean import storable
from threefold.model.codec import compact_json, plain_json
from threefold.model.context import ComputedContext, Intent
from threefold.model.kinds import STEP_STATUSES, StepStatus

if TYPE_CHECKING:
    from threefold.host.people import Person


class Run:
    """What an agent works with: the request, its context, and the person's handle, which writes as the agent.

    `say` gives out a piece of the answer at once, `step` tells what was done, `spend` counts tokens, `warn` says what
    the outcome is to say of the answer. They may be called from any thread, and raise `InvalidInput` where a value
    cannot be kept, `AgentFailed` when the request has ended, such as by being cancelled.
    """

    def __init__(
        self, intent: Intent, context: ComputedContext, user: Person, tell: Callable[[Event], None], threads: Executor
    ) -> None:
        self.intent, self.context, self.user = intent, context, user
        self.steps: list[Step] = []
        self.pieces: list[str] = []
        self.tokens: dict[str, int] = {}
        self.warnings: list[str] = []
        self.threads = threads
        self._tell, self._ended = tell, False

    @property
    def goal(self) -> str:
        """What was asked for."""
        return self.intent.goal

    def say(self, text: str) -> None:
        """Give out a piece of the answer."""
        _check_text(text, "text")
        self._check_open()
        if text:
            self.pieces.append(text)
            self._tell(Event("delta", text=text))

    def step(self, name: str, arguments: Any = None, result: Any = None, status: StepStatus = "completed") -> None:
        """Tell something that was done: it is shown, and recorded with the turn. The values are plain JSON."""
        _check_text(name, "name")
        if status not in STEP_STATUSES:
            raise InvalidInput(f"status {status!r} must be one of {', '.join(STEP_STATUSES)}")
        done = Step(storable(name), plain_json(arguments, "arguments"), plain_json(result, "result"), status)
        self._check_open()
        self.steps.append(done)
        self._tell(Event("step", step=done))

    def spend(self, **tokens: int) -> None:
        """Count tokens, such as `spend(input=1200, output=80)`."""
        for name, count in tokens.items():
            if not isinstance(count, int) or isinstance(count, bool):
                raise InvalidInput(f"{name} must be a whole number of tokens, not {type(count).__name__}")
        self._check_open()
        for name, count in tokens.items():
            self.tokens[name] = self.tokens.get(name, 0) + count

    def warn(self, text: str) -> None:
        """Say something of the answer that is to stand in the outcome."""
        _check_text(text, "text")
        self.warnings.append(text)

    def end(self) -> None:
        """The request has ended: nothing is told any more. The host calls it."""
        self._ended = True

    def _check_open(self) -> None:
        if self._ended:
            raise AgentFailed("the request has ended; nothing can be told any more")


async def called(
    what: str,
    call: Callable[..., Any],
    run: Run,
    values: tuple[object, ...] = (),
    named: Mapping[str, Any] | None = None,
) -> Any:
    """Call foreign code: a plain function in a thread, what it gives awaited; an iterator of pieces is handed back.

    Raises:
        AgentFailed: it raised something. Cancellation passes.
    """

    def work() -> Any:
        # Within the thread: an end of iteration cannot be handed on as it is.
        with guarded(what):
            return call(*values, **(named or {}))

    if inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call):
        made = work()
    else:
        made = await within(run.threads, work)
    with guarded(what):
        return await made if inspect.isawaitable(made) else made


async def drained(what: str, answer: AsyncIterator[Any], run: Run) -> None:
    """Give out the pieces of an agent's answer as they come, each before the next one; however this ends, it is closed.

    Raises:
        AgentFailed: it raised something, or gave something else than text.
    """
    with guarded(what):
        async with closing(answer) as pieces:
            async for piece in pieces:
                if not isinstance(piece, str):
                    raise AgentFailed(f"{what} gave {type(piece).__name__} as a piece of its answer, not text")
                run.say(piece)
                await asyncio.sleep(0)


@contextmanager
def guarded(what: str) -> Iterator[None]:
    """Around foreign code: whatever it raises becomes an error of ours. Cancellation and interrupts pass.

    Raises:
        AgentFailed: it raised something that is none.
    """
    try:
        yield
    except (ThreefoldError, KeyboardInterrupt):
        raise
    except BaseException as error:
        if _is_ours(error):
            raise
        raise AgentFailed(f"{what} failed: {type(error).__name__}: {error}".rstrip(": ")) from error


def _is_ours(error: BaseException) -> bool:
    """Whether the task that runs is being cancelled; foreign code may raise `CancelledError` by itself."""
    if not isinstance(error, asyncio.CancelledError):
        return False
    try:
        task = asyncio.current_task()
    except RuntimeError:  # in a thread of its own
        return False
    return task is not None and task.cancelling() > 0


def closing(pieces: AsyncIterator[Any]) -> AbstractAsyncContextManager[AsyncIterator[Any]]:
    """Closes an iterator when its block is left, if it can be closed."""
    return aclosing(pieces) if hasattr(pieces, "aclose") else nullcontext(pieces)  # type: ignore[type-var]


def as_text(result: Any) -> str:
    """What a tool gave as text for a model: as it is, or as JSON."""
    return result if isinstance(result, str) else compact_json(plain_json(result, "the tool's result"))


def shown(value: Any) -> Any:
    """A value for the record: plain JSON, or as text what is none."""
    try:
        return plain_json(value, "value")
    except InvalidInput:
        return str(value)


def _check_text(value: object, name: str) -> None:
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be text, not {type(value).__name__}")

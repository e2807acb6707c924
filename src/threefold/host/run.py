"""One run of an agent: what it is given, and what it tells on the way; and how agents and tools are called."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from threefold.errors import AgentFailed, InvalidInput, Steered, ThreefoldError
from threefold.host.events import Event, Panel, Step
from threefold.host.pools import within
from threefold.host.sending import Batch, File, Inbox, NoInbox
from threefold.model.clean import storable
from threefold.model.codec import compact_json, plain_json
from threefold.model.context import ComputedContext, Intent
from threefold.model.kinds import STEP_STATUSES, StepStatus
from threefold.model.ref import check_path
from threefold.model.scope import check_id
from threefold.realms.conv.limits import check_file
from threefold.realms.conv.recorder import STREAM_MARKERS, mime_of

if TYPE_CHECKING:
    from threefold.host.people import Person

_log = logging.getLogger("threefold.host")


class Run:
    """What an agent works with: the request, its context, and the person's handle, which writes as the agent.

    `say` gives out a piece of the answer at once, `step` tells what was done, `publish` keeps a file with the turn,
    `show` a piece of a panel, `spend` counts tokens, `warn` says what the outcome is to say of the answer. They may be
    called from any thread, and raise `InvalidInput` where a value cannot be kept, `AgentFailed` when the request has
    ended, such as by being cancelled.

    `submissions` is what the person sent, with its files. While a turn of a door runs, the person may interrupt it:
    `look` gives what they said, and is for agents that go on by themselves. Of one that does not look, the next `say`
    or `step` raises `Steered`; it is begun anew then, with what was said in its goal, and `said` is what it had shown.
    """

    def __init__(
        self,
        intent: Intent,
        context: ComputedContext,
        user: Person,
        tell: Callable[[Event], None],
        threads: Executor,
        sent: Sequence[Batch] = (),
        inbox: Inbox | None = None,
        before: Run | None = None,
    ) -> None:
        self.intent, self.context, self.user = intent, context, user
        # One that is begun anew goes on with what it did before.
        self.steps: list[Step] = [] if before is None else before.steps
        self.files: list[File] = [] if before is None else before.files
        self.panels: list[Panel] = [] if before is None else before.panels
        self.tokens: dict[str, int] = {} if before is None else before.tokens
        self.warnings: list[str] = [] if before is None else before.warnings
        self.said: tuple[str, ...] = () if before is None else before.said
        self.pieces: list[str] = []
        self.submissions = tuple(sent)
        self.looked: list[Batch] = []
        self.threads = threads
        self._inbox: Inbox = NoInbox() if inbox is None else inbox
        self._tell, self._ended = tell, False

    @property
    def goal(self) -> str:
        """What was asked for."""
        return self.intent.goal

    @property
    def attachments(self) -> tuple[File, ...]:
        """The files that the person sent."""
        return tuple(file for batch in self.submissions for file in batch.attachments)

    @property
    def interrupted(self) -> bool:
        """Whether the person said something that the agent has not looked at."""
        return self._inbox.waiting

    def look(self) -> tuple[str, ...]:
        """What the person said since the agent began or looked last; it is the agent's to follow then."""
        self._check_open()
        came = self._inbox.take()
        self.looked += came
        self.submissions += came
        return tuple(batch.text for batch in came)

    def say(self, text: str) -> None:
        """Give out a piece of the answer."""
        _check_text(text, "text")
        self._check_open()
        self._check_steered()
        self.give(text)

    def give(self, text: str) -> None:
        """Give out an answer that is whole; the host calls it. Unlike `say`, it is given out also when steered."""
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
        self._check_steered()

    def publish(self, path: str, data: bytes | str, mime: str | None = None) -> None:
        """Keep a file with the turn, at a relative path; of a path given twice the later bytes count."""
        content = storable(data).encode() if isinstance(data, str) else data
        if not isinstance(content, bytes):
            raise InvalidInput(f"data must be bytes or text, not {type(data).__name__}")
        check_file(check_path(path), content)
        kind = check_id(mime, "mime") if mime else mime_of(path)
        self._check_open()
        file = File(path, content, kind)
        self.files.append(file)
        self._tell(Event("file", file=file))

    def show(self, marker: str, text: str, name: str = "") -> None:
        """Give out a piece of a panel (`canvas`, `tool`, `subsystem`); pieces of one panel are kept joined."""
        _check_text(text, "text")
        _check_text(name, "name")
        if marker not in STREAM_MARKERS:
            raise InvalidInput(f"marker {marker!r} must be one of {', '.join(STREAM_MARKERS)}")
        self._check_open()
        piece = Panel(marker, storable(text), storable(name))
        self.panels.append(piece)
        self._tell(Event("panel", panel=piece))

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
        self.warnings.append(storable(text))

    def end(self) -> None:
        """The request has ended: nothing is told any more. The host calls it."""
        self._ended = True

    def _check_steered(self) -> None:
        """A safe point: between pieces and steps."""
        if self._inbox.waiting:
            raise Steered("the person interrupted; the agent is begun anew with what they said")

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


async def stepping(what: str, pieces: Iterator[Any], threads: Executor) -> AsyncGenerator[Any, None]:
    """The pieces of a plain iterator, each waited for in a thread; a generator is closed in the end.

    Raises:
        AgentFailed: it raised something.
    """
    over = object()

    def one() -> Any:
        with guarded(what):
            return next(pieces, over)

    try:
        while (piece := await within(threads, one)) is not over:
            yield piece
    finally:
        # Of one that is cancelled a thread may be at work still: it ends by itself.
        if isinstance(pieces, Generator) and inspect.getgeneratorstate(pieces) != inspect.GEN_RUNNING:
            await within(threads, pieces.close)


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
        _log.info("%s failed", what, exc_info=error)
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

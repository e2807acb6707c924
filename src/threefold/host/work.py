"""All of a request but who asks and who listens: context, agent, steers, the recorded turn, and what is done after."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from threefold.context.engine import Happened
from threefold.context.manager import Contexts
from threefold.errors import AgentFailed, Steered, ThreefoldError, Unavailable
from threefold.host.agents import Agent
from threefold.host.ending import finished, given, mark, recorded
from threefold.host.events import Event, Events, Outcome
from threefold.host.people import House, Person
from threefold.host.pools import Pools, within
from threefold.host.run import Run, called, drained, guarded, stepping
from threefold.host.sending import Batch, Inbox, NoInbox, goal_of, put_in
from threefold.host.speaking import FINDER, find, speak
from threefold.model.context import ComputedContext, Intent
from threefold.model.kinds import Status
from threefold.ports import ChatModel
from threefold.realms.conv.recorder import TurnHandle
from threefold.realms.conv.threads.realm import archived_thread

_T = TypeVar("_T")
_log = logging.getLogger("threefold.host")
Ended = tuple[Status, str, str | None]


@dataclass(slots=True)
class Request:
    """A request under way. `sent` is what the person sent for it, in the turn already; more may come into `inbox`.

    When it is `ending` it is being recorded, which is not interrupted.
    """

    intent: Intent
    agent: Agent
    owner: str
    person: Person
    turn: TurnHandle
    engine: str | None
    events: Events
    sent: tuple[Batch, ...]
    inbox: Inbox = field(default_factory=NoInbox)
    ending: bool = False


class Work:
    """What requests are worked on with: the store, a chat model, threads, and tasks that `drain` waits for."""

    def __init__(self, db: House, chat: ChatModel | None) -> None:
        self._db, self._chat = db, chat
        self.pools = Pools()
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def contexts(self) -> Contexts:
        """The context engines."""
        return self._db.contexts

    @property
    def model(self) -> ChatModel | None:
        """What speaks for agents without a function."""
        return self._chat if self._chat is not None else self._db.chat

    async def drain(self) -> None:
        """Wait for all that was begun, and end the threads."""
        while others := self._tasks - {asyncio.current_task()}:
            await asyncio.wait(others)
        self.pools.close()

    def begin(self, request: Request) -> asyncio.Task[Outcome]:
        """Work on a request, in a task of its own: it does not depend on whether somebody listens.

        The events end with None, also where the task fails.
        """
        working = self.tracked(self._worked(request))
        working.add_done_callback(lambda _: request.events.put(None))
        return working

    def tracked(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """Begin work that `drain` waits for."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _worked(self, request: Request) -> Outcome:
        run: Run | None = None
        while True:
            context = await self._context(request)
            if request.inbox.waiting:  # said before the agent began
                _take_in(request, request.inbox.take())
                continue
            request.events.put(Event("start", agent=request.agent.name, context=context))
            run = Run(
                request.intent, context, request.person, request.events.put, self.pools.agents, request.sent,
                request.inbox, run,
            )  # fmt: skip
            ended = await self._ended(request.agent, run)
            request.ending = True
            run.end()
            _show_whole(request, run, ended)
            closed, why = await self._closed(request, run.looked, force=ended[0] == "cancelled")
            if closed:
                if why is not None and ended[0] != "cancelled":
                    ended = "cancelled", ended[1], why
                break
            request.ending = False
            if ended[1]:
                request.turn.partial(ended[1], context.computed_at)
                run.said += (ended[1],)
        outcome = await finished(run, request.turn, request.agent.name, request.owner, ended, self.pools.store)
        if outcome.ref:
            happened = Happened(outcome.ref, request.intent, context, outcome.status, outcome.answer)
            self.tracked(self._after(happened, request.person)).add_done_callback(_logged)
        return outcome

    async def _closed(self, request: Request, looked: list[Batch], force: bool) -> tuple[bool, str | None]:
        """Put into the turn what came meanwhile; whether the turn takes no more, so that it can be recorded.

        The second says why it is cancelled, where it is.
        """
        closed, came, why = await request.inbox.close(force)
        _take_in(request, (*looked, *came))
        return closed, why

    async def _context(self, request: Request) -> ComputedContext:
        """The context of a request; noted in its turn, which is recorded here where the request ends with this."""
        intent, person, contexts = request.intent, request.person, self.contexts
        plain = contexts.is_builtin(request.engine)
        try:
            if intent.thread is not None and not plain:
                # Another engine need not look at the thread, or may say what it likes of it.
                await within(self.pools.store, person.thread(intent.thread).check_open)
            pool = self.pools.store if plain else self.pools.engines
            context = await within(pool, contexts.assemble, intent, person.sources, request.engine)
        except (asyncio.CancelledError, Unavailable) as error:
            request.ending = True
            _, why = await self._closed(request, [], force=True)
            if isinstance(error, asyncio.CancelledError):
                why = str(error) or "cancelled"
            mark(request.turn, "failed" if why is None else "cancelled", why or str(error))
            await recorded(request.turn, self.pools.store)
            raise
        if plain and context.thread is not None and context.thread.status == "archived":
            raise archived_thread(context.thread.name)
        request.turn.context("computed_context", given(context))
        return context

    async def _ended(self, agent: Agent, run: Run) -> Ended:
        """Let the agent work: how that ended, its answer, and what went wrong."""
        try:
            with guarded(f"agent {agent.name!r}"):
                return "completed", await self._answered(agent, run), None
        except asyncio.CancelledError as error:
            return "cancelled", "".join(run.pieces), str(error) or "cancelled"
        except Steered:  # the end only where it is not begun anew
            return "failed", "".join(run.pieces), f"agent {agent.name!r} stopped where it was interrupted"
        except ThreefoldError as error:
            return "failed", "".join(run.pieces), str(error)

    async def _answered(self, agent: Agent, run: Run) -> str:
        """Let the agent work; its answer."""
        name = f"agent {agent.name!r}"
        if agent is FINDER:
            run.give(find(run))
            return "".join(run.pieces)
        if agent.executor is None:
            model = self.model
            if model is None:
                raise AgentFailed(f"{name} has no function and no chat model is set up; give one to Kernel(chat=…)")
            return await speak(agent, model, run)
        made = await called(name, agent.executor, run, (run,))
        if isinstance(made, Iterator):
            made = stepping(name, made, run.threads)
        if hasattr(made, "__aiter__"):
            await drained(name, made, run)
            return "".join(run.pieces)
        if not isinstance(made, str):
            raise AgentFailed(f"{name} gave {type(made).__name__}, not text or pieces of text")
        if not run.pieces:
            run.give(made)
        return made

    async def _after(self, happened: Happened, person: Person) -> None:
        """What is done when a turn is recorded: the engine is told, the thread's summary is kept up."""
        failed = await within(self.pools.engines, self.contexts.after_turn, happened, person.sources)
        if happened.intent.thread is not None:
            try:
                kept = await within(self.pools.engines, person.thread(happened.intent.thread).maintain)
                failed += kept.warnings
            except ThreefoldError as error:
                failed += (f"the thread's summary was not kept up: {error}",)
        for each in failed:
            _log.warning("%s", each)


def _take_in(request: Request, came: tuple[Batch, ...]) -> None:
    """Have a request be about what came for it, too."""
    put_in(request.turn, came)
    request.sent += came
    if came:
        request.intent = replace(request.intent, goal=goal_of(request.sent))


def _show_whole(request: Request, run: Run, ended: Ended) -> None:
    """Have shown what is recorded, where the agent gave another answer in the end than it had said piece by piece."""
    shown, answer = "".join(run.pieces), ended[1]
    if answer.startswith(shown):
        if answer != shown:
            request.events.put(Event("delta", text=answer.removeprefix(shown)))
        return
    request.turn.partial(shown, run.context.computed_at)
    request.events.put(Event("delta", text=answer, fresh=True))


def _logged(task: asyncio.Task[None]) -> None:
    """What went wrong in the background concerns no request."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("background work failed: %s: %s", type(error).__name__, error)

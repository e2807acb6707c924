"""The kernel: a request in, its context computed, an agent chosen and run, the turn recorded with what it was given."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection, Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from threefold.context.engine import Happened
from threefold.context.intents import BUDGET, intent_of
from threefold.context.manager import Contexts
from threefold.errors import AgentFailed, ThreefoldError, Unavailable
from threefold.host.agents import Agent, Agents
from threefold.host.ending import finished, given, mark, recorded
from threefold.host.events import Event, Events, Outcome
from threefold.host.people import House, Person, check_thread
from threefold.host.pools import Pools, within
from threefold.host.run import Run, called, drained, guarded
from threefold.host.speaking import ASSISTANT, FINDER, find, speak
from threefold.model.context import ComputedContext, Intent
from threefold.model.kinds import Status
from threefold.model.memory import Memory
from threefold.ports import ChatModel
from threefold.realms.conv.recorder import TurnHandle
from threefold.realms.conv.threads import Thread
from threefold.realms.conv.threads.realm import archived_thread
from threefold.realms.mem.recalling import Recall

_T = TypeVar("_T")
_log = logging.getLogger("threefold.host")


@dataclass(slots=True)
class _Request:
    """A request under way. When it is `ending` it is being recorded, which is not interrupted."""

    intent: Intent
    agent: Agent
    owner: str
    person: Person
    turn: TurnHandle
    engine: str | None
    events: Events
    ending: bool = False


class Kernel:
    """Runs agents over an open store, of `threefold.open` or `threefold.aio.open`. Leaving its block, or `close`,
    waits for requests under way and drains the background work.

        async with threefold.Kernel(db) as kernel:
            kernel.agents.register(agent)
            outcome = await kernel.submit("How do I deploy?", owner="alice", thread="deploy")

    `chat` speaks for agents that have no function of their own (unless it is named, the store's); `budget` is what a
    context may take, in tokens; `app` narrows what is seen and written to that app. Nothing needs a model: without one,
    and without an agent, what is found is quoted.
    """

    def __init__(
        self,
        db: House,
        chat: ChatModel | None = None,
        budget: int = BUDGET,
        tenant: str = "default",
        app: str | None = None,
    ) -> None:
        # Of an asynchronous store its synchronous twin: contexts are computed in threads.
        self._db: House = getattr(db, "sync", db)
        self._budget, self._tenant, self._app = budget, tenant, app
        self._chat = chat
        self.agents = Agents()
        self._pools = Pools()
        self._background: set[asyncio.Task[Any]] = set()
        self._closed = False

    @property
    def contexts(self) -> Contexts:
        """The context engines: list, register, set the default."""
        return self._db.contexts

    async def start(self) -> Self:
        """Begin, also after a `close`; nothing has to be waited for."""
        if self._closed:
            self._pools, self._closed = Pools(), False
        return self

    async def close(self) -> None:
        """Finish requests under way and what runs in the background; safe to call twice.

        The store stays open, and with it the context engines.
        """
        self._closed = True
        while others := self._background - {asyncio.current_task()}:
            await asyncio.wait(others)
        self._pools.close()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def submit(self, goal: str, owner: str, thread: str | None = None, **options: Any) -> Outcome:
        """Answer a request and record it; what goes wrong with the agent or with recording is told in the outcome.

        Args:
            goal: what is asked for.
            owner: whose request it is; its context is made of what they may see.
            thread: the conversation it belongs to. Without one it shares nothing and is recorded by itself.
            options: `agent` or `capability` to choose by, `budget` in tokens, `engine`, `permissions`, `policies`,
                `tenant`.

        Raises:
            InvalidInput: an argument is malformed. NotFound: no such agent, capability or engine.
            Conflict: the thread is archived. Forbidden: it belongs to another app. Unavailable: the kernel is
            closed, or the store was busy before the agent began.
        """
        async with aclosing(self.stream(goal, owner, thread, **options)) as events:
            async for event in events:
                if event.outcome is not None:
                    return event.outcome
        raise Unavailable("the request ended without an outcome")

    async def ask(self, goal: str, owner: str, thread: str | None = None, **options: Any) -> str:
        """The answer to a request alone. As `submit`, but raises what went wrong.

        Raises:
            AgentFailed: the agent failed, or its turn was not recorded. Otherwise as `submit`.
        """
        outcome = await self.submit(goal, owner, thread, **options)
        if outcome.status != "completed":
            raise AgentFailed(outcome.error or f"the request was {outcome.status}")
        return outcome.answer

    async def stream(
        self,
        goal: str,
        owner: str,
        thread: str | None = None,
        agent: str | None = None,
        capability: str | None = None,
        budget: int | None = None,
        engine: str | None = None,
        permissions: Collection[str] = (),
        policies: Collection[str] = (),
        tenant: str | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Answer a request and give out what happens: start, steps, pieces of the answer, the outcome.

        Whoever stops listening cancels the request; it is recorded as cancelled. Arguments and errors as `submit`.
        """
        if self._closed:
            raise Unavailable("the kernel is closed; start it again")
        intent = intent_of(goal, thread, self._budget if budget is None else budget, permissions, policies)
        chosen = self._choose(intent, agent, capability)
        person = self._user(owner, tenant, chosen.name)
        turn = person.turn(intent.thread or f"intent-{intent.id}", turn=intent.id)
        turn.prompt(intent.goal)
        request = _Request(intent, chosen, owner, person, turn, engine, Events())
        working = self._tracked(self._worked(request))
        working.add_done_callback(lambda _: request.events.put(None))
        try:
            while (event := await request.events.get()) is not None:
                yield event
            outcome = working.result()
        finally:
            # Also where the listener went away, or the request is cancelled: it is stopped, and recorded as it ended.
            if not request.ending:
                working.cancel()
            await asyncio.wait((working,))
            _ = working.cancelled() or working.exception()  # which is then known
        yield Event("complete" if outcome.status == "completed" else "error", outcome.answer, outcome=outcome)

    async def _worked(self, request: _Request) -> Outcome:
        """All of a request, in a task of its own: it does not depend on whether somebody listens."""
        context = await self._context(request)
        tell = request.events.put
        tell(Event("start", agent=request.agent.name, context=context))
        run = Run(request.intent, context, request.person, tell, self._pools.agents)
        ended = await self._ended(request.agent, run)
        request.ending = True
        outcome = await finished(run, request.turn, request.agent.name, request.owner, ended, self._pools.store)
        if outcome.ref:
            happened = Happened(outcome.ref, request.intent, context, outcome.status, outcome.answer)
            self._tracked(self._after(happened, request.person)).add_done_callback(_logged)
        return outcome

    async def _context(self, request: _Request) -> ComputedContext:
        """The context of a request; noted in its turn, which is recorded here where the request ends with this."""
        intent, person, contexts = request.intent, request.person, self.contexts
        plain = contexts.is_builtin(request.engine)
        try:
            if intent.thread is not None and not plain:
                # Another engine need not look at the thread, or may say what it likes of it.
                await within(self._pools.store, check_thread, person, intent.thread)
            pool = self._pools.store if plain else self._pools.engines
            context = await within(pool, contexts.assemble, intent, person.sources, request.engine)
        except (asyncio.CancelledError, Unavailable) as error:
            request.ending = True
            cancelled = isinstance(error, asyncio.CancelledError)
            mark(request.turn, "cancelled" if cancelled else "failed", "cancelled" if cancelled else str(error))
            await recorded(request.turn, self._pools.store)
            raise
        if plain and context.thread is not None and context.thread.status == "archived":
            raise archived_thread(context.thread.name)
        request.turn.context("computed_context", given(context))
        return context

    async def _ended(self, agent: Agent, run: Run) -> tuple[Status, str, str | None]:
        """Let the agent work: how that ended, its answer, and what went wrong."""
        try:
            with guarded(f"agent {agent.name!r}"):
                return "completed", await self._answered(agent, run), None
        except asyncio.CancelledError:
            return "cancelled", "".join(run.pieces), "cancelled"
        except ThreefoldError as error:
            return "failed", "".join(run.pieces), str(error)

    async def remember(self, memory: str, owner: str, tenant: str | None = None, **details: Any) -> Memory:
        """Keep a memory for somebody, by their own word: see `Mem.remember`."""
        person = self._user(owner, tenant)
        return await within(self._pools.store, person.mem.remember, memory, **details)

    async def recall(self, query: str, owner: str, tenant: str | None = None, **filters: Any) -> Recall:
        """Memories that answer a question: see `Mem.recall`."""
        person = self._user(owner, tenant)
        return await within(self._pools.store, person.mem.recall, query, **filters)

    def thread(self, name: str, owner: str, tenant: str | None = None) -> Thread:
        """Somebody's thread; its methods are plain calls. `submit(…, thread=name)` carries it on."""
        return self._user(owner, tenant).thread(name)

    def _user(self, owner: str, tenant: str | None, agent: str | None = None) -> Person:
        return self._db.user(owner, self._tenant if tenant is None else tenant, self._app, agent)

    def _choose(self, intent: Intent, agent: str | None, capability: str | None) -> Agent:
        if agent is not None:
            return self.agents.get(agent)
        chosen = self.agents.choose(intent.goal, capability)
        return chosen or (FINDER if self._model() is None else ASSISTANT)

    def _model(self) -> ChatModel | None:
        return self._chat if self._chat is not None else self._db.chat

    async def _answered(self, agent: Agent, run: Run) -> str:
        """Let the agent work; its answer."""
        name = f"agent {agent.name!r}"
        if agent is FINDER:
            run.say(find(run))
            return "".join(run.pieces)
        if agent.executor is None:
            model = self._model()
            if model is None:
                raise AgentFailed(f"{name} has no function and no chat model is set up; give one to Kernel(chat=…)")
            return await speak(agent, model, run)
        made = await called(name, agent.executor, run, (run,))
        if hasattr(made, "__aiter__"):
            await drained(name, made, run)
            return "".join(run.pieces)
        if not isinstance(made, str):
            raise AgentFailed(f"{name} gave {type(made).__name__}, not text or pieces of text")
        if not run.pieces:
            run.say(made)
        return made

    def _tracked(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """Begin work that `close` waits for."""
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def _after(self, happened: Happened, person: Person) -> None:
        """What is done when a turn is recorded: the engine is told, the thread's summary is kept up."""
        failed = await within(self._pools.engines, self.contexts.after_turn, happened, person.sources)
        if happened.intent.thread is not None:
            try:
                kept = await within(self._pools.engines, person.thread(happened.intent.thread).maintain)
                failed += kept.warnings
            except ThreefoldError as error:
                failed += (f"the thread's summary was not kept up: {error}",)
        for each in failed:
            _log.warning("%s", each)


def _logged(task: asyncio.Task[None]) -> None:
    """What went wrong in the background concerns no request."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("background work failed: %s: %s", type(error).__name__, error)

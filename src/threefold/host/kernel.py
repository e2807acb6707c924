"""The kernel: a request in, its context computed, an agent chosen and run, the turn recorded with what it was given."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Coroutine
from contextlib import aclosing
from typing import Any, Final, Self

from threefold.context.engine import Happened
from threefold.context.intents import BUDGET, intent_of
from threefold.context.manager import Contexts
from threefold.errors import AgentFailed, Conflict, ThreefoldError, Unavailable
from threefold.host.agents import Agent, Agents
from threefold.host.events import Event, Outcome
from threefold.host.people import House, Person
from threefold.host.run import Run, called, drained
from threefold.host.speaking import ASSISTANT, FINDER, find, speak
from threefold.model.context import ComputedContext, Intent
from threefold.model.kinds import Status
from threefold.model.memory import Memory
from threefold.ports import ChatModel
from threefold.realms.conv.recorder import TurnHandle
from threefold.realms.conv.threads import Thread
from threefold.realms.mem.recalling import Recall

_LABEL: Final = re.compile(r"\[([a-z][0-9]{1,4})\]")
_log = logging.getLogger("threefold.host")


class Kernel:
    """Runs agents over an open store, of `threefold.open` or `threefold.aio.open`. Leaving its block, or `close`,
    drains the background work.

        async with threefold.Kernel(db) as kernel:
            kernel.agents.register(agent)
            outcome = await kernel.submit("How do I deploy?", owner="alice", thread="deploy")

    `chat` speaks for agents that have no function of their own (unless it is named, the store's); `budget` is what a
    context may take, in tokens. Nothing needs a model: without one, and without an agent, what is found is quoted.
    """

    def __init__(self, db: House, chat: ChatModel | None = None, budget: int = BUDGET, tenant: str = "default") -> None:
        # Of an asynchronous store its synchronous twin: contexts are computed in threads.
        self._db: House = getattr(db, "sync", db)
        self._budget, self._tenant = budget, tenant
        self._chat = chat
        self.agents = Agents()
        self._background: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def contexts(self) -> Contexts:
        """The context engines: list, register, set the default."""
        return self._db.contexts

    async def start(self) -> Self:
        """Begin; nothing has to be waited for, it is the counterpart of `close`."""
        self._closed = False
        return self

    async def close(self) -> None:
        """Finish what runs in the background and end the engines; safe to call twice. The store stays open."""
        self._closed = True
        while self._background:
            await asyncio.gather(*self._background)
        for failed in await asyncio.to_thread(self.contexts.dispose):
            _log.warning("%s", failed)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def submit(self, goal: str, owner: str, thread: str | None = None, **options: Any) -> Outcome:
        """Answer a request and record it; what went wrong with the agent is in the outcome, not raised.

        Args:
            goal: what is asked for.
            owner: whose request it is; its context is made of what they may see.
            thread: the conversation it belongs to. Without one it shares nothing and is recorded by itself.
            options: `agent` or `capability` to choose by, `budget` in tokens, `engine`, `permissions`, `policies`,
                `tenant`.

        Raises:
            InvalidInput: an argument is malformed. NotFound: no such agent, capability or engine.
            Conflict: the thread is archived. Unavailable: the kernel is closed, or the store is busy.
        """
        async with aclosing(self.stream(goal, owner, thread, **options)) as events:
            async for event in events:
                if event.outcome is not None:
                    return event.outcome
        raise Unavailable("the request ended without an outcome")

    async def ask(self, goal: str, owner: str, thread: str | None = None, **options: Any) -> str:
        """The answer to a request alone. As `submit`, but raises what went wrong.

        Raises:
            AgentFailed: the agent failed. Otherwise as `submit`.
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
        person = self._db.user(owner, tenant or self._tenant, agent=chosen.name)
        turn = person.turn(intent.thread or f"intent-{intent.id}", turn=intent.id)
        turn.prompt(intent.goal)
        context = await self._context(intent, person, engine, turn)
        yield Event("start", agent=chosen.name, context=context)
        run = Run(intent, context, person)
        working = asyncio.ensure_future(self._answered(chosen, run))
        try:
            async for event in _told(run, working):
                yield event
        finally:
            # Also where the listener went away, or the request is cancelled: it is stopped, and recorded as it ended.
            outcome = await asyncio.shield(_finished(working, run, turn, chosen, owner))
            self._later(self._after(Happened(outcome.ref, intent, context, outcome.status, outcome.answer), person))
        yield Event("complete" if outcome.status == "completed" else "error", outcome.answer, outcome=outcome)

    async def _context(self, intent: Intent, person: Person, engine: str | None, turn: TurnHandle) -> ComputedContext:
        """The context of a request; noted in its turn, which is recorded here where the request ends with this."""
        try:
            context = await asyncio.to_thread(self.contexts.assemble, intent, person.sources, engine)
        except (asyncio.CancelledError, Unavailable) as error:
            await asyncio.shield(asyncio.to_thread(turn.close, error))
            raise
        if context.thread is not None and context.thread.status == "archived":
            raise Conflict(f"thread {intent.thread!r} is archived; reopen() it first")
        turn.context("computed_context", _given(context))
        return context

    async def remember(self, memory: str, owner: str, tenant: str | None = None, **details: Any) -> Memory:
        """Keep a memory for somebody, by their own word: see `Mem.remember`."""
        person = self._db.user(owner, tenant or self._tenant)
        return await asyncio.to_thread(person.mem.remember, memory, **details)

    async def recall(self, query: str, owner: str, tenant: str | None = None, **filters: Any) -> Recall:
        """Memories that answer a question: see `Mem.recall`."""
        person = self._db.user(owner, tenant or self._tenant)
        return await asyncio.to_thread(person.mem.recall, query, **filters)

    def thread(self, name: str, owner: str, tenant: str | None = None) -> Thread:
        """Somebody's thread; its methods are plain calls. `submit(…, thread=name)` carries it on."""
        return self._db.user(owner, tenant or self._tenant).thread(name)

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
        made = await called(name, agent.executor, run)
        if inspect.isasyncgen(made) or hasattr(made, "__aiter__"):
            await drained(name, made, run)
            return "".join(run.pieces)
        if not isinstance(made, str):
            raise AgentFailed(f"{name} gave {type(made).__name__}, not text or pieces of text")
        if not run.pieces:
            run.say(made)
        return made

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _after(self, happened: Happened, person: Person) -> None:
        """What is done when a turn is recorded: the engine is told, the thread's summary is kept up."""
        failed = await asyncio.to_thread(self.contexts.after_turn, happened, person.sources)
        if happened.intent.thread is not None:
            try:
                failed += (await asyncio.to_thread(person.thread(happened.intent.thread).maintain)).warnings
            except ThreefoldError as error:
                failed += (f"the thread's summary was not kept up: {error}",)
        for each in failed:
            _log.warning("%s", each)


def _given(context: ComputedContext) -> dict[str, Any]:
    """What an agent was given to see, by reference: the things themselves stay where they are."""
    return {
        "engine": context.engine, "tokens": context.estimated_tokens, "budget": context.budget,
        "given": [{"label": each.label, "ref": each.ref, "section": each.section, "score": each.score,
                   "whole": each.whole} for each in context.entries],
        "thread": None if context.thread is None else [said.ref for said in context.thread.messages],
        "dropped": [{"ref": each.ref, "why": each.why} for each in context.dropped],
        "warnings": list(context.warnings),
    }  # fmt: skip


async def _told(run: Run, working: asyncio.Future[str]) -> AsyncIterator[Event]:
    """What the run tells, as it comes, until the work is done."""
    while not working.done() or not run.events.empty():
        waiting = asyncio.ensure_future(run.events.get())
        try:
            await asyncio.wait((waiting, working), return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                yield waiting.result()
        finally:
            waiting.cancel()


async def _finished(working: asyncio.Future[str], run: Run, turn: TurnHandle, agent: Agent, owner: str) -> Outcome:
    """Stop the work if it is not done, record the turn as it ended."""
    working.cancel()
    (result,) = await asyncio.gather(working, return_exceptions=True)
    answer, error, status = "".join(run.pieces), None, "completed"
    if isinstance(result, str):
        answer = result
    elif isinstance(result, asyncio.CancelledError):
        status, error = "cancelled", "cancelled"
    else:
        status, error = "failed", str(result)
    for step in run.steps:
        turn.step(step.name, step.arguments, step.result, step.status)
    refs = run.context.refs
    citations = {label: refs[label] for label in dict.fromkeys(_LABEL.findall(answer)) if label in refs}
    for label, ref in citations.items():
        turn.source(ref, title=label)
    if answer:
        turn.answer(answer)
    turn.tokens(**run.tokens)
    if status == "failed":
        turn.fail(error or "")
    elif status == "cancelled":
        turn.cancel(error)
    ref = await asyncio.to_thread(turn.record)
    ended: Status = status  # type: ignore[assignment]
    return Outcome(run.intent.id, run.goal, owner, agent.name, ended, answer, ref, run.context, citations,
                   tuple(run.steps), dict(run.tokens), error, run.intent.thread)  # fmt: skip

"""The kernel: a request in, its context computed, an agent chosen and run, the turn recorded with what it was given."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from typing import Any, Self

from threefold.context.intents import BUDGET, intent_of
from threefold.context.manager import Contexts
from threefold.errors import AgentFailed, InvalidInput, Unavailable
from threefold.host.agents import Agent, Agents
from threefold.host.events import Event, Events, Outcome
from threefold.host.people import House, Person
from threefold.host.pools import within
from threefold.host.sending import Batch, Inbox, NoInbox, put_in
from threefold.host.speaking import ASSISTANT, FINDER
from threefold.host.work import Request, Work
from threefold.model.context import Intent
from threefold.model.memory import Memory
from threefold.ports import ChatModel
from threefold.realms.conv.lanes import Lanes
from threefold.realms.conv.threads import Thread
from threefold.realms.mem.recalling import Recall


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
        self.budget, self.tenant, self.app = budget, tenant, app
        self._chat = chat
        self.agents = Agents()
        self.work = Work(self._db, chat)
        self._closed = False

    @property
    def contexts(self) -> Contexts:
        """The context engines: list, register, set the default."""
        return self._db.contexts

    @property
    def lanes(self) -> Lanes:
        """The lanes of the store: what a `Door` works with."""
        return self._db.lanes

    async def start(self) -> Self:
        """Begin, also after a `close`; nothing has to be waited for."""
        if self._closed:
            self.work, self._closed = Work(self._db, self._chat), False
        return self

    async def close(self) -> None:
        """Finish requests under way and what runs in the background; safe to call twice.

        The store stays open, and with it the context engines.
        """
        self._closed = True
        await self.work.drain()

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
            InvalidInput: an argument is malformed or empty. NotFound: no such agent, capability or engine.
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
        intent = intent_of(goal, thread, self.budget if budget is None else budget, permissions, policies)
        if not intent.goal.strip():
            raise InvalidInput("goal is empty; say what is asked for")
        request = self.request(intent, owner, (Batch("prompt", intent.goal),), agent, capability, engine, tenant)
        working = self.work.begin(request)
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

    def request(
        self,
        intent: Intent,
        owner: str,
        sent: tuple[Batch, ...],
        agent: str | None = None,
        capability: str | None = None,
        engine: str | None = None,
        tenant: str | None = None,
        inbox: Inbox | None = None,
    ) -> Request:
        """A request that `work` can begin, with its turn open; it is recorded under the intent's id, once.

        Raises:
            NotFound: no such agent or capability. InvalidInput: the owner is malformed. Unavailable: the kernel is
            closed.
        """
        if self._closed:
            raise Unavailable("the kernel is closed; start it again")
        chosen = self._choose(intent, agent, capability)
        person = self.person(owner, tenant, chosen.name)
        turn = person.turn(intent.thread or f"intent-{intent.id}", intent.id, once=True)
        put_in(turn, sent)
        return Request(intent, chosen, owner, person, turn, engine, Events(), sent, inbox or NoInbox())

    async def remember(self, memory: str, owner: str, tenant: str | None = None, **details: Any) -> Memory:
        """Keep a memory for somebody, by their own word: see `Mem.remember`."""
        person = self.person(owner, tenant)
        return await within(self.work.pools.store, person.mem.remember, memory, **details)

    async def recall(self, query: str, owner: str, tenant: str | None = None, **filters: Any) -> Recall:
        """Memories that answer a question: see `Mem.recall`."""
        person = self.person(owner, tenant)
        return await within(self.work.pools.store, person.mem.recall, query, **filters)

    def thread(self, name: str, owner: str, tenant: str | None = None) -> Thread:
        """Somebody's thread; its methods are plain calls. `submit(…, thread=name)` carries it on."""
        return self.person(owner, tenant).thread(name)

    def person(self, owner: str, tenant: str | None = None, agent: str | None = None) -> Person:
        """The handle that requests of an owner work with."""
        return self._db.user(owner, self.tenant if tenant is None else tenant, self.app, agent)

    def _choose(self, intent: Intent, agent: str | None, capability: str | None) -> Agent:
        if agent is not None:
            return self.agents.get(agent)
        chosen = self.agents.choose(intent.goal, capability)
        return chosen or (FINDER if self.work.model is None else ASSISTANT)

"""A kernel with agents, tools, models and stores that do not behave; every request ends, and is recorded."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import aclosing
from typing import Any

import pytest

import threefold
from threefold import Agent, Kernel
from threefold.context import DefaultEngine, EngineInfo
from threefold.errors import AgentFailed, Conflict, Forbidden, InvalidInput, Unavailable
from threefold.host import ending
from threefold.host.run import Run
from threefold.testing.fakes import HashEmbedder

WAIT = 20
RAISED = (SystemExit, GeneratorExit, asyncio.CancelledError, StopIteration, StopAsyncIteration)


@pytest.fixture
def db() -> Iterator[threefold.Threefold]:
    with threefold.open(":memory:", embedder=HashEmbedder(), background=False) as db:
        yield db


def played(db: threefold.Threefold, play: Callable[[Kernel], Any], debug: bool = False, **settings: Any) -> Any:
    async def run() -> Any:
        async with Kernel(db, **settings) as kernel:
            return await play(kernel)

    return asyncio.run(asyncio.wait_for(run(), WAIT), debug=debug)


def asked(db: threefold.Threefold, agent: Any, **settings: Any) -> Any:
    """The outcome of a request to one agent."""

    async def play(kernel: Kernel) -> Any:
        kernel.agents.register(agent, name=None if isinstance(agent, Agent) else "mine")
        return await kernel.submit("goal", "alice", thread="t")

    return played(db, play, **settings)


def kept(db: threefold.Threefold) -> list[tuple[str, str]]:
    return [(turn.status, turn.about) for turn in db.user("alice").conv.turns("t")]


@pytest.mark.parametrize(
    "raised", [StopIteration, StopAsyncIteration, SystemExit, GeneratorExit, asyncio.CancelledError]
)
def test_whatever_an_agent_raises_is_a_failure(db: threefold.Threefold, raised) -> None:
    def plain(run: Run) -> str:
        run.say("so far")
        raise raised("of mine")

    async def later(run: Run) -> str:
        run.say("so far")
        raise raised("of mine")

    async def pieces(run: Run):
        yield "so far"
        raise raised("of mine")

    def plain_pieces(run: Run):
        yield "so far"
        raise raised("of mine")

    for agent in (plain, later, pieces, plain_pieces):
        outcome = asked(db, agent)
        assert (outcome.status, outcome.answer) == ("failed", "so far")
        assert outcome.error.startswith("agent 'mine' failed: ")
        assert "of mine" in outcome.error or "raised Stop" in outcome.error
    assert kept(db) == [("failed", "goal")] * 4


@pytest.mark.parametrize(
    ("tell", "said"),
    [
        (lambda run: run.step("x", object()), "arguments must be plain JSON"),
        (lambda run: run.step("x", result=float("nan")), "result must be plain JSON"),
        (lambda run: run.step("x", status="done"), "status 'done' must be one of"),
        (lambda run: run.step(None), "name must be text"),
        (lambda run: run.say(5), "text must be text, not int"),
        (lambda run: run.spend(input=1.5), "input must be a whole number"),
    ],
)
def test_what_cannot_be_kept_is_refused_where_it_is_told(db: threefold.Threefold, tell, said) -> None:
    def agent(run: Run) -> str:
        run.say("so far")
        tell(run)
        return "never"

    outcome = asked(db, agent)
    assert (outcome.status, outcome.answer, said in outcome.error) == ("failed", "so far", True)
    assert kept(db) == [("failed", "goal")]

    def careful(run: Run) -> str:
        with pytest.raises(InvalidInput):
            tell(run)
        return "\ud83d\ude00 and \ud800"

    outcome = asked(db, careful)
    assert (outcome.status, outcome.answer) == ("completed", "😀 and �")


def test_a_plain_agent_is_heard_as_it_speaks(db: threefold.Threefold) -> None:
    heard = threading.Event()

    def agent(run: Run) -> str:
        run.step("first")
        run.say("one ")
        assert heard.wait(WAIT)
        run.say("two")
        return "one two"

    async def play(kernel: Kernel) -> Any:
        kernel.agents.register(agent)
        kinds = []
        async with aclosing(kernel.stream("goal", "alice")) as events:
            async for event in events:
                kinds.append(event.kind)
                if event.text == "one ":
                    heard.set()
        return kinds

    kinds = played(db, play, debug=True)
    assert kinds == ["start", "step", "delta", "delta", "complete"]


def test_an_agent_that_never_waits_can_be_left_and_is_closed(db: threefold.Threefold) -> None:
    closed = []

    async def endless(run: Run):
        try:
            while True:
                yield "word "
        finally:
            closed.append(run.goal)

    async def play(kernel: Kernel) -> None:
        kernel.agents.register(endless)
        async with aclosing(kernel.stream("goal", "alice", "t")) as events:
            async for event in events:
                if event.kind == "delta":
                    break
        assert closed == ["goal"]

    played(db, play)
    assert kept(db) == [("cancelled", "goal")]


def test_a_request_that_is_left_after_its_start_is_recorded(db: threefold.Threefold) -> None:
    async def play(kernel: Kernel) -> None:
        async def agent(run: Run) -> str:
            await asyncio.Event().wait()
            return "never"

        kernel.agents.register(agent)
        async with aclosing(kernel.stream("goal", "alice", "t")) as events:
            async for event in events:
                assert event.kind == "start"
                break

    played(db, play)
    assert kept(db) == [("cancelled", "goal")]


def test_a_thread_that_goes_on_after_its_request_is_told_so(db: threefold.Threefold) -> None:
    begun, gate, told = threading.Event(), threading.Event(), list[str]()

    def agent(run: Run) -> str:
        begun.set()
        gate.wait(WAIT)
        try:
            run.say("too late")
        except AgentFailed as error:
            told.append(str(error))
        gate.clear()
        return "never"

    async def play(kernel: Kernel) -> None:
        kernel.agents.register(agent)
        task = asyncio.create_task(kernel.submit("goal", "alice", "t"))
        await asyncio.to_thread(begun.wait, WAIT)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.set()
        while not told:
            await asyncio.sleep(0.01)

    played(db, play)
    assert told == ["the request has ended; nothing can be told any more"]


class Held:
    """An engine whose hooks wait for a gate."""

    info = EngineInfo("held", "Held")

    def __init__(self) -> None:
        self.begun, self.gate = threading.Event(), threading.Event()
        self.told: list[str] = []

    async def assemble(self, intent, sources):
        self.begun.set()
        await asyncio.to_thread(self.gate.wait, WAIT)
        return DefaultEngine().assemble(intent, sources)

    def compact(self, thread, sources):
        return DefaultEngine().compact(thread, sources)

    def after_turn(self, happened, sources) -> None:
        self.told.append(happened.status)


def test_closing_waits_for_requests_under_way(db: threefold.Threefold) -> None:
    engine = Held()
    db.contexts.register(engine)
    db.contexts.engine_seconds = WAIT

    async def play(kernel: Kernel) -> Any:
        kernel.agents.register(lambda run: "done", name="doer")
        task = asyncio.create_task(kernel.submit("goal", "alice", "t", engine="held"))
        await asyncio.to_thread(engine.begun.wait, WAIT)
        closing = asyncio.create_task(kernel.close())
        await asyncio.sleep(0)
        assert not closing.done()
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        engine.gate.set()
        await kernel.close()
        assert task.done()
        return await task

    assert played(db, play).answer == "done"
    assert engine.told == ["completed"]


def test_a_request_that_is_cancelled_while_its_engine_works_hangs_nothing(db: threefold.Threefold) -> None:
    engine = Held()
    db.contexts.register(engine)

    async def play(kernel: Kernel) -> None:
        kernel.agents.register(lambda run: "done", name="doer")
        task = asyncio.create_task(kernel.submit("goal", "alice", "t", engine="held"))
        await asyncio.to_thread(engine.begun.wait, WAIT)
        task.cancel()
        await asyncio.wait((task,))
        async with Kernel(db) as other:
            other.agents.register(lambda run: "done", name="doer")
            await other.submit("other", "alice", "t")

    played(db, play)
    engine.gate.set()
    assert kept(db) == [("cancelled", "goal"), ("completed", "other")]


def test_a_second_cancel_does_not_lose_the_turn(db: threefold.Threefold, monkeypatch) -> None:
    begun, gate = threading.Event(), threading.Event()
    commit = db._backend.commit

    def slow(*values, **named):
        begun.set()
        gate.wait(WAIT)
        return commit(*values, **named)

    async def play(kernel: Kernel) -> None:
        kernel.agents.register(lambda run: "done", name="doer")
        monkeypatch.setattr(db._backend, "commit", slow)
        task = asyncio.create_task(kernel.submit("goal", "alice", "t"))
        await asyncio.to_thread(begun.wait, WAIT)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0.01)
        assert task.done()
        closing = asyncio.create_task(kernel.close())
        await asyncio.sleep(0.01)
        assert not closing.done()
        gate.set()
        await closing

    played(db, play)
    assert kept(db) == [("completed", "goal")]


def test_slow_agents_do_not_keep_others_from_being_recorded(db: threefold.Threefold) -> None:
    gate = threading.Event()

    def slow(run: Run) -> str:
        gate.wait(WAIT)
        return "slow"

    async def quick(run: Run) -> str:
        return "quick"

    async def play(kernel: Kernel) -> None:
        kernel.agents.register(slow)
        kernel.agents.register(quick)
        waiting = [asyncio.create_task(kernel.submit("goal", "bob", agent="slow")) for _ in range(80)]
        assert await kernel.ask("goal", "alice", agent="quick") == "quick"
        gate.set()
        assert {outcome.answer for outcome in await asyncio.gather(*waiting)} == {"slow"}

    played(db, play)


@pytest.mark.parametrize("busy", [2, 100])
def test_an_answer_outlives_a_store_that_is_busy(db: threefold.Threefold, monkeypatch, busy: int) -> None:
    monkeypatch.setattr(ending, "PAUSES", (0.0, 0.0, 0.0))
    commit, left = db._backend.commit, [busy]

    def refuse(*values, **named):
        left[0] -= 1
        if left[0] >= 0:
            raise Unavailable("the store is busy")
        return commit(*values, **named)

    monkeypatch.setattr(db._backend, "commit", refuse)
    outcome = asked(db, lambda run: "done")
    assert outcome.answer == "done"
    if busy == 2:
        assert (outcome.status, kept(db)) == ("completed", [("completed", "goal")])
    else:
        assert (outcome.status, outcome.ref, kept(db)) == ("failed", "", [])
        assert outcome.error == "the turn was not recorded: the store is busy"


def test_what_fails_in_the_background_is_logged(db: threefold.Threefold, monkeypatch, caplog) -> None:
    def explode(*_: object) -> None:
        raise ZeroDivisionError("of mine")

    monkeypatch.setattr(db.contexts, "after_turn", explode)
    with caplog.at_level(logging.ERROR):
        assert asked(db, lambda run: "done").status == "completed"
    assert "ZeroDivisionError: of mine" in caplog.text


class Blind:
    """An engine that does not look at the thread."""

    info = EngineInfo("blind", "Blind")

    def assemble(self, intent, sources):
        from dataclasses import replace

        return replace(DefaultEngine().assemble(intent, sources), thread=None)

    def compact(self, thread, sources):
        return DefaultEngine().compact(thread, sources)


def test_a_thread_is_refused_whatever_the_engine_says_of_it(db: threefold.Threefold) -> None:
    db.contexts.register(Blind())
    db.contexts.set_default("blind")
    assert asked(db, lambda run: "done").status == "completed"
    db.user("alice").thread("t").archive()
    with pytest.raises(Conflict, match="archived"):
        asked(db, lambda run: "done")
    assert len(kept(db)) == 1


def test_app_and_tenant_of_a_kernel(db: threefold.Threefold) -> None:
    outcome = asked(db, lambda run: str(run.user.scope), app="A", tenant="acme")
    assert "app='A'" in outcome.answer
    assert "tenant='acme'" in outcome.answer
    for engine in (None, "blind"):
        if engine:
            db.contexts.register(Blind())
            db.contexts.set_default(engine)
        with pytest.raises(Forbidden):
            asked(db, lambda run: "done", app="B", tenant="acme")
    with pytest.raises(InvalidInput, match="tenant is empty"):
        played(db, lambda kernel: kernel.submit("goal", "alice", tenant=""))


def test_the_names_of_built_in_agents_are_refused(db: threefold.Threefold) -> None:
    for name in ("finder", "assistant"):
        with pytest.raises(Conflict, match=f"'{name}' is that of a built-in agent"):
            Kernel(db).agents.register(lambda run: "x", name=name)

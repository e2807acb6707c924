"""The kernel on each back end: context in, answer out, the turn recorded with what it was given, whatever happens."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest

import threefold
from threefold import Act, Agent, Capability, Kernel, Tool
from threefold.context.engine import Compacted, EngineInfo
from threefold.errors import AgentFailed, Conflict, InvalidInput, NotFound, Unavailable
from threefold.host.run import Run
from threefold.model.chat import Call, Reply, Usage
from threefold.testing import ScriptedModel
from threefold.text.tokens import count_tokens

Open = Callable[..., threefold.Threefold]


def played(db: threefold.Threefold, play: Callable[[Kernel], Any], **settings: Any) -> Any:
    """What a play with a kernel over a store gives."""

    async def run() -> Any:
        async with Kernel(db, **settings) as kernel:
            return await play(kernel)

    return asyncio.run(run())


def furnished(db: threefold.Threefold) -> threefold.Handle:
    alice = db.user("alice")
    alice.mem.remember("prefers TypeScript", kind="preference")
    db.organization().mem.remember("the company deploys to ECS")
    alice.doc.ingest("# Deploy\n\nAn ECS task definition names its image.\n", source="deployment.md")
    db.embed_pending()
    return alice


@pytest.mark.capability("kernel")
def test_a_request_gets_its_context_and_its_turn_is_recorded_with_it(db: threefold.Threefold) -> None:
    alice = furnished(db)
    seen: list[Run] = []

    async def helper(run: Run) -> str:
        """Deployment help."""
        seen.append(run)
        run.step("look", {"where": "infra"}, {"found": 3})
        run.spend(input=10, output=2)
        return "Name the image [d1], in TypeScript [m1], not [z9]."

    async def play(kernel: Kernel):
        kernel.agents.register(helper)
        return await kernel.submit("What does the ECS task definition name?", owner="alice", thread="deploy")

    outcome = played(db, play)
    (run,) = seen
    assert run.goal == outcome.goal == "What does the ECS task definition name?"
    assert {entry.section for entry in run.context.entries} >= {"longterm", "organizational", "document"}
    assert (outcome.status, outcome.agent, outcome.thread, outcome.error) == ("completed", "helper", "deploy", None)
    assert outcome.citations == {"d1": run.context.refs["d1"], "m1": run.context.refs["m1"]}
    assert outcome.as_json()["context"]["refs"] == dict(run.context.refs)

    turn = alice.conv.turn(outcome.ref)
    assert [(m.role, m.text) for m in turn.messages] == [("user", outcome.goal), ("assistant", outcome.answer)]
    (given,) = turn.context
    assert given["event"] == "computed_context"
    assert {each["label"]: each["ref"] for each in given["payload"]["given"]} == dict(run.context.refs)
    shown = {each["label"]: (each["because"], each["tokens"]) for each in given["payload"]["given"]}
    assert shown == {each.label: (each.because, count_tokens(each.text)) for each in run.context.entries}
    assert "TypeScript" not in str(given["payload"])
    assert [(step.name, step.status, step.result) for step in turn.steps] == [("look", "completed", {"found": 3})]
    assert [(source["title"], source["url"]) for source in turn.citations] == list(outcome.citations.items())
    assert (turn.tokens, turn.agent, turn.conversation) == ({"input": 10, "output": 2}, "helper", "deploy")


@pytest.mark.capability("kernel")
def test_a_thread_is_carried_on_and_without_one_each_stands_alone(db: threefold.Threefold) -> None:
    alice = db.user("alice")

    async def play(kernel: Kernel):
        kernel.agents.register(lambda run: f"heard {run.goal}", name="echo")
        for goal in ("first", "second"):
            await kernel.submit(goal, "alice", thread="trip")
        third = await kernel.submit("third", "alice", thread="trip")
        alone = [await kernel.submit("alone", "alice") for _ in range(2)]
        other = await kernel.submit("mine", "bob", thread="trip")
        return third, alone, other

    third, alone, other = played(db, play)
    assert [said.text for said in third.context.thread.messages] == ["first", "heard first", "second", "heard second"]
    assert len({alice.conv.turn(each.ref).conversation for each in alone}) == 2
    assert alone[0].context.thread is None
    assert other.context.thread.messages == ()
    assert [entry.name for entry in alice.threads()] == ["trip"]
    alice.thread("trip").archive()
    with pytest.raises(Conflict, match="archived"):
        played(db, lambda kernel: kernel.submit("more", "alice", thread="trip"))
    assert len(alice.conv.turns("trip")) == 3


@pytest.mark.capability("kernel")
def test_agents_are_chosen_by_capability_and_by_words(db: threefold.Threefold) -> None:
    def agent(name: str, *capabilities: Capability, description: str = "") -> Agent:
        return Agent(name, description, capabilities, executor=lambda run: name)

    async def play(kernel: Kernel):
        kernel.agents.register(agent("cook", Capability("cooking", "recipes and meals", 0.9)))
        kernel.agents.register(agent("ops", Capability("deploy", "deployment and servers", 0.6)))
        kernel.agents.register(agent("chief", Capability("deploy", "deployment of releases", 0.95)))
        asked = {
            "a recipe for soup": {}, "deployment of our servers": {}, "anything": {"capability": "deploy"},
            "soup": {"agent": "ops"},
        }  # fmt: skip
        answers = [(await kernel.submit(goal, "alice", **options)).answer for goal, options in asked.items()]
        with pytest.raises(NotFound, match="capability 'fly': no agent has it"):
            await kernel.submit("x", "alice", capability="fly")
        with pytest.raises(NotFound, match="agent 'none' is not registered; there are: cook, ops, chief"):
            await kernel.submit("x", "alice", agent="none")
        with pytest.raises(InvalidInput, match="goal is empty"):
            await kernel.submit(" ", "alice")
        with pytest.raises(Conflict, match="agent 'cook' is registered already"):
            kernel.agents.register(agent("cook"))
        unsure = Agent("x", capabilities=(Capability("y", confidence=2),))
        for wrong, said in ((3, "is no Agent"), (Agent(" "), "name is empty"), (unsure, "must be from 0 to 1")):
            with pytest.raises(InvalidInput, match=said):
                kernel.agents.register(wrong)  # type: ignore[arg-type]
        return answers

    assert played(db, play) == ["cook", "ops", "chief", "ops"]


@pytest.mark.capability("kernel")
def test_a_failure_is_recorded_and_told(db: threefold.Threefold) -> None:
    alice = db.user("alice")

    def broken(run: Run) -> str:
        run.say("so far ")
        raise ZeroDivisionError("of mine")

    async def play(kernel: Kernel):
        kernel.agents.register(broken)
        kernel.agents.register(Agent("odd", executor=lambda run: 3))  # type: ignore[arg-type, return-value]
        outcome = await kernel.submit("divide", "alice", agent="broken")
        with pytest.raises(AgentFailed, match="gave int, not text"):
            await kernel.ask("divide", "alice", agent="odd")
        return outcome

    outcome = played(db, play)
    assert (outcome.status, outcome.answer) == ("failed", "so far ")
    assert outcome.error == "agent 'broken' failed: ZeroDivisionError: of mine"
    turn = alice.conv.turn(outcome.ref)
    assert (turn.status, turn.error, turn.messages[-1].text) == ("failed", outcome.error, "so far ")


@pytest.mark.capability("kernel")
def test_what_is_cancelled_or_left_is_stopped_and_recorded(db: threefold.Threefold) -> None:
    alice = db.user("alice")
    begun, stopped = list[str](), list[str]()

    async def slow(run: Run):
        begun.append(run.goal)
        try:
            for number in range(10_000):
                yield f"{number} "
                await asyncio.sleep(0.01)
        finally:
            stopped.append(run.goal)

    async def play(kernel: Kernel):
        kernel.agents.register(slow)
        task = asyncio.create_task(kernel.submit("cancelled", "alice"))
        while not begun:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with aclosing(kernel.stream("left", "alice")) as events:
            async for event in events:
                if event.kind == "delta":
                    break

    played(db, play)
    assert stopped == ["cancelled", "left"]
    turns = alice.conv.turns(limit=10)
    assert {(turn.about, turn.status) for turn in turns} == {("cancelled", "cancelled"), ("left", "cancelled")}


@pytest.mark.capability("kernel")
def test_a_plain_generator_gives_its_answer_in_pieces_and_is_closed(db: threefold.Threefold) -> None:
    where, closed = set[str](), list[str]()

    def guide(run: Run):
        where.add(threading.current_thread().name)
        try:
            yield from ("left, ", "then ", "right")
        finally:
            closed.append(run.goal)

    async def play(kernel: Kernel):
        kernel.agents.register(guide)
        whole = [event async for event in kernel.stream("whole", "alice")]
        async with aclosing(kernel.stream("left", "alice")) as events:
            async for event in events:
                if event.kind == "delta":
                    break
        return whole

    whole = played(db, play)
    assert [event.text for event in whole if event.kind == "delta"] == ["left, ", "then ", "right"]
    assert whole[-1].outcome.answer == "left, then right"
    assert closed == ["whole", "left"]
    assert all(name.startswith("threefold-agents") for name in where)
    said = {turn.about: turn.status for turn in db.user("alice").conv.turns(limit=10)}
    assert said["whole"] == "completed"


@pytest.mark.capability("kernel")
def test_a_stream_has_a_start_steps_pieces_and_one_end(db: threefold.Threefold) -> None:
    async def talker(run: Run):
        run.step("think")
        for piece in ("one ", "two"):
            yield piece

    async def play(kernel: Kernel):
        kernel.agents.register(talker)
        return [event async for event in kernel.stream("count", "alice")]

    events = played(db, play)
    assert [event.kind for event in events] == ["start", "step", "delta", "delta", "complete"]
    assert events[0].agent == "talker"
    assert events[0].context is not None
    assert "".join(event.text for event in events[2:-1]) == events[-1].outcome.answer == "one two"


@pytest.mark.capability("kernel")
def test_a_model_speaks_for_an_agent_and_calls_its_tools(db: threefold.Threefold) -> None:
    alice = furnished(db)
    calls: list[str] = []

    async def weather(city: str) -> dict[str, str]:
        calls.append(city)
        return {"sky": "blue"}

    def explode() -> str:
        raise RuntimeError("no fuel")

    tools = (Act(Tool("weather", "the weather of a city"), weather), Act(Tool("explode", "fails"), explode))
    model = ScriptedModel([
        Reply("", (Call("1", "weather", {"city": "Porto"}), Call("2", "explode"), Call("3", "unknown")), "tools",
              Usage(100, 5)),
        Reply("It is blue [m1].", usage=Usage(150, 7)),
    ])  # fmt: skip

    async def play(kernel: Kernel):
        kernel.agents.register(Agent("guide", instructions="You guide travellers.", tools=tools))
        return await kernel.submit("How is the sky over Porto?", "alice", thread="trip")

    outcome = played(db, play, chat=model)
    assert (outcome.status, outcome.answer, outcome.error) == ("completed", "It is blue [m1].", None)
    assert calls == ["Porto"]
    assert [(step.name, step.status) for step in outcome.steps] == [
        ("weather", "completed"), ("explode", "error"), ("unknown", "error"),
    ]  # fmt: skip
    assert outcome.tokens == {"input": 250, "output": 12}
    first, second = model.asked
    assert first.messages[0].role == "system"
    assert first.messages[0].text.startswith("You guide travellers.")
    assert "prefers TypeScript" not in first.messages[0].text
    assert any("> prefers TypeScript" in message.text for message in first.messages if message.role == "user")
    assert [tool.name for tool in first.tools] == ["weather", "explode"]
    results = {message.call: message.text for message in second.messages if message.role == "tool"}
    assert results["1"] == '{"sky":"blue"}'
    assert "no fuel" in results["2"]
    assert "There is no tool 'unknown'" in results["3"]
    assert len(alice.conv.turn(outcome.ref).steps) == 3


@pytest.mark.capability("kernel")
def test_a_model_that_only_calls_tools_or_fails_ends_as_a_failure(db: threefold.Threefold) -> None:
    again = ScriptedModel(lambda _: Reply("", (Call("1", "nothing"),), "tools"))
    outcome = played(db, lambda kernel: kernel.submit("x", "alice"), chat=again)
    assert (outcome.status, outcome.error) == ("failed", "agent 'assistant' asked for tools 8 times without an answer")
    down = ScriptedModel([Unavailable("the server is down")])
    outcome = played(db, lambda kernel: kernel.submit("x", "alice"), chat=down)
    assert (outcome.status, outcome.error) == ("failed", "the server is down")


@pytest.mark.capability("kernel")
def test_without_a_model_what_is_kept_is_quoted_and_cited(open_db: Open) -> None:
    db = open_db(embedder="bundled")
    furnished(db)
    outcome = played(db, lambda kernel: kernel.submit("What does an ECS task definition name?", "alice"))
    assert (outcome.agent, outcome.status) == ("finder", "completed")
    assert "An ECS task definition names its image." in outcome.answer
    assert list(outcome.citations) == ["d1"]
    outcome = played(db, lambda kernel: kernel.submit("Explain the Pythagorean theorem", "alice"))
    assert outcome.answer.startswith("Nothing that is kept clearly answers this")
    assert "What is remembered:\n- " in outcome.answer
    assert list(outcome.citations) == [entry.label for entry in outcome.context.memories]
    outcome = played(db, lambda kernel: kernel.submit("Explain the Pythagorean theorem", "stranger"))
    assert outcome.answer.endswith("set up to answer otherwise."), "nothing is remembered of a stranger"
    wordless = played(db, _submit_without_model)
    assert (wordless.status, "no chat model is set up" in wordless.error) == ("failed", True)


@pytest.mark.capability("kernel")
def test_without_a_model_what_was_said_in_this_conversation_is_quoted_too(open_db: Open) -> None:
    db = open_db(embedder="bundled")

    async def play(kernel: Kernel) -> list[Any]:
        said = ["The wifi password is tuna42.", "My flight leaves at nine.", *["What is the wifi password?"] * 2]
        return [await kernel.submit(text, "alice", thread="trip") for text in said]

    first, _, asked, again = played(db, play)
    for outcome in (asked, again):
        assert outcome.answer.endswith("kept about it:\n- The wifi password is tuna42. [c1]")
        assert list(outcome.citations.values()) == [first.ref.replace("turn.log", "user.prompt")]
        assert db.user("alice").conv.turn(outcome.ref).citations[0]["url"] == outcome.citations["c1"]


async def _submit_without_model(kernel: Kernel):
    kernel.agents.register(Agent("mute", instructions="Speak."))
    return await kernel.submit("x", "alice", agent="mute")


class Telling:
    """An engine that is told what happened."""

    info = EngineInfo("telling", "Tells")

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.gate = threading.Event()

    def assemble(self, intent, sources):
        from threefold.context.default import DefaultEngine

        return DefaultEngine().assemble(intent, sources)

    def compact(self, thread, sources) -> Compacted:
        return Compacted(0, 0)

    def after_turn(self, happened, sources) -> None:
        self.gate.wait(5)
        self.told.append((happened.status, happened.answer, happened.ref))

    async def maintain(self, sources) -> None:
        self.told.append("maintained")

    def dispose(self) -> None:
        self.told.append("disposed")


@pytest.mark.capability("kernel")
def test_closing_drains_what_runs_in_the_background(db: threefold.Threefold) -> None:
    engine = Telling()
    db.contexts.register(engine)

    async def play() -> Any:
        kernel = await Kernel(db).start()
        kernel.agents.register(lambda run: "done", name="doer")
        outcome = await kernel.submit("x", "alice", engine="telling")
        assert engine.told == []
        asyncio.get_running_loop().call_later(0.1, engine.gate.set)
        await kernel.close()
        with pytest.raises(Unavailable, match="the kernel is closed"):
            await kernel.submit("y", "alice")
        return outcome

    outcome = asyncio.run(play())
    assert engine.told == [("completed", "done", outcome.ref), "maintained"]
    db.close()
    assert engine.told[2:] == ["disposed"]


@pytest.mark.capability("kernel")
def test_many_requests_at_once_stay_apart(db: threefold.Threefold) -> None:
    async def play(kernel: Kernel):
        async def echo(run: Run) -> str:
            await asyncio.sleep(0.01)
            return f"{run.context.user['id']}:{run.goal}"

        kernel.agents.register(echo)
        asked = [(f"user{n % 4}", f"goal {n}") for n in range(24)]
        return await asyncio.gather(*(kernel.submit(goal, owner, thread="t") for owner, goal in asked))

    outcomes = played(db, play)
    assert all(outcome.answer == f"{outcome.owner}:{outcome.goal}" for outcome in outcomes)
    for n in range(4):
        assert len(db.user(f"user{n}").conv.turns("t")) == 6


@pytest.mark.capability("kernel")
def test_memory_is_within_reach_of_a_kernel_and_of_an_agent(db: threefold.Threefold) -> None:
    def keeper(run: Run) -> str:
        return run.user.mem.remember("likes ferries").status

    async def play(kernel: Kernel):
        await kernel.remember("likes trains", "alice", kind="preference")
        kernel.agents.register(keeper)
        proposed = await kernel.ask("note it", "alice")
        return proposed, await kernel.recall("trains", "alice")

    proposed, found = played(db, play)
    assert proposed == "proposed"
    assert [each.record.memory for each in found] == ["likes trains"]
    assert [each.memory for each in db.user("alice").mem.proposals()] == ["likes ferries"]

"""A door where something is amiss: bytes that are lost, a store that is busy, lanes that expired, too much to share."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from doors import ENDS, Gate, Viewer, custom, played, said, sent, still, texts, turns
from waiting import wait_until

import threefold
from threefold import Door, Kernel
from threefold.errors import IntegrityError, InvalidInput, Steered, Unavailable
from threefold.host import door as door_module
from threefold.host import ending, holding
from threefold.host.run import Run
from threefold.model.record import TurnRecord
from threefold.realms.conv.lanes import keeping, shelf
from threefold.realms.conv.lanes.arriving import Draft
from threefold.realms.conv.lanes.values import Lane
from threefold.testing.fakes import Clock, HashEmbedder


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def db(clock: Clock) -> Iterator[threefold.Threefold]:
    with threefold.open(":memory:", embedder=HashEmbedder(), background=False, clock=clock) as db:
        yield db


def echo(run: Run) -> str:
    """Says what was asked."""
    return f"heard {run.goal}"


def asked(db: threefold.Threefold, agent: Any, **options: Any) -> list[Any]:
    """What a viewer is told of one turn of an agent."""

    async def play(kernel: Kernel, door: Door) -> list[Any]:
        kernel.agents.register(agent, name="mine")
        _, viewer = await sent(door, "goal", **options)
        return await viewer.ends()

    return played(db, play)


def test_an_idle_lane_that_expired_is_not_in_the_way(db: threefold.Threefold, clock: Clock) -> None:
    for number in range(2):
        asked(db, echo, key="the same")
        assert len(turns(db)) == number + 1
        clock.advance(timedelta(days=8))


def test_a_file_whose_bytes_are_lost_does_not_keep_a_turn_from_being_recorded(db: threefold.Threefold) -> None:
    async def play(kernel: Kernel, door: Door) -> None:
        gate = Gate()
        kernel.agents.register(gate, name="gate")
        _, viewer = await sent(door, "please wait")
        await gate.begun.wait()
        await door.submit("see", "alice", "trip", attachments=[("a.txt", b"lost"), ("b.txt", b"kept")])
        key = db.lanes.key(db.user("alice").scope, "trip")
        db._blobs.delete(key.scope, db.lanes.lane(key).waiting[0].attachments[0].digest)
        gate.open.set()
        await viewer.ends(2)

    played(db, play)
    turn = turns(db)[1]
    assert [card.name for card in turn.attachments] == ["b.txt"]
    (event,) = [each["payload"] for each in turn.context if each["event"] == "attachment.lost"]
    assert event["name"] == "a.txt"


def test_what_of_a_submission_cannot_be_kept_does_not_keep_the_rest_from_being_recorded(
    db: threefold.Threefold, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = door_module.draft

    def as_before_it_was_checked(*values: Any) -> Draft:
        """As what a process of an earlier version accepted."""
        found = made(*values)
        (first, second), long = found.sent.attachments, "a" * 2000
        files = (first._replace(name=long), second)
        return replace(found, sent=replace(found.sent, author=long, attachments=files))

    monkeypatch.setattr(door_module, "draft", as_before_it_was_checked)
    more = {"attachments": [("a.txt", b"lost"), ("b.txt", b"kept")], "context": [{"type": "page"}], "author": "Al"}
    assert asked(db, echo, **more)[-1].type == "RUN_ERROR"
    (turn,) = turns(db)
    assert (turn.status, said(turn)) == ("failed", [("prompt", "goal")])
    assert [card.name for card in turn.attachments] == ["b.txt"]
    assert [each["event"] for each in turn.context] == ["page"]
    assert turn.messages[0].author is None


def test_a_turn_that_its_request_could_not_record_is_recorded_with_what_was_shown(
    db: threefold.Threefold, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ending, "PAUSES", (0.0, 0.0, 0.0))
    commit, left = db._backend.commit, [4]

    def refuse(found: Any) -> Any:
        if found.scope.realm == "conv" and left[0]:
            left[0] -= 1
            raise Unavailable("the store is busy")
        return commit(found)

    monkeypatch.setattr(db._backend, "commit", refuse)

    async def agent(run: Run):
        run.step("look", {"a": 1}, ["found"])
        yield "the answer"

    told = asked(db, agent)
    assert told[-1].type == "RUN_ERROR"
    (turn,) = turns(db)
    assert (turn.status, said(turn)) == ("failed", [("prompt", "goal"), ("completion", "the answer")])
    assert turn.error == "the turn was not recorded: the store is busy"
    assert [(step.name, step.arguments, step.result) for step in turn.steps] == [("look", {"a": 1}, '["found"]')]


def test_a_store_that_is_busy_is_asked_again(db: threefold.Threefold, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "PAUSES", (0.0, 0.0))
    close, left = db.lanes.close, [2]

    def refuse(*values: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise Unavailable("the store is busy")
        return close(*values)

    monkeypatch.setattr(db.lanes, "close", refuse)
    assert asked(db, echo)[-1].type == "RUN_FINISHED"
    assert left == [0]


def test_an_agent_that_looks_and_stops_all_the_same_is_told_of_in_words_for_people(db: threefold.Threefold) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def agent(run: Run) -> str:
        begun.set()
        await go.wait()
        try:
            run.say("more")
        except Steered:
            assert run.look() == ("otherwise",)
            raise
        return ""

    async def play(kernel: Kernel, door: Door) -> Any:
        kernel.agents.register(agent, name="mine")
        _, viewer = await sent(door, "goal")
        await begun.wait()
        await door.submit("otherwise", "alice", "trip", kind="steer")
        await viewer.until(lambda event: event.data.get("value", {}).get("joined") == "steered")
        go.set()
        return list(await viewer.ends())

    assert played(db, play)[-1].data["message"] == "agent 'mine' stopped where it was interrupted"
    (turn,) = turns(db)
    assert said(turn) == [("prompt", "goal"), ("steer", "otherwise")]


def test_a_lane_that_cannot_be_read_keeps_no_other_one_waiting(
    db: threefold.Threefold, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def damaged(stored: TurnRecord) -> Lane:
        if stored.conversation == "damaged":
            raise IntegrityError("the lane of conversation 'damaged' is damaged")
        return keeping.from_record(stored)

    async def play(kernel: Kernel, door: Door) -> None:
        still(door)
        kernel.agents.register(echo)
        with monkeypatch.context() as patched:
            patched.setattr(door, "_run", lambda _: False)
            await door.submit("lost", "alice", "damaged")
            _, viewer = await sent(door, "kept")
        monkeypatch.setattr(shelf, "from_record", damaged)
        assert await door.look() == 1
        await viewer.ends()

    played(db, play)
    assert len(turns(db)) == 1
    assert "conversation 'damaged' is damaged" in caplog.text


def test_a_lane_that_cannot_be_written_is_tried_again_at_the_next_look(
    db: threefold.Threefold, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    next_, full = db.lanes.next, [True]

    def refuse(key: Any, *values: Any) -> Any:
        if key.conversation == "full" and full[0]:
            raise Unavailable("database or disk is full")
        return next_(key, *values)

    monkeypatch.setattr(db.lanes, "next", refuse)

    async def play(kernel: Kernel, door: Door) -> None:
        still(door)
        kernel.agents.register(echo)
        _, viewer = await sent(door, "kept", "alice", "full")
        await asyncio.wait(door._tasks.values())
        assert await door.look() == 1
        await asyncio.wait(door._tasks.values())
        # Nothing asks for another look at once; a lane that ends well does, as it makes room.
        assert not door._free.is_set()
        full[0] = False
        await sent(door, "well", "alice", "trip")
        await door._free.wait()
        assert await door.look() == 1
        await viewer.ends()

    played(db, play)
    assert [said(turn) for turn in turns(db, "full")] == [[("prompt", "kept"), ("completion", "heard kept")]]
    assert caplog.text.count("disk is full") == 2


def test_what_is_too_much_for_viewers_elsewhere_comes_when_it_is_recorded(
    db: threefold.Threefold, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holding, "MAX_SHARED", 500)

    async def run() -> None:
        async with AsyncExitStack() as stack:
            gate = Gate()
            kernels = [await stack.enter_async_context(Kernel(db)) for _ in range(2)]
            kernels[0].agents.register(gate, name="gate")
            doors = [await stack.enter_async_context(Door(kernel, poll=0.02)) for kernel in kernels]
            text = f"{'long ' * 200}wait"
            accepted, near = await sent(doors[0], text, agent="gate")
            await gate.begun.wait()
            far = Viewer(doors[1], "alice", "trip", agent="gate", after=accepted.after)
            key = db.lanes.key(db.user("alice").scope, "trip", "gate")
            await near.until(lambda event: event.type == "TEXT_MESSAGE_CONTENT")
            while not db.lanes.watched(key):
                await asyncio.sleep(0.01)
            gate.open.set()
            await near.ends()
            told = await far.until(lambda event: event.type == "CUSTOM")
            assert custom(told, "recorded")[0]["turn"]["messages"][1]["text"] == f"heard {text}"

    asyncio.run(run())


def test_the_last_events_stay_for_viewers_elsewhere_however_long_the_end_takes(
    db: threefold.Threefold, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[bool] = []
    watched, end = db.lanes.watched, db.lanes.end

    def counted(key: Any) -> bool:
        looks.append(watched(key))
        return looks[-1]

    def slow(*values: Any) -> Any:
        seen = len(looks)
        clock.advance(timedelta(seconds=1))
        assert wait_until(lambda: len(looks) >= seen + 2)  # the turn was looked after meanwhile
        return end(*values)

    monkeypatch.setattr(db.lanes, "watched", counted)
    monkeypatch.setattr(db.lanes, "end", slow)

    async def play(kernel: Kernel, door: Door) -> None:
        gate = Gate()
        kernel.agents.register(gate, name="gate")
        key = db.lanes.key(db.user("alice").scope, "trip")
        db.lanes.watch(key)
        accepted, viewer = await sent(door, "please wait")
        await gate.begun.wait()
        gate.open.set()
        told = await viewer.ends()
        shared = db.lanes.log(key, accepted.turn)
        assert shared is not None
        assert shared["done"]
        assert shared["entries"][-1] == told[-1].data

    played(db, play, poll=0.02)


def test_a_steer_that_comes_before_the_agent_begins_is_in_its_goal(
    db: threefold.Threefold, monkeypatch: pytest.MonkeyPatch
) -> None:
    goals: list[str] = []

    async def play(kernel: Kernel, door: Door) -> None:
        loop, computing, go = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        assemble = db.contexts.assemble

        def held(*values: Any) -> Any:
            loop.call_soon_threadsafe(computing.set)
            asyncio.run_coroutine_threadsafe(go.wait(), loop).result()
            return assemble(*values)

        monkeypatch.setattr(db.contexts, "assemble", held)
        kernel.agents.register(lambda run: goals.append(run.goal) or "done", name="mine")
        _, viewer = await sent(door, "go")
        await computing.wait()
        await door.submit("but slowly", "alice", "trip", kind="steer")
        await viewer.until(lambda event: event.data.get("value", {}).get("joined") == "steered")
        go.set()
        await viewer.ends()

    played(db, play)
    assert goals == ["go\n\nbut slowly"]
    assert said(turns(db)[0]) == [("prompt", "go"), ("steer", "but slowly"), ("completion", "done")]


def test_a_door_is_closed_twice_and_opened_again(db: threefold.Threefold) -> None:
    async def run() -> None:
        async with Kernel(db) as kernel:
            kernel.agents.register(echo)
            door = Door(kernel)
            with pytest.raises(Unavailable, match="the door is closed; start it"):
                await door.submit("too early", "alice", "trip")
            for _ in range(2):
                async with door:
                    _, viewer = await sent(door, "goal")
                    await viewer.ends()
                await door.close()
                await asyncio.wait((viewer._task,))  # viewers end with the door
                assert viewer._task.exception() is None

    asyncio.run(run())
    assert len(turns(db)) == 2


def test_a_conversation_that_is_forgotten_while_it_is_watched(db: threefold.Threefold) -> None:
    async def play(kernel: Kernel, door: Door) -> list[Any]:
        gate = Gate()
        kernel.agents.register(gate, name="gate")
        _, viewer = await sent(door, "please wait")
        await viewer.until(lambda event: event.type == "TEXT_MESSAGE_CONTENT")
        db.user("alice").forget()
        gate.open.set()
        return await viewer.until(lambda event: event.data.get("name") == "threefold.recorded")

    told = played(db, play, poll=0.02)
    assert not [event for event in told if event.type in ENDS]
    assert custom(told, "recorded")[0]["turn"] is None
    assert list(db.scopes()) == []


def test_a_lane_that_nobody_watches_any_more_leaves_nothing_behind(db: threefold.Threefold) -> None:
    async def play(kernel: Kernel, door: Door) -> None:
        viewers = [Viewer(door, "alice", "trip") for _ in range(2)]
        while not door._logs._changed:
            await asyncio.sleep(0.01)
        while viewers:
            await viewers.pop().leave()
        gc.collect()
        assert not door._logs._changed

    played(db, play)


def test_what_an_agent_warns_of_can_be_told_and_is_redacted(clock: Clock) -> None:
    def agent(run: Run) -> str:
        run.warn("odd \ud800 s3cret")
        run.show("canvas", "drawn", "of s3cret")
        return "done"

    def rule(text: str, name: str = "") -> str:
        return text.replace("s3cret", "[redacted: word]")

    with threefold.open(":memory:", embedder=None, background=False, clock=clock, redact=rule) as db:
        told = asked(db, agent)
    assert told[-1].data["result"]["warnings"] == ["odd \ufffd [redacted: word]"]
    assert custom(told, "panel")[0]["name"] == "of [redacted: word]"


def test_of_a_turn_that_was_left_it_is_told_how_it_was_recorded(
    db: threefold.Threefold, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    end, left = db.lanes.end, [1]

    def refuse(*values: Any) -> Any:
        if left and left.pop():
            raise Unavailable("the store is busy")
        return end(*values)

    monkeypatch.setattr(db.lanes, "end", refuse)

    async def play(kernel: Kernel, door: Door) -> None:
        kernel.agents.register(echo)
        key = db.lanes.key(db.user("alice").scope, "trip")
        accepted, _ = await sent(door, "goal")
        while door._tasks:
            await asyncio.sleep(0.01)
        db.lanes.put_log(key, accepted.turn, {"entries": [], "done": False}, 1)
        clock.advance(timedelta(seconds=31))
        await door.look()
        while door._tasks:
            await asyncio.sleep(0.01)
        shared = db.lanes.log(key, accepted.turn)
        assert shared is not None
        last = shared["entries"][-1]
        assert (last["type"], last["result"]["status"]) == ("RUN_FINISHED", "completed")

    played(db, play)
    assert [turn.status for turn in turns(db)] == ["completed"]


@pytest.mark.parametrize(
    ("tell", "message"),
    [
        (lambda run: run.publish("a", b"x", "text/\ud800"), "mime contains a lone surrogate"),
        (lambda run: run.publish("a", b"x", 5), "mime must be text, not int"),
        (lambda run: run.publish("../up", b"x"), "path"),
        (lambda run: run.publish("a", 3), "data must be bytes or text, not int"),
        (lambda run: run.show("poster", "x"), "marker 'poster' must be one of canvas, tool, subsystem"),
        (lambda run: run.show("canvas", 3), "text must be text, not int"),
    ],
)
def test_what_an_agent_may_not_publish_or_show(
    db: threefold.Threefold, tell: Callable[[Run], None], message: str
) -> None:
    def agent(run: Run) -> str:
        with pytest.raises(InvalidInput, match=message):
            tell(run)
        run.publish("a.txt", "first")
        run.publish("a.txt", "then")
        return "done"

    assert texts(asked(db, agent)) == ["done"]
    (turn,) = turns(db)
    assert [db.user("alice").read(card.ref) for card in turn.files] == [b"then"]

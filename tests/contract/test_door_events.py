"""What viewers of a conversation see on each back end: the same everywhere, from the beginning or behind an event."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import pytest
from ag_ui.core import Event
from doors import ENDS, Gate, Viewer, custom, played, said, sent, texts, turns
from pydantic import TypeAdapter

import threefold
from threefold import Door, Kernel
from threefold.errors import InvalidInput
from threefold.host import ending, logs
from threefold.host.live import LaneEvent, shown
from threefold.host.run import Run
from threefold.testing.fakes import Clock

Open = Callable[..., threefold.Threefold]
AG_UI: TypeAdapter[Any] = TypeAdapter(Event)


async def worker(run: Run):
    """Does a bit of everything."""
    run.step("look up", {"where": "原典"}, {"found": ["a", 1]})
    run.step("think", status="started")
    run.publish("out/plan.md", "# Plan")
    run.show("canvas", "draw", "sketch")
    for piece in ("one ", "two ", "three"):
        yield piece
        await asyncio.sleep(0)
    run.step("count", 3, "drei", "error")
    yield " four"
    run.show("canvas", "ing", "sketch")


def data(told: list[LaneEvent]) -> list[dict[str, Any]]:
    """Events without their times, pieces of a message joined: what does not depend on how quickly one looked."""
    found: list[dict[str, Any]] = []
    for event in told:
        plain = {name: value for name, value in event.data.items() if name != "timestamp"}
        if found and event.type == "TEXT_MESSAGE_CONTENT" == found[-1]["type"]:
            found[-1]["delta"] += plain["delta"]
        else:
            found.append(plain)
    return found


@pytest.mark.capability("door.events")
def test_events_are_those_of_ag_ui_in_order(db: threefold.Threefold) -> None:
    db.user("alice").mem.remember("prefers trains")

    async def play(kernel: Kernel, door: Door) -> list[LaneEvent]:
        kernel.agents.register(worker)
        _, viewer = await sent(door, "plan", attachments=[("a.txt", b"a")])
        return await viewer.ends()

    told = played(db, play)
    for event in told:
        # Their models keep every field of ours, by its name, and add none.
        kept = AG_UI.validate_python(dict(event.data)).model_dump(by_alias=True, exclude_none=False, mode="json")
        assert {name: kept[name] for name in event.data} == event.data
        assert json.loads(json.dumps(event.data)) == event.data
        assert event.type == event.data["type"]
    assert [event.id for event in told] == sorted({event.id for event in told})
    kinds = [each["name"] if each["type"] == "CUSTOM" else each["type"] for each in data(told)]
    step = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"]
    assert kinds == [
        "RUN_STARTED", "STEP_STARTED", "threefold.accepted", "STEP_FINISHED", "threefold.context", "STEP_STARTED",
        *step, "TOOL_CALL_START", "TOOL_CALL_END", "threefold.file", "threefold.panel",
        "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", *step, "TEXT_MESSAGE_CONTENT", "threefold.panel",
        "TEXT_MESSAGE_END", "STEP_FINISHED", "RUN_FINISHED",
    ]  # fmt: skip
    (accepted,) = custom(told, "accepted")
    assert (accepted["text"], accepted["joined"], accepted["attachments"]) == (
        "plan", "opened", [{"name": "a.txt", "size": 1, "mime": "text/plain"}],
    )  # fmt: skip
    last = told[-1].data
    assert (last["threadId"], last["runId"]) == ("trip", accepted["turn"])
    assert db.user("alice").conv.turn(last["result"]["ref"]).turn == accepted["turn"]
    assert last["result"]["agent"] == "worker"


@pytest.mark.capability("door.replay")
def test_reload_shows_what_live_did(db: threefold.Threefold) -> None:
    async def play(kernel: Kernel, door: Door) -> list[LaneEvent]:
        kernel.agents.register(worker)
        _, viewer = await sent(door, "plan")
        return await viewer.ends()

    told = played(db, play)
    (turn,) = turns(db)
    live = shown([event.data for event in told])
    assert live.messages == tuple(message.text for message in turn.messages if message.role == "assistant")
    assert [(name, status) for name, status, _, _ in live.steps] == [(step.name, step.status) for step in turn.steps]
    assert [json.loads(arguments) for _, _, arguments, _ in live.steps if arguments] == [{"where": "原典"}, 3]
    assert [result for *_, result in live.steps] == ['{"found":["a",1]}', None, "drei"]
    (file,) = custom(told, "file")
    (card,) = turn.files
    assert (file["ref"], file["path"], file["size"], file["digest"], file["mime"]) == (
        card.ref, card.name, card.size, card.digest, card.mime,
    )  # fmt: skip
    panels = "".join(piece["delta"] for piece in custom(told, "panel"))
    assert [(panel["marker"], panel["name"], panel["text"]) for panel in turn.streams] == [("canvas", "sketch", panels)]
    assert [(each["type"], each["data"]["step"], each["data"]["status"]) for each in turn.events] == [
        ("chat.step", "step_1", "completed"), ("chat.step", "step_2", "started"), ("chat.step", "step_3", "error"),
    ]  # fmt: skip


@pytest.mark.capability("door.replay")
def test_an_answer_that_is_another_than_what_was_said_on_the_way_is_shown_too(db: threefold.Threefold) -> None:
    def changeable(run: Run) -> str:
        run.say("let me think")
        return "42"

    async def play(kernel: Kernel, door: Door) -> list[LaneEvent]:
        kernel.agents.register(changeable)
        _, viewer = await sent(door, "why")
        return await viewer.ends()

    assert texts(played(db, play)) == ["let me think", "42"]
    assert said(turns(db)[0]) == [("prompt", "why"), ("partial", "let me think"), ("completion", "42")]


@pytest.mark.capability("door.events")
def test_failures_and_cancelled_turns_end_with_one_event(db: threefold.Threefold) -> None:
    async def broken(run: Run):
        yield "so far"
        raise ZeroDivisionError("of mine")

    async def play(kernel: Kernel, door: Door) -> list[LaneEvent]:
        kernel.agents.register(broken)
        _, viewer = await sent(door, "divide")
        return await viewer.ends()

    told = played(db, play)
    (last,) = [event.data for event in told if event.type in ENDS]
    assert (last["type"], last["code"]) == ("RUN_ERROR", "failed")
    assert last["message"] == "agent 'broken' failed: ZeroDivisionError: of mine"
    AG_UI.validate_python(dict(last))
    assert texts(told) == ["so far"]


@pytest.mark.capability("door.events")
def test_a_viewer_goes_on_behind_any_event_without_gap_or_repetition(db: threefold.Threefold) -> None:
    async def play(kernel: Kernel, door: Door) -> None:
        kernel.agents.register(worker)
        _, viewer = await sent(door, "plan")
        await viewer.ends()
        await door.submit("once more", "alice", "trip")
        whole = list(await viewer.ends(2))
        for place, event in enumerate(whole):
            again = Viewer(door, "alice", "trip", after=event.id)
            ends = sum(each.type in ENDS for each in whole[place + 1 :])
            assert data([*whole[: place + 1], *await again.ends(ends)]) == data(whole)
            await again.leave()
        # In the middle of a piece, too.
        text = next(event for event in whole if event.type == "TEXT_MESSAGE_CONTENT")
        turn, entry, _ = text.id.rsplit(":", 2)
        again = Viewer(door, "alice", "trip", after=f"{turn}:{entry}:{2:09d}")
        told = await again.ends()
        assert told[0].data["delta"].startswith("e two three"[: len(told[0].data["delta"])])
        for wrong in ("", "x", "a:b:c", f"{turn}:1", ":1:2", f"{turn}:-1:0"):
            with pytest.raises(InvalidInput, match="is no event's id"):
                await anext(door.events("alice", "trip", after=wrong))

    played(db, play)


@pytest.mark.capability("door.events")
def test_who_comes_late_sees_the_running_turn_from_its_beginning(db: threefold.Threefold) -> None:
    async def play(kernel: Kernel, door: Door) -> None:
        gate = Gate()
        kernel.agents.register(gate, name="gate")
        _, first = await sent(door, "please wait")
        await gate.begun.wait()
        late = Viewer(door, "alice", "trip")
        await late.until(lambda event: event.type == "TEXT_MESSAGE_CONTENT")
        await door.submit("then this", "alice", "trip", kind="followup")
        gate.open.set()
        told = [await viewer.ends(2) for viewer in (first, late)]
        assert data(told[0]) == data(told[1])
        assert texts(told[0]) == ["heard please wait", "heard then this"]
        accepted = custom(told[0], "accepted")
        assert [(each["text"], each["joined"]) for each in accepted] == [
            ("please wait", "opened"), ("then this", "queued"), ("then this", "opened"),
        ]  # fmt: skip

    played(db, play)


@pytest.mark.capability("door.events")
def test_what_cannot_be_resumed_comes_as_it_is_recorded(
    db: threefold.Threefold, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_KEPT", 1)

    async def play(kernel: Kernel, door: Door) -> None:
        kernel.agents.register(worker)
        one, viewer = await sent(door, "first")
        first = list(await viewer.ends())
        two = await door.submit("second", "alice", "trip")
        await viewer.ends(2)
        await door.submit("third", "alice", "trip")
        await viewer.ends(3)
        again = Viewer(door, "alice", "trip", after=first[3].id)
        told = await again.ends()
        recorded = custom(told, "recorded")
        assert [each["turn"]["turn"] for each in recorded] == [one.turn, two.turn]
        assert [each["turn"]["messages"][0]["text"] for each in recorded] == ["first", "second"]
        assert recorded[0]["turn"]["steps"][0]["result"] == {"found": ["a", 1]}
        assert "as it is recorded" in recorded[0]["why"]
        assert texts(told) == ["one two three four"]
        for event in told:
            AG_UI.validate_python(dict(event.data))
        # And behind that event it goes on.
        (mark,) = [event for event in told[:1] if event.data.get("name") == "threefold.recorded"]
        more = Viewer(door, "alice", "trip", after=mark.id)
        assert [each["turn"]["turn"] for each in custom(await more.ends(), "recorded")] == [two.turn]

    played(db, play)


@pytest.mark.capability("door.events")
def test_viewers_at_another_process_see_the_same(open_db: Open, backend: str) -> None:
    here = open_db()
    there = here if backend == "memory" else open_db()

    async def run() -> None:
        async with AsyncExitStack() as stack:
            gate = Gate()
            kernels = [await stack.enter_async_context(Kernel(db)) for db in (here, there)]
            kernels[0].agents.register(gate, name="gate")
            # The other one has no agent of that name, and runs nothing.
            doors = [await stack.enter_async_context(Door(kernel, poll=0.05)) for kernel in kernels]
            first, near = await sent(doors[0], "please wait", agent="gate")
            await gate.begun.wait()
            far = Viewer(doors[1], "alice", "trip", agent="gate")
            await far.until(lambda event: event.type == "TEXT_MESSAGE_CONTENT")
            assert doors[1].lane("alice", "trip", agent="gate").turn == first.turn
            left = far.told[-2].id
            kernels[1].agents.register(gate, name="gate")
            steer = await doors[1].submit("go on", "alice", "trip", kind="steer", agent="gate")
            assert steer.joined == "steered"
            await near.until(lambda event: event.data.get("value", {}).get("joined") == "steered")
            gate.open.set()
            told = await near.ends()
            await far.until(lambda event: event.type in ENDS or event.data.get("name") == "threefold.recorded")
            if far.told[-1].type in ENDS:
                assert data(far.told) == data(told)
            again = Viewer(doors[0], "alice", "trip", agent="gate", after=left)
            place = [event.id for event in far.told].index(left)
            assert data([*far.told[: place + 1], *await again.ends()]) == data(told)

    asyncio.run(run())
    assert said(turns(here)[0]) == [
        ("prompt", "please wait"), ("steer", "go on"), ("partial", "heard "),
        ("completion", "heard please wait\n\ngo on"),
    ]  # fmt: skip


@pytest.mark.capability("door.events")
@pytest.mark.parametrize("what", ["all", "conversation", "turn"])
def test_what_was_forgotten_is_not_told_any_more(db: threefold.Threefold, what: str) -> None:
    async def play(kernel: Kernel, door: Door) -> None:
        kernel.agents.register(worker)
        one, viewer = await sent(door, "my secret")
        await viewer.ends()
        chosen = {"all": (), "conversation": ("trip",), "turn": ("trip", one.turn)}[what]
        db.user("alice").forget(*chosen)
        again = Viewer(door, "alice", "trip", after=one.after)
        (event,) = await again.until(lambda event: True)
        assert event.data["name"] == "threefold.recorded"
        assert event.data["value"]["turn"] is None
        # What comes then is told as ever.
        two = await door.submit("once more", "alice", "trip")
        told = await again.ends()
        assert told[-1].data["runId"] == two.turn
        assert "secret" not in str(told)

    played(db, play)


@pytest.mark.capability("door.events")
@pytest.mark.parametrize("what", ["all", "conversation"])
def test_a_turn_that_is_forgotten_while_it_is_recorded_does_not_come_back(
    db: threefold.Threefold, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    record = ending.recorded

    async def forgetting(turn: Any, store: Any) -> Any:
        if any(said.text == "my secret" for said in turn.value().submissions):
            db.user("alice").forget(*(() if what == "all" else ("trip",)))
        return await record(turn, store)

    monkeypatch.setattr(ending, "recorded", forgetting)

    async def play(kernel: Kernel, door: Door) -> None:
        kernel.agents.register(worker)
        one, viewer = await sent(door, "my secret")
        told = await viewer.until(lambda event: event.data.get("name") == "threefold.recorded")
        assert not [event for event in told if event.type in ENDS]
        _, viewer = await sent(door, "once more")
        await viewer.ends()
        assert one.turn not in [turn.turn for turn in turns(db)]

    played(db, play, poll=0.05)
    assert [said(turn)[0][1] for turn in turns(db)] == ["once more"]


@pytest.mark.capability("door.cancel")
def test_a_turn_is_cancelled_from_another_process(open_db: Open, backend: str) -> None:
    here = open_db()
    there = here if backend == "memory" else open_db()

    async def run() -> None:
        async with AsyncExitStack() as stack:
            gate = Gate()
            kernels = [await stack.enter_async_context(Kernel(db)) for db in (here, there)]
            for kernel in kernels:
                kernel.agents.register(gate, name="gate")
            doors = [await stack.enter_async_context(Door(kernel, poll=0.05)) for kernel in kernels]
            _, near = await sent(doors[0], "please wait")
            await gate.begun.wait()
            assert await doors[1].cancel("alice", "trip")
            assert (await near.ends())[-1].data["outcome"] == {"type": "cancelled"}

    asyncio.run(run())
    assert [turn.status for turn in turns(here)] == ["cancelled"]


@pytest.mark.capability("door.durable")
def test_viewers_elsewhere_are_told_that_a_process_stopped(db: threefold.Threefold, clock: Clock) -> None:
    async def run() -> None:
        async with AsyncExitStack() as stack:
            gate = Gate()
            kernels = [await stack.enter_async_context(Kernel(db)) for _ in range(2)]
            for kernel in kernels:
                kernel.agents.register(gate, name="gate")
            doors = [await stack.enter_async_context(Door(kernel, poll=0.05)) for kernel in kernels]
            first, _ = await sent(doors[0], "please wait")
            await gate.begun.wait()
            # Either may have been the first to see it.
            doors.sort(key=lambda door: len(door._turns.holdings))
            other, one = doors
            far = Viewer(other, "alice", "trip", after=first.after)
            await far.until(lambda event: event.type == "TEXT_MESSAGE_CONTENT")
            # As if its process had stopped: nobody says any more that the turn is held.
            (holding,) = one._turns.holdings.values()
            async with holding._noticing:
                clock.advance(timedelta(seconds=31))
                await other.look()
                told = await far.ends()
            assert (told[-1].type, told[-1].data["message"]) == ("RUN_ERROR", "the process that ran it stopped")

    asyncio.run(run())
    (turn,) = turns(db)
    assert (turn.status, said(turn)) == ("failed", [("prompt", "please wait"), ("completion", "heard ")])

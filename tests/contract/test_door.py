"""The door on each back end: what is sent is kept, folded, run once and recorded; who watches sees it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import pytest
from doors import WAIT, Gate, Viewer, custom, played, said, sent, still, texts, turns

import threefold
from threefold import Door, Kernel
from threefold.errors import Conflict, Forbidden, InvalidInput, NotFound, TooMany, Unavailable
from threefold.host import door as door_module
from threefold.host.run import Run
from threefold.realms.conv.lanes.values import Accepted
from threefold.testing import ScriptedModel
from threefold.testing.fakes import Clock

Open = Callable[..., threefold.Threefold]


def echo(run: Run) -> str:
    """Says what was asked."""
    return f"heard {run.goal}"


@pytest.mark.capability("door.submit")
def test_what_is_sent_opens_a_turn_and_is_recorded_with_all_that_came_with_it(db: threefold.Threefold) -> None:
    seen: list[Run] = []

    def agent(run: Run) -> str:
        seen.append(run)
        return f"{[(file.name, file.data) for file in run.attachments]}"

    async def play(kernel: Kernel, door: Door) -> Any:
        kernel.agents.register(agent)
        accepted, viewer = await sent(
            door,
            "Plan a weekend in 東京",
            "alice",
            "trip",
            attachments=[("map.pdf", b"%PDF", "application/pdf"), ("map.pdf", b"other")],
            context=[{"type": "page", "url": "https://example.org"}],
            author="Alice",
        )
        await viewer.ends()
        return accepted, door.lane("alice", "trip")

    accepted, lane = played(db, play)
    assert (accepted.joined, accepted.position) == ("opened", 1)
    (turn,) = turns(db)
    assert (turn.turn, turn.status) == (accepted.turn, "completed")
    prompt, answer = turn.messages
    assert (prompt.kind, prompt.text, prompt.batch, prompt.author) == (
        "prompt", "Plan a weekend in 東京", accepted.submission, "Alice",
    )  # fmt: skip
    assert answer.text == "[('map.pdf', b'%PDF'), ('map.pdf', b'other')]"
    assert [(card.name, card.mime) for card in turn.attachments] == [
        ("map.pdf", "application/pdf"), ("map-2.pdf", "application/pdf"),
    ]  # fmt: skip
    assert db.user("alice").read(turn.attachments[1].ref) == b"other"
    assert [each["payload"] for each in turn.context if each["event"] == "page"] == [{"url": "https://example.org"}]
    assert (lane.turn, lane.waiting) == (None, ())
    assert seen[0].intent.id == accepted.turn


@pytest.mark.capability("door.fold")
def test_what_comes_while_a_turn_runs_is_one_turn_together(db: threefold.Threefold) -> None:
    async def play(kernel: Kernel, door: Door) -> Any:
        gate = Gate()
        kernel.agents.register(gate, name="gate")
        first, viewer = await sent(door, "please wait", "alice", "trip")
        await gate.begun.wait()
        others = [
            await door.submit("and food", "alice", "trip", kind="followup", attachments=[("menu.txt", b"soup")]),
            await door.submit("another thing", "alice", "trip"),
        ]
        view = door.lane("alice", "trip")
        gate.open.set()
        await viewer.ends(2)
        return first, others, view, gate.goals

    first, others, view, goals = played(db, play)
    assert [each.joined for each in others] == ["queued", "folded"]
    assert [each.position for each in others] == [1, 2]
    assert {each.turn for each in others} == {view.next}
    assert (view.turn, [each.text for each in view.submissions]) == (first.turn, ["please wait"])
    assert [(each.kind, each.text) for each in view.waiting] == [("followup", "and food"), ("prompt", "another thing")]
    assert view.as_json()["waiting"][0]["attachments"] == [{"name": "menu.txt", "size": 4, "mime": "text/plain"}]
    assert goals == ["please wait", "and food\n\nanother thing"]
    one, two = turns(db)
    assert (one.turn, two.turn) == (first.turn, view.next)
    assert said(two)[:2] == [("followup", "and food"), ("prompt", "another thing")]
    assert [message.batch for message in two.messages[:2]] == [each.submission for each in others]
    assert [card.name for card in two.attachments] == ["menu.txt"]


@pytest.mark.capability("door.steer")
def test_a_steer_interrupts_between_pieces_and_the_turn_goes_on_with_it(db: threefold.Threefold) -> None:
    closed: list[str] = []

    async def play(kernel: Kernel, door: Door) -> Any:
        begun, go = asyncio.Event(), asyncio.Event()

        async def talker(run: Run):
            run.step("look", {"n": len(run.submissions)}, "seen")
            try:
                yield "one "
                begun.set()
                if len(run.submissions) == 1:
                    await go.wait()
                yield "two"
            finally:
                closed.append(run.goal)

        kernel.agents.register(talker)
        first, viewer = await sent(door, "count", "alice", "trip")
        await begun.wait()
        steer = await door.submit("in French", "alice", "trip", kind="steer", attachments=[("a.txt", b"un")])
        await viewer.until(lambda event: event.data.get("value", {}).get("joined") == "steered")
        go.set()
        return first, steer, await viewer.ends()

    first, steer, told = played(db, play)
    assert (steer.joined, steer.turn, steer.position) == ("steered", first.turn, 2)
    (turn,) = turns(db)
    assert said(turn) == [
        ("prompt", "count"), ("steer", "in French"), ("partial", "one "), ("completion", "one two"),
    ]  # fmt: skip
    assert texts(told) == ["one ", "one two"]
    assert [step.arguments for step in turn.steps] == [{"n": 1}, {"n": 2}]
    assert [card.name for card in turn.attachments] == ["a.txt"]
    assert closed == ["count", "count\n\nin French"]
    assert (turn.status, turn.turn) == ("completed", first.turn)


@pytest.mark.capability("door.steer")
def test_agents_that_never_look_and_agents_that_do_are_steered(db: threefold.Threefold) -> None:
    begun, go = threading.Event(), threading.Event()
    looked: list[tuple[str, ...]] = []

    def deaf(run: Run) -> str:
        begun.set()
        if len(run.submissions) == 1:
            go.wait(WAIT)
        return f"all of {run.goal} after {run.said}"

    def attentive(run: Run) -> str:
        begun.set()
        while not run.interrupted:
            go.wait(0.01)
        looked.append(run.look())
        run.say("then ")
        return f"then {run.submissions[-1].text}"

    async def play(kernel: Kernel, door: Door, agent: Any, conversation: str) -> None:
        kernel.agents.register(agent)
        _, viewer = await sent(door, "first", "alice", conversation, agent=agent.__name__)
        await asyncio.to_thread(begun.wait, WAIT)
        steer = await door.submit("second", "alice", conversation, kind="steer", agent=agent.__name__)
        assert steer.joined == "steered"
        go.set()
        await viewer.ends()
        begun.clear()
        go.clear()

    async def both(kernel: Kernel, door: Door) -> None:
        await play(kernel, door, deaf, "deaf")
        await play(kernel, door, attentive, "attentive")

    played(db, both)
    (turn,) = turns(db, "deaf")
    assert said(turn) == [
        ("prompt", "first"), ("steer", "second"), ("partial", "all of first after ()"),
        ("completion", "all of first\n\nsecond after ('all of first after ()',)"),
    ]  # fmt: skip
    (turn,) = turns(db, "attentive")
    assert said(turn) == [("prompt", "first"), ("steer", "second"), ("completion", "then second")]
    assert looked == [("second",)]


@pytest.mark.capability("door.steer")
def test_a_steer_opens_a_turn_where_none_runs(db: threefold.Threefold) -> None:
    async def play(kernel: Kernel, door: Door) -> Any:
        kernel.agents.register(echo)
        accepted, viewer = await sent(door, "stop that", "alice", "trip", kind="steer")
        await viewer.ends()
        return accepted

    assert played(db, play).joined == "opened"
    assert said(turns(db)[0]) == [("steer", "stop that"), ("completion", "heard stop that")]


@pytest.mark.capability("door.cancel")
def test_a_turn_is_cancelled_and_what_waits_goes_on(db: threefold.Threefold) -> None:
    async def play(kernel: Kernel, door: Door) -> Any:
        gate = Gate()
        kernel.agents.register(gate, name="gate")
        first, viewer = await sent(door, "please wait", "alice", "trip")
        await gate.begun.wait()
        await door.submit("next", "alice", "trip", kind="followup")
        assert not await door.cancel("alice", "trip", turn="another")
        assert not await door.cancel("bob", "trip")
        assert await door.cancel("alice", "trip", turn=first.turn)
        told = await viewer.ends(2)
        assert not await door.cancel("alice", "trip")
        return told

    told = played(db, play)
    one, two = turns(db)
    assert (one.status, one.error, said(one)) == (
        "cancelled", "cancelled", [("prompt", "please wait"), ("completion", "heard ")],
    )  # fmt: skip
    assert (two.status, said(two)[0]) == ("completed", ("followup", "next"))
    outcomes = [event.data["outcome"] for event in told if event.type == "RUN_FINISHED"]
    assert outcomes == [{"type": "cancelled"}, {"type": "success"}]


@pytest.mark.capability("door.cancel")
@pytest.mark.parametrize("ends", ["answers", "fails", "is steered", "cannot begin"])
def test_what_was_cancelled_is_recorded_as_that_however_its_agent_ends(
    db: threefold.Threefold, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    begun, go = threading.Event(), threading.Event()
    assemble = db.contexts.assemble

    def context(*values: Any) -> Any:
        if ends == "cannot begin":
            begun.set()
            go.wait(WAIT)
            raise Unavailable("the store is busy")
        return assemble(*values)

    def agent(run: Run) -> Iterator[str]:
        yield "one "
        begun.set()
        go.wait(WAIT)
        if ends == "fails":
            raise OSError("no network")
        yield "two"

    monkeypatch.setattr(db.contexts, "assemble", context)

    async def play(kernel: Kernel, door: Door) -> Any:
        async with Kernel(db) as other, Door(other, poll=3600) as holder:
            still(door)
            still(holder)
            other.agents.register(agent)
            accepted, viewer = await sent(holder, "goal")
            await asyncio.to_thread(begun.wait, WAIT)
            if ends == "is steered":
                await holder.submit("otherwise", "alice", "trip", kind="steer")
                await viewer.until(lambda event: event.data.get("value", {}).get("joined") == "steered")
            # Its holder does not know that yet when the agent ends.
            assert await door.cancel("alice", "trip", accepted.turn)
            go.set()
            return list(await viewer.ends())

    end = played(db, play)[-1]
    assert (end.type, end.data["result"]["status"], end.data["result"]["error"]) == (
        "RUN_FINISHED", "cancelled", "cancelled",
    )  # fmt: skip
    (turn,) = turns(db)
    assert (turn.status, turn.error) == ("cancelled", "cancelled")
    asked = ["goal", "otherwise"] if ends == "is steered" else ["goal"]
    assert [text for kind, text in said(turn) if kind in ("prompt", "steer")] == asked


@pytest.mark.capability("door.cancel")
def test_what_waits_for_room_is_cancelled_before_it_begins(db: threefold.Threefold) -> None:
    async def play(kernel: Kernel, door: Door) -> None:
        accepted = await door.submit("never run", "alice", "trip", agent="mine")
        await door.close()
        assert await door.cancel("alice", "trip", agent="mine", turn=accepted.turn)

    async def run() -> None:
        async with Kernel(db) as kernel:
            kernel.agents.register(echo, name="mine")
            door = await Door(kernel).start()
            door._closed = True  # it accepts, and begins nothing
            with pytest.raises(Unavailable, match="closed"):
                await door.submit("x", "alice", "trip")
            door._run = lambda key: False  # type: ignore[method-assign]
            door._closed = False
            await play(kernel, door)

    asyncio.run(run())
    (turn,) = turns(db)
    assert (turn.status, said(turn)) == ("cancelled", [("prompt", "never run")])


@pytest.mark.capability("door.withdraw")
def test_what_waits_is_withdrawn_alone_and_viewers_see_it_go(db: threefold.Threefold) -> None:
    async def play(kernel: Kernel, door: Door) -> Any:
        gate = Gate()
        kernel.agents.register(gate, name="gate")
        first, viewer = await sent(door, "please wait", "alice", "trip")
        await gate.begun.wait()
        menu = [("menu.txt", b"soup")]
        one = await door.submit("and food", "alice", "trip", kind="followup", attachments=menu, key="k")
        other = await door.submit("another thing", "alice", "trip")
        await viewer.until(lambda event: event.data.get("value", {}).get("submission") == other.submission)
        for stranger in ({"owner": "bob"}, {"owner": "alice", "tenant": "else"}, {"owner": "alice", "agent": "gate"}):
            with pytest.raises(NotFound, match="does not wait in conversation 'trip'"):
                await door.withdraw(conversation="trip", submission=one.submission, **stranger)
        taken = await door.withdraw("alice", "trip", one.submission)
        assert (taken.id, taken.text, taken.attachments[0].name) == (one.submission, "and food", "menu.txt")
        await viewer.until(lambda event: event.data.get("name") == "threefold.withdrawn")
        with pytest.raises(NotFound, match="any more"):
            await door.withdraw("alice", "trip", one.submission)
        with pytest.raises(Conflict, match="is in the turn that runs"):
            await door.withdraw("alice", "trip", first.submission)
        again = await door.submit("and food", "alice", "trip", kind="followup", attachments=menu, key="k")
        assert again.joined == "repeated"
        assert [each.id for each in door.lane("alice", "trip").waiting] == [other.submission]
        gate.open.set()
        return one, await viewer.ends(2)

    one, told = played(db, play)
    assert custom(told, "withdrawn") == [{"submission": one.submission}]
    assert [said(turn)[0] for turn in turns(db)] == [("prompt", "please wait"), ("prompt", "another thing")]


@pytest.mark.capability("door.withdraw")
def test_where_all_that_waited_is_withdrawn_no_turn_follows(db: threefold.Threefold) -> None:
    async def play(kernel: Kernel, door: Door) -> Any:
        gate = Gate()
        kernel.agents.register(gate, name="gate")
        _, viewer = await sent(door, "please wait", "alice", "trip")
        await gate.begun.wait()
        only = await door.submit("and food", "alice", "trip")
        await door.withdraw("alice", "trip", only.submission)
        after = Viewer(door, "alice", "trip", after=only.after)
        nothing = custom(await after.until(lambda event: True), "recorded")
        assert [each["turn"] for each in nothing] == [None]
        gate.open.set()
        await viewer.ends()
        lane = door.lane("alice", "trip")
        assert (lane.waiting, lane.next) == ((), None)
        later, viewer = await sent(door, "later", "alice", "trip")
        await viewer.ends()
        return only, later

    only, later = played(db, play)
    assert only.turn != later.turn
    assert [said(turn)[0][1] for turn in turns(db)] == ["please wait", "later"]


@pytest.mark.capability("door.withdraw")
def test_what_waits_at_another_process_is_withdrawn_from_here(open_db: Open, backend: str) -> None:
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
            waits = await doors[0].submit("and food", "alice", "trip")
            await near.until(lambda event: event.data.get("value", {}).get("joined") == "queued")
            await doors[1].withdraw("alice", "trip", waits.submission)
            await near.until(lambda event: event.data.get("name") == "threefold.withdrawn")
            gate.open.set()
            await near.ends()

    asyncio.run(asyncio.wait_for(run(), WAIT))
    assert [said(turn)[0][1] for turn in turns(here)] == ["please wait"]


@pytest.mark.capability("door.keys")
def test_the_same_submission_again_changes_nothing(db: threefold.Threefold) -> None:
    async def play(kernel: Kernel, door: Door) -> Any:
        gate = Gate()
        kernel.agents.register(gate, name="gate")
        what: dict[str, Any] = {"text": "please wait", "owner": "alice", "conversation": "trip", "key": "1"}
        first, viewer = await sent(door, **what, attachments=[("a.txt", b"a")])
        await gate.begun.wait()
        again = [await door.submit(**what, attachments=[("a.txt", b"a")])]
        queued = [await door.submit("more", "alice", "trip", kind="followup", key="2") for _ in range(2)]
        for different in ({"text": "other"}, {"kind": "followup"}, {"attachments": [("a.txt", b"b")]}):
            with pytest.raises(Conflict, match="key: something else was sent under it"):
                await door.submit(**{**what, "attachments": [("a.txt", b"a")], **different})  # type: ignore[arg-type]
        gate.open.set()
        await viewer.ends(2)
        again.append(await door.submit(**what, attachments=[("a.txt", b"a")]))
        elsewhere, other = await sent(door, **{**what, "conversation": "other"})
        await other.ends()
        return first, again, queued, elsewhere, gate.goals

    first, again, queued, elsewhere, goals = played(db, play)
    for each in again:
        assert (each.joined, each.submission, each.turn, each.position) == (
            "repeated", first.submission, first.turn, first.position,
        )  # fmt: skip
    assert [each.joined for each in queued] == ["queued", "repeated"]
    assert queued[0].turn == queued[1].turn
    assert elsewhere.joined == "opened"
    assert goals[:2] == ["please wait", "more"]
    assert len(turns(db)) == 2


@pytest.mark.capability("door.limits")
def test_what_is_too_much_is_refused_with_the_mend(db: threefold.Threefold) -> None:
    async def play(kernel: Kernel, door: Door) -> None:
        gate = Gate()
        kernel.agents.register(gate, name="gate")
        for n in range(2):
            await door.submit("wait", "alice", f"c{n}")
        with pytest.raises(TooMany, match="2 conversations of 'alice' run already; let one end"):
            await door.submit("wait", "alice", "c2")
        await door.submit("wait", "bob", "c0")
        with pytest.raises(Unavailable, match="3 conversations run in this process already; try again"):
            await door.submit("wait", "carol", "c0")
        for _ in range(2):
            await door.submit("more", "alice", "c0", kind="followup")
        with pytest.raises(TooMany, match="2 submissions wait in conversation 'c0' already; let the turn"):
            await door.submit("more", "alice", "c0")
        await door.submit("more", "alice", "c1", kind="steer")
        with pytest.raises(InvalidInput, match="kind 'shout' must be one of prompt, followup, steer"):
            await door.submit("x", "alice", "c0", kind="shout")  # type: ignore[arg-type]
        for wrong, message in (
            ({"text": " "}, "text is empty"),
            ({"text": 3}, "text must be text, not int"),
            ({"text": "x" * 1_000_001}, "at most 1,000,000 are taken"),
            ({"attachments": [("../a", b"x"), ("b", b"")] * 26}, "at most 50 are taken"),
            ({"attachments": ["a.txt"]}, r"attachments must be a list of \(name, bytes\)"),
            ({"attachments": [("a.txt", "text")]}, "'a.txt' must be bytes, not str"),
            ({"context": ["page"]}, 'context must be a list of objects that have a "type"'),
            ({"context": [{"type": "page", "at": object()}]}, "context must be plain JSON"),
            ({"owner": ""}, "user is empty"),
            ({"conversation": "\x00"}, "conversation contains a NUL"),
            ({"key": ""}, "key is empty"),
        ):
            sent: dict[str, Any] = {"text": "x", "owner": "dave", "conversation": "c", **wrong}
            with pytest.raises(InvalidInput, match=message):
                await door.submit(**sent)
        with pytest.raises(NotFound, match="agent 'nobody' is not registered"):
            await door.submit("x", "dave", "c", agent="nobody")
        gate.open.set()
        viewers = [Viewer(door, "alice", "c0"), Viewer(door, "alice", "c1"), Viewer(door, "bob", "c0")]
        await asyncio.gather(viewers[0].ends(2), viewers[1].ends(), viewers[2].ends())

    played(db, play, lanes=3, user_lanes=2, waiting=2)
    assert [len(turns(db, name)) for name in ("c0", "c1", "c2")] == [2, 1, 0]
    for name in ("waiting", "lease", "poll"):
        with pytest.raises(InvalidInput, match=f"{name} 0 must be more than nothing"):
            Door(Kernel(db), **{name: 0})


@pytest.mark.capability("door.limits")
def test_archived_threads_and_conversations_of_other_apps_are_refused(db: threefold.Threefold) -> None:
    alice = db.user("alice")
    alice.thread("old").add("user", "x")
    alice.thread("old").archive()
    with db.user("alice", app="A").turn("of A") as turn:
        turn.prompt("x")

    async def play(kernel: Kernel, door: Door) -> None:
        with pytest.raises(Conflict, match="archived"):
            await door.submit("x", "alice", "old")

    async def other(kernel: Kernel, door: Door) -> None:
        with pytest.raises(Forbidden, match="another app"):
            await door.submit("x", "alice", "of A")

    played(db, play)
    played(db, other, app="B")
    assert len(turns(db, "old")) == 1


class Frozen:
    """A door whose process does nothing any more: it neither looks at its lanes nor says that it holds them."""

    def __init__(self, db: threefold.Threefold, agent: Any) -> None:
        self._db, self._agent = db, agent
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Door:
        kernel = await self._stack.enter_async_context(Kernel(self._db))
        kernel.agents.register(self._agent, name="gate")
        door = await self._stack.enter_async_context(Door(kernel, poll=3600))
        still(door)
        return door

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()


@pytest.mark.capability("door.durable")
def test_a_turn_whose_process_stopped_is_failed_and_what_waited_goes_on(db: threefold.Threefold, clock: Clock) -> None:
    async def play(kernel: Kernel, door: Door) -> Any:
        still(door)
        kernel.agents.register(echo, name="gate")
        gate = Gate()
        async with Frozen(db, gate) as frozen:
            first = await frozen.submit("please wait", "alice", "trip", attachments=[("a.txt", b"kept")])
            await gate.begun.wait()
            clock.advance(timedelta(days=2))
            # What the lane refers to is not collected, however old it is.
            assert db.collect_blobs(timedelta(0)) == 0
            clock.advance(timedelta(days=-2))
            await door.submit("stop", "alice", "trip", kind="steer", attachments=[("b.txt", b"too")])
            await door.submit("next", "alice", "trip", kind="followup", attachments=[("c.txt", b"three")])
            db.expire()  # nor is what it referred to before it was changed, and does still
            viewer = Viewer(door, "alice", "trip", after=first.after)
            await door.look()
            assert door.lane("alice", "trip").turn == first.turn
            clock.advance(timedelta(seconds=30))
            await door.look()
            await viewer.ends()
            # It comes back, and finds that the turn is another's by now: it says no more, and records nothing.
            gate.open.set()
        return viewer.told

    told = played(db, play)
    one, two = turns(db)
    assert (one.status, one.error) == ("failed", "the process that ran it stopped")
    assert said(one) == [("prompt", "please wait"), ("steer", "stop")]
    assert [db.user("alice").read(card.ref) for card in one.attachments] == [b"kept", b"too"]
    assert (two.status, said(two)) == ("completed", [("followup", "next"), ("completion", "heard next")])
    assert [db.user("alice").read(card.ref) for card in two.attachments] == [b"three"]
    # Whoever watched was told how the turn ended, and then the next one.
    assert [value["turn"]["status"] for value in custom(told, "recorded")] == ["failed"]
    assert texts(told) == ["heard next"]


@pytest.mark.capability("door.durable")
def test_a_turn_that_was_recorded_before_its_process_stopped_stays_as_it_is(
    db: threefold.Threefold, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(kernel: Kernel, door: Door) -> None:
        still(door)
        kernel.agents.register(echo, name="gate")
        async with Frozen(db, echo) as frozen:
            end, reached = db.lanes.end, asyncio.Event()
            loop = asyncio.get_running_loop()

            def stopped(*values: Any) -> Any:
                loop.call_soon_threadsafe(reached.set)
                raise Unavailable("its process was stopped here")

            monkeypatch.setattr(db.lanes, "end", stopped)
            await frozen.submit("first", "alice", "trip")
            await reached.wait()
            monkeypatch.setattr(db.lanes, "end", end)
            _, viewer = await sent(door, "second", "alice", "trip")
            clock.advance(timedelta(seconds=31))
            await door.look()
            await viewer.ends()

    played(db, play)
    assert [(turn.status, said(turn)[-1][1]) for turn in turns(db)] == [
        ("completed", "heard first"), ("completed", "heard second"),
    ]  # fmt: skip


@pytest.mark.capability("door.durable")
def test_what_waits_is_run_when_a_door_opens(open_db: Open, backend: str, clock: Clock) -> None:
    db, left = open_db(), list[Accepted]()

    async def leave(kernel: Kernel, door: Door) -> None:
        gate = Gate()
        kernel.agents.register(gate, name="mine")
        await door.submit("please wait", "alice", "trip", agent="mine")
        await gate.begun.wait()
        left.append(await door.submit("left", "alice", "trip", kind="followup", agent="mine"))
        await door.submit("left too", "alice", "trip", agent="mine")
        await door.close(seconds=0.01)
        with pytest.raises(Unavailable, match="the door is closed"):
            await door.submit("late", "alice", "trip", agent="mine")

    played(db, leave)
    (turn,) = turns(db)
    assert (turn.status, turn.error, said(turn)[0]) == ("cancelled", "the door was closed", ("prompt", "please wait"))
    if backend != "memory":
        db.close()
        db = open_db()

    async def go_on(kernel: Kernel, door: Door) -> None:
        # Without its agent a lane is left alone.
        assert await door.look() == 0
        kernel.agents.register(echo, name="mine")
        viewer = Viewer(door, "alice", "trip", agent="mine", after=left[0].after)
        await door.look()
        await viewer.ends()

    played(db, go_on)
    assert said(turns(db)[1]) == [
        ("followup", "left"), ("prompt", "left too"), ("completion", "heard left\n\nleft too"),
    ]  # fmt: skip


@pytest.mark.capability("door.durable")
def test_a_turn_that_was_left_is_ended_without_its_agent(db: threefold.Threefold, clock: Clock) -> None:
    async def play(kernel: Kernel, door: Door) -> Any:
        still(door)
        gate = Gate()
        async with Frozen(db, gate) as frozen:
            first = await frozen.submit("please wait", "alice", "trip", agent="gate")
            await gate.begun.wait()
            await frozen.submit("next", "alice", "trip", agent="gate")
            clock.advance(timedelta(seconds=31))
            assert await door.look() == 1
            await asyncio.wait(door._tasks.values(), timeout=WAIT)
            # What waits is its agent's to answer, at another process.
            assert [each.text for each in door.lane("alice", "trip", agent="gate").waiting] == ["next"]
            gate.open.set()
        return first.turn

    turn = played(db, play)
    (one,) = turns(db)
    assert (one.turn, one.status, one.error) == (turn, "failed", "the process that ran it stopped")


@pytest.mark.capability("door.durable")
def test_lanes_that_cannot_be_run_here_do_not_keep_others_waiting(
    db: threefold.Threefold, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door_module, "_PAGE", 2)

    async def leave(kernel: Kernel, door: Door) -> None:
        """Accepts, and does not run it."""
        still(door)
        kernel.agents.register(echo, name="gone")
        monkeypatch.setattr(door, "_run", lambda _: False)
        for number in range(9):
            await door.submit("elsewhere", f"user{number}", "trip", agent="gone")
        clock.advance(timedelta(seconds=1))
        for number in range(5):
            await door.submit("please wait", "bob", f"trip{number}")
        clock.advance(timedelta(seconds=1))
        await door.submit("mine", "alice", "trip")

    async def go_on(kernel: Kernel, door: Door) -> list[int]:
        still(door)
        gate = Gate()
        kernel.agents.register(gate)
        viewer = Viewer(door, "alice", "trip")
        looks = [await door.look(), await door.look()]
        await viewer.ends()
        gate.open.set()
        return looks

    played(db, leave)
    # At first the user who waits longest, and then, as of that one enough lanes run, the next.
    assert played(db, go_on, user_lanes=2) == [2, 1]
    assert [said(turn)[0][1] for turn in turns(db)] == ["mine"]
    assert len(db.lanes.free(None, 100)) == 9 + 3


@pytest.mark.capability("door.durable")
def test_a_turn_that_cannot_begin_is_recorded_as_failed(db: threefold.Threefold) -> None:
    async def play(kernel: Kernel, door: Door) -> Any:
        kernel.agents.register(echo)
        db.contexts.default_seconds = 0  # no matter
        assemble = db.contexts.assemble
        db.contexts.assemble = lambda *_: (_ for _ in ()).throw(NotFound("no such engine"))  # type: ignore[method-assign]
        _, viewer = await sent(door, "first", "alice", "trip")
        told = list(await viewer.ends())
        db.contexts.assemble = assemble  # type: ignore[method-assign]
        await door.submit("second", "alice", "trip")
        await viewer.ends(2)
        return told

    told = played(db, play)
    assert (told[-1].type, told[-1].data["message"]) == ("RUN_ERROR", "no such engine")
    one, two = turns(db)
    assert (one.status, one.error, said(one)) == ("failed", "no such engine", [("prompt", "first")])
    assert two.status == "completed"


@pytest.mark.capability("door.isolation")
def test_lanes_of_others_are_not_seen(db: threefold.Threefold) -> None:
    async def play(kernel: Kernel, door: Door) -> None:
        gate = Gate()
        kernel.agents.register(gate, name="gate")
        _, viewer = await sent(door, "please wait", "alice", "trip")
        told = await viewer.until(lambda event: event.type == "TEXT_MESSAGE_CONTENT")
        for other, options in (("alic", {}), ("alice%", {}), ("bob", {}), ("alice", {"tenant": "acme"})):
            assert door.lane(other, "trip", **options).turn is None
            assert not await door.cancel(other, "trip", **options)
            # An id of somebody else's event leads nowhere.
            stranger = Viewer(door, other, "trip", after=told[-1].id, **options)
            (event,) = await stranger.until(lambda event: True)
            assert custom([event], "recorded")[0]["turn"] is None
            await stranger.leave()
        assert door.lane("alice", "trip", agent="gate").turn is None
        gate.open.set()
        await viewer.ends()

    played(db, play)


@pytest.mark.capability("door.forget")
def test_what_is_forgotten_is_not_in_a_lane_either(db: threefold.Threefold, clock: Clock) -> None:
    alice = db.user("alice")

    async def play(kernel: Kernel, door: Door) -> None:
        gate = Gate()
        kernel.agents.register(gate, name="gate")
        await door.submit("please wait", "alice", "trip")
        await gate.begun.wait()
        await door.submit("secret", "alice", "trip", kind="followup", attachments=[("a.txt", b"a")])
        assert alice.forget("trip").stores["lanes"] == 1
        assert door.lane("alice", "trip").waiting == ()
        gate.open.set()

    played(db, play)
    assert turns(db) == []
    assert db.lanes.lane(db.lanes.key(alice.scope, "trip")).digest == ""


@pytest.mark.capability("door.redaction")
def test_what_is_kept_and_shown_is_redacted(open_db: Open) -> None:
    db = open_db(redact=lambda text, name="": text.replace("hunter2", "[redacted: password]"))

    async def play(kernel: Kernel, door: Door) -> Any:
        begun, go = asyncio.Event(), asyncio.Event()

        async def agent(run: Run):
            run.step("log in", {"password": "hunter2"}, "hunter2")
            yield "it is hunt"
            begun.set()
            await go.wait()
            yield "er2"

        kernel.agents.register(agent)
        _, viewer = await sent(door, "mine is hunter2", "alice", "trip", context=[{"type": "page", "title": "hunter2"}])
        await begun.wait()
        view = door.lane("alice", "trip").as_json()
        go.set()
        return view, [event.data for event in await viewer.ends()]

    view, told = played(db, play)
    assert "hunter2" not in str(view) + str(told)
    (turn,) = turns(db)
    assert "hunter2" not in str(turn)
    assert turn.messages[1].text == "it is [redacted: password]"
    assert turn.redacted["password"] >= 5


@pytest.mark.capability("door.steer")
def test_a_chat_model_is_told_what_it_had_said(db: threefold.Threefold) -> None:
    asked = asyncio.Event()

    async def play(kernel: Kernel, door: Door) -> Any:
        _, viewer = await sent(door, "count to ten", "alice", "trip")
        await asked.wait()
        await door.submit("backwards", "alice", "trip", kind="steer")
        await viewer.until(lambda event: event.data.get("value", {}).get("joined") == "steered")
        model.go.set()
        await viewer.ends()

    class Slow(ScriptedModel):
        go = asyncio.Event()

        async def stream(self, messages, tools=(), max_tokens=None):
            async for piece in super().stream(messages, tools, max_tokens):
                yield piece
                asked.set()
                await self.go.wait()

    model = Slow(["one two three four", "ten nine eight"])
    played(db, play, chat=model)
    (turn,) = turns(db)
    assert [kind for kind, _ in said(turn)] == ["prompt", "steer", "partial", "completion"]
    assert turn.messages[-1].text == "ten nine eight"
    last = [(message.role, message.text) for message in model.asked[-1].messages][-2:]
    assert last == [("assistant", turn.messages[2].text), ("user", "backwards")]

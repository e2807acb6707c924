"""The turn handle: how a turn ends, what it collects, and errors that name the argument."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import threefold
from threefold.errors import InvalidInput, NotFound
from threefold.model.turn import Turn
from threefold.realms.conv.recorder import TurnHandle, new_turn_id
from threefold.testing.fakes import Clock


class Recorder:
    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.clock = Clock()

    def __call__(self, turn: Turn) -> tuple[str, str, dict[str, int]]:
        self.turns.append(turn)
        return f"ref of {turn.id}", "created", {}

    def open(self, **more: Any) -> TurnHandle:
        return TurnHandle("trip", self, self.clock, **more)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def test_leaving_the_block_records_what_was_collected(recorder: Recorder) -> None:
    with recorder.open(turn_id="1", title="Trip") as turn:
        turn.prompt("one")
        recorder.clock.advance(timedelta(seconds=3))
        turn.answer("first")
        turn.answer("second")
        turn.tokens(input=3)
        turn.tokens(input=4, output=1)
    (made,) = recorder.turns
    assert (made.status, made.error, made.title, made.id) == ("completed", None, "Trip", "1")
    assert made.completion is not None
    assert made.completion.text == "second"
    assert made.tokens == {"input": 7, "output": 1}
    assert made.ended - made.started == timedelta(seconds=3)
    assert (turn.ref, turn.outcome) == ("ref of 1", "created")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ValueError("bad value"), "failed"),
        (KeyError("x"), "failed"),
        (SystemExit(1), "cancelled"),
        (asyncio.CancelledError(), "cancelled"),
        (KeyboardInterrupt(), "cancelled"),
        (GeneratorExit(), "cancelled"),
    ],
)
def test_an_exception_ends_the_turn_and_goes_on(recorder: Recorder, error: BaseException, status: str) -> None:
    def work() -> None:
        with recorder.open() as turn:
            turn.prompt("kept")
            raise error

    with pytest.raises(type(error)):
        work()
    (made,) = recorder.turns
    assert made.status == status
    assert made.error
    assert made.error.startswith(type(error).__name__)
    assert made.submissions[0].text == "kept"


def test_a_cancelled_task_records_its_turn(recorder: Recorder) -> None:
    async def work() -> None:
        with recorder.open() as turn:
            turn.prompt("before")
            await asyncio.sleep(60)

    async def main() -> None:
        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert [t.status for t in recorder.turns] == ["cancelled"]


def test_ending_by_hand(recorder: Recorder) -> None:
    with recorder.open() as turn:
        turn.fail("no model")
    with recorder.open() as turn:
        turn.cancel("the person left")
    with recorder.open() as turn:
        turn.cancel()
    assert [(t.status, t.error) for t in recorder.turns] == [
        ("failed", "no model"),
        ("cancelled", "the person left"),
        ("cancelled", None),
    ]


def test_recording_twice_without_a_change_is_the_same_turn(recorder: Recorder) -> None:
    turn = recorder.open()
    turn.prompt("x")
    turn.record()
    recorder.clock.advance(timedelta(hours=1))
    turn.record()
    assert recorder.turns[0] == recorder.turns[1]
    turn.answer("later")
    turn.record()
    assert recorder.turns[2].ended > recorder.turns[1].ended


def test_given_times_are_kept_and_bound_the_turn(recorder: Recorder) -> None:
    with recorder.open(started="2026-01-02") as turn:
        turn.prompt("x", at="2026-01-01T10:00:00+02:00")
        turn.answer("y", at=datetime(2026, 1, 3))  # noqa: DTZ001 - a time without a zone is UTC
    (made,) = recorder.turns
    assert made.started == datetime(2026, 1, 1, 8, tzinfo=UTC)
    assert made.ended == datetime(2026, 1, 3, tzinfo=UTC)


def test_events_and_panels_for_reload(recorder: Recorder) -> None:
    with recorder.open() as turn:
        turn.event("chat.step", {"n": 1})
        turn.event("chat.delta", {"n": 2})
        turn.stream("canvas", "a", "plan")
        turn.stream("tool", "x")
        turn.stream("canvas", "b", "plan")
    replay = recorder.turns[0].replay
    assert [e["type"] for e in replay.events] == ["chat.step"]
    assert [(s["marker"], s["name"], s["text"], s["chunks"]) for s in replay.streams] == [
        ("canvas", "plan", "ab", 2),
        ("tool", "", "x", 1),
    ]


def test_files_by_path_and_by_bytes(recorder: Recorder, tmp_path: Path) -> None:
    (tmp_path / "map.pdf").write_bytes(b"%PDF")
    with recorder.open() as turn:
        turn.attach(tmp_path / "map.pdf")
        turn.attach(str(tmp_path / "map.pdf"))
        turn.attach(("x.txt", bytearray(b"x")), text="said")
        turn.publish("a/b.md", "text ü")
        turn.publish("c", memoryview(b"c"))
    (made,) = recorder.turns
    assert [(a.name, a.data, a.mime) for a in made.attachments] == [
        ("map.pdf", b"%PDF", "application/pdf"),
        ("map.pdf", b"%PDF", "application/pdf"),
        ("x.txt", b"x", "text/plain"),
    ]
    assert [f.data for f in made.files] == ["text ü".encode(), b"c"]
    with pytest.raises(NotFound, match="nosuch"):
        turn.attach(tmp_path / "nosuch")


BAD: dict[str, tuple[Callable[[TurnHandle], object], str]] = {
    "prompt": (lambda t: t.prompt(5), "prompt"),  # type: ignore[arg-type]
    "followup": (lambda t: t.followup(None), "followup"),  # type: ignore[arg-type]
    "batch": (lambda t: t.prompt("x", batch=""), "batch"),
    "author": (lambda t: t.prompt("x", author="\x00"), "author"),
    "at": (lambda t: t.prompt("x", at="soon"), "at"),
    "attachment": (lambda t: t.attach(("../x", b"")), "path"),
    "attached data": (lambda t: t.attach(("x", "text")), "file data"),  # type: ignore[arg-type]
    "attached text": (lambda t: t.attach(("x", b""), text=5), "text"),  # type: ignore[arg-type]
    "status": (lambda t: t.step("x", status="odd"), "status"),  # type: ignore[arg-type]
    "arguments": (lambda t: t.step("x", object()), "arguments"),
    "result": (lambda t: t.step("x", None, {1: object()}), "result"),
    "path": (lambda t: t.publish("/etc/x", b""), "path"),
    "data": (lambda t: t.publish("x", 5), "data"),  # type: ignore[arg-type]
    "payload": (lambda t: t.context("x", {1, 2}), "payload"),
    "type": (lambda t: t.context(""), "type"),
    "marker": (lambda t: t.stream("odd", "x"), "marker"),
    "url": (lambda t: t.source(5), "url"),  # type: ignore[arg-type]
    "source title": (lambda t: t.source("x", title=5), "title"),  # type: ignore[arg-type]
    "source text": (lambda t: t.source("x", text=5), "text"),  # type: ignore[arg-type]
    "summary": (lambda t: t.summary(None), "summary"),  # type: ignore[arg-type]
    "refs": (lambda t: t.summary("x", refs=[5]), "refs"),  # type: ignore[list-item]
    "anchors": (lambda t: t.summary("x", anchors=[5]), "anchors"),  # type: ignore[list-item]
    "one anchor": (lambda t: t.summary("x", anchors="Alfama"), "anchors"),
    "note": (lambda t: t.note(5), "note"),  # type: ignore[arg-type]
    "tag": (lambda t: t.note("x", tag=5), "tag"),  # type: ignore[arg-type]
    "answer": (lambda t: t.answer(None), "answer"),  # type: ignore[arg-type]
    "tokens": (lambda t: t.tokens(input="many"), "input"),  # type: ignore[arg-type]
    "error": (lambda t: t.fail(5), "error"),  # type: ignore[arg-type]
    "reason": (lambda t: t.cancel(5), "reason"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_kept_is_refused_at_once_and_by_name(recorder: Recorder, name: str) -> None:
    call, argument = BAD[name]
    with recorder.open() as turn:
        turn.prompt("kept")
        with pytest.raises(InvalidInput, match=argument):
            call(turn)
    assert recorder.turns[0].submissions[0].text == "kept"


@pytest.mark.parametrize("bad", ["", " ", "a\x00b", 5, None, "x" * 2000])
def test_ids_are_checked_when_the_turn_is_opened(recorder: Recorder, bad: Any) -> None:
    with pytest.raises(InvalidInput, match="conversation"):
        TurnHandle(bad, recorder, recorder.clock)
    if bad is not None:
        with pytest.raises(InvalidInput, match="turn"):
            recorder.open(turn_id=bad)


def test_new_ids_sort_by_time_and_do_not_repeat() -> None:
    made = [new_turn_id() for _ in range(500)]
    assert len(set(made)) == 500
    # The count begins anew after 65,536.
    assert sum(before > after for before, after in itertools.pairwise(made)) <= 1


def test_what_cannot_be_kept_is_refused_at_the_call_and_the_turn_goes_on() -> None:
    with threefold.open(":memory:", embedder=None, background=False) as db:
        alice = db.user("alice")
        with alice.turn("trip") as turn:
            turn.prompt("keep me")
            for refused in (
                lambda: turn.summary("x" * 25_000),
                lambda: turn.summary("x", anchors=["two\nlines"]),
                lambda: turn.summary("x", refs=["r"] * 65),
            ):
                with pytest.raises(InvalidInput):
                    refused()
            turn.answer("kept")
        assert [m.text for m in alice.conv.turn(str(turn.ref)).messages] == ["keep me", "kept"]


def test_a_call_after_the_block_is_refused_not_lost() -> None:
    with threefold.open(":memory:", embedder=None, background=False) as db:
        with db.user("alice").turn("trip") as turn:
            turn.prompt("said")
        for late in (lambda: turn.answer("late"), lambda: turn.source("u"), lambda: turn.tokens(input=1), turn.cancel):
            with pytest.raises(threefold.Conflict, match="new turn"):
                late()

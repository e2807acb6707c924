"""What becomes of a lane, as functions; what arrives at one; and how it is kept."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from threefold.errors import Conflict, IntegrityError, InvalidInput, NotFound, TooMany
from threefold.realms.conv.lanes import changing, keeping
from threefold.realms.conv.lanes.arriving import draft
from threefold.realms.conv.lanes.values import Attached, Key, Lane, LaneView, Sent
from threefold.testing.contract.desk import NOW

LEASE = timedelta(seconds=30)
FREE = Lane("trip")


def sent(name: str, kind: str = "prompt") -> Sent:
    return Sent(name, kind, f"text {name}", NOW)  # type: ignore[arg-type]


def accepted(lane: Lane, *names: str, kind: str = "prompt", most: int = 20) -> Lane:
    for name in names:
        lane, _ = changing.accept(lane, sent(name, kind), f"turn of {name}", most)
    return lane


def running(*names: str) -> Lane:
    return changing.take(accepted(FREE, *names), "me", NOW, NOW + LEASE)


def test_a_free_lane_is_opened_and_what_comes_then_folds() -> None:
    lane, first = changing.accept(FREE, sent("a"), "1", 20)
    assert (first.joined, first.turn, first.position) == ("opened", "1", 1)
    lane, second = changing.accept(lane, sent("b"), "2", 20)
    assert (second.joined, second.turn, second.position) == ("folded", "1", 2)
    lane = changing.take(lane, "me", NOW, NOW + LEASE)
    assert lane.running is not None
    assert [each.id for each in lane.running.sent] == ["a", "b"]
    assert (lane.waiting, lane.next) == ((), "")
    lane, third = changing.accept(lane, sent("c", "followup"), "3", 20)
    assert (third.joined, third.turn) == ("queued", "3")
    assert changing.take(lane, "other", NOW, NOW + LEASE) is lane


def test_a_steer_joins_the_turn_that_runs_until_that_takes_no_more() -> None:
    lane, steer = changing.accept(running("a"), sent("s", "steer"), "2", 20)
    assert (steer.joined, steer.turn, steer.position) == ("steered", "turn of a", 2)
    open_ = changing.close(lane, "me", "turn of a", 1, NOW + LEASE)
    assert open_ is lane
    closed = changing.close(lane, "me", "turn of a", 2, NOW + LEASE)
    assert closed.running is not None
    assert closed.running.closed
    assert changing.close(lane, "me", "turn of a", 1, NOW + LEASE, force=True).running == closed.running
    later, late = changing.accept(closed, sent("t", "steer"), "3", 20)
    assert (late.joined, late.turn) == ("queued", "3")
    cancelled = changing.cancel(lane)
    assert changing.close(cancelled, "me", "turn of a", 1, NOW + LEASE).running == replace(
        closed.running, cancelled=True
    )
    done = changing.end(later, "me", "turn of a")
    assert (done.running, done.ended, done.next) == (None, ("turn of a",), "3")
    assert changing.end(done, "me", "turn of a") is done


def test_limits_of_what_waits_and_of_what_interrupts() -> None:
    lane = accepted(running("a"), *"bcd", most=3)
    with pytest.raises(TooMany, match="3 submissions wait in conversation 'trip' already"):
        accepted(lane, "e", most=3)
    lane = accepted(lane, *"xyz", kind="steer", most=3)
    with pytest.raises(TooMany, match="this turn was interrupted 3 times; let it end, or cancel it"):
        accepted(lane, "w", kind="steer", most=3)


def test_a_lane_belongs_to_its_holder_until_the_lease_ends() -> None:
    lane = running("a")
    assert changing.take(lane, "other", NOW + LEASE / 2, NOW + LEASE) is lane
    for call in (
        lambda: changing.renew(lane, "other", "turn of a", NOW),
        lambda: changing.close(lane, "other", "turn of a", 1, NOW),
        lambda: changing.end(lane, "other", "turn of a"),
        lambda: changing.end(lane, "me", "another turn"),
        lambda: changing.held(FREE, "me", "turn of a"),
    ):
        with pytest.raises(Conflict, match="taken over by another process, or forgotten"):
            call()
    renewed = changing.renew(lane, "me", "turn of a", NOW + 2 * LEASE)
    assert changing.take(renewed, "other", NOW + LEASE, NOW + 3 * LEASE) is renewed
    left = changing.take(lane, "other", NOW + LEASE, NOW + 2 * LEASE)
    assert left.running is not None
    assert (left.running.holder, left.running.closed, left.running.turn) == ("other", True, "turn of a")


def test_what_runs_is_cancelled_and_what_waits_is_stopped() -> None:
    assert changing.cancel(FREE) is FREE
    lane = running("a")
    assert changing.cancel(lane, "another") is lane
    cancelled = changing.cancel(lane, "turn of a")
    assert cancelled.running is not None
    assert cancelled.running.cancelled
    assert changing.cancel(cancelled) is cancelled
    assert changing.stop(lane, "me", NOW, NOW + LEASE) is lane
    waiting = accepted(FREE, "b")
    assert changing.stop(waiting, "me", NOW, NOW + LEASE, "another") is waiting
    stopped = changing.stop(waiting, "me", NOW, NOW + LEASE)
    assert stopped.running is not None
    assert (stopped.running.closed, stopped.running.cancelled, stopped.waiting) == (True, True, ())


def test_what_waits_is_withdrawn_and_nothing_else_is() -> None:
    lane = accepted(running("a"), "b", "c", kind="followup")
    left = changing.withdraw(lane, "b")
    assert ([each.id for each in left.waiting], left.next, left.running) == (["c"], "turn of b", lane.running)
    none = changing.withdraw(left, "c")
    assert (none.waiting, none.next) == ((), "")
    assert changing.take(changing.end(none, "me", "turn of a"), "me", NOW, NOW + LEASE).running is None
    with pytest.raises(Conflict, match="'a' is in the turn that runs; cancel that, only what waits"):
        changing.withdraw(lane, "a")
    for id_ in ("b", "", "x"):
        with pytest.raises(NotFound, match=r"does not wait in conversation 'trip' \(any more\)"):
            changing.withdraw(left, id_)


def test_keys_are_remembered_the_last_ones() -> None:
    lane, answers = FREE, []
    for number in range(changing.MAX_KEYS + 1):
        lane, answer = changing.accept(lane, sent(str(number)), "1", 1000, Key(f"k{number}", "w", "", "", 0))
        answers.append(answer)
    same, again = changing.accept(lane, sent("other"), "2", 1000, Key("k5", "w", "", "", 0))
    assert same is lane
    assert (again.joined, again.submission, again.turn, again.position) == ("repeated", "5", "1", 6)
    with pytest.raises(Conflict, match="something else was sent under it"):
        changing.accept(lane, sent("other"), "2", 1000, Key("k5", "v", "", "", 0))
    _, forgotten = changing.accept(lane, sent("other"), "2", 1000, Key("k0", "w", "", "", 0))
    assert forgotten.joined == "folded"


def test_what_is_there_already_is_answered_as_it_was() -> None:
    """A connection broke behind the commit, and the same is accepted once more."""
    lane, first = changing.accept(FREE, sent("a"), "1", 20)
    assert changing.accept(lane, sent("a"), "2", 20) == (lane, first)
    lane = running("a")
    lane, steer = changing.accept(lane, sent("s", "steer"), "2", 20)
    assert changing.accept(lane, sent("s", "steer"), "3", 20) == (lane, steer)


def test_a_lane_survives_being_kept() -> None:
    made = draft(
        "s", "steer", "go", NOW, [("a.txt", b"a"), ("b", b"b", "x/y")], [{"type": "page", "n": 1}], "key", "Ann"
    )
    lane = replace(running("a"), ended=("0",), agent="guide", app="A")
    lane, _ = changing.accept(lane, made.sent, "2", 20, made.key)
    lane = accepted(lane, "b", kind="followup")
    record = keeping.to_record(lane, NOW, NOW + LEASE)
    assert keeping.from_record(record) == replace(lane, digest=record.digest)
    assert {file.digest for file in record.files} == {file.digest for file in made.sent.attachments}
    assert (record.labels, record.log.started, record.expires) == ((keeping.runs("A"),), NOW + LEASE, None)
    waiting = keeping.to_record(accepted(FREE, "a"), NOW + LEASE, None)
    assert (waiting.labels, waiting.log.started) == ((keeping.waits(None),), NOW)
    idle = keeping.to_record(FREE, NOW, NOW + LEASE)
    assert (idle.labels, idle.expires) == ((), NOW + LEASE)
    with pytest.raises(IntegrityError, match="the lane of conversation 'trip' is damaged"):
        keeping.from_record(replace(record, replay={"agent": None}))
    assert len({keeping.lane_turn(app, agent) for app in (None, "a", "b") for agent in (None, "a", "b")}) == 9


def test_what_arrives_is_checked_and_redacted() -> None:
    def rule(text: str, name: str = "") -> str:
        return "[redacted: key]" if name == "key" else text.replace("s3cret", "[redacted: word]")

    made = draft(
        "1", "prompt", "my s3cret \ud800", NOW, [("dir\\s3cret.txt", b"x")],
        [{"type": "page", "key": "k", "title": "s3cret"}], "again", "s3cret", rule,
    )  # fmt: skip
    assert made.sent.text == "my [redacted: word] \ufffd"
    assert made.sent.author == "[redacted: word]"
    assert [(file.name, file.mime, file.size) for file in made.sent.attachments] == [
        ("[redacted: word].txt", "text/plain", 1),
    ]  # fmt: skip
    assert made.sent.context == (("page", {"key": "[redacted: key]", "title": "[redacted: word]"}),)
    assert made.sent.redacted == {"word": 4, "key": 1}
    assert made.data == (b"x",)
    assert draft("2", "prompt", "", NOW, [("a", b"")]).sent.text == ""
    with pytest.raises(InvalidInput, match="text is empty"):
        draft("2", "prompt", " \n", NOW)
    long = "s3cret " * 100
    with pytest.raises(InvalidInput, match="author, redacted, has 1700 bytes"):
        draft("2", "prompt", "x", NOW, author=long, rule=rule)
    with pytest.raises(InvalidInput, match="attachments: a name, redacted, has 1700 bytes"):
        draft("2", "prompt", "x", NOW, [(long, b"")], rule=rule)


def test_the_view_of_a_lane() -> None:
    lane = accepted(running("a"), "b", kind="followup")
    view = LaneView.of(lane)
    assert view.as_json() == {
        "conversation": "trip", "agent": None, "turn": "turn of a", "since": "2026-11-29T12:00:00Z",
        "submissions": [{"submission": "a", "kind": "prompt", "text": "text a", "at": "2026-11-29T12:00:00Z",
                         "author": None, "attachments": [], "context": []}],
        "next": "turn of b",
        "waiting": [{"submission": "b", "kind": "followup", "text": "text b", "at": "2026-11-29T12:00:00Z",
                     "author": None, "attachments": [], "context": []}],
    }  # fmt: skip
    assert LaneView.of(FREE).as_json()["turn"] is None
    assert Attached("a", "d", 1).mime is None

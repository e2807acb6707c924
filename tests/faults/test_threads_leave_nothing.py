"""What is forgotten is in no summary and in no file; a crash on the way leaves no more than a missing summary."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from conftest import FAST_FOLDER
from test_purge_leaves_nothing import left

import threefold
from threefold.model.scope import Scope
from threefold.model.turn import Submission, Turn
from threefold.realms.conv.threads.keeping import place_of
from threefold.testing.fakes import Clock

SECRET = "qzsecretsecretabczq"


@pytest.fixture
def folder() -> Iterator[Path]:
    with TemporaryDirectory(dir=FAST_FOLDER) as place:
        yield Path(place) / "store"


def filled(folder: Path, clock: Clock, **settings) -> threefold.Threefold:
    """A thread of 100 messages, the sixth of which holds the secret, which is in the kept summary."""
    db = threefold.open(folder, embedder=None, background=False, clock=clock, **settings)
    thread = db.user("alice").thread("trip")
    for number in range(100):
        clock.advance(timedelta(seconds=1))
        thread.add("user", f"The {SECRET} is 4711." if number == 5 else f"We spoke about matter {number}.")
    assert SECRET in thread.context().summary
    assert SECRET in kept(db)
    return db


def kept(db: threefold.Threefold) -> str:
    """What is stored of the summary."""
    place = place_of(Scope("alice"))
    found = db._backend.records(place, [("trip", "summary")], db.config.clock())
    return found[0].replay["text"] if found else ""


def turn_of_secret(alice: threefold.Handle) -> str:
    return next(turn.turn for turn in alice.conv.turns("trip", limit=100) if SECRET in turn.about)


@pytest.mark.parametrize("what", ["turn", "conversation", "user", "expiry", "tenant"])
def test_nothing_is_left_in_any_file(folder: Path, what: str) -> None:
    clock = Clock()
    with filled(folder, clock, ttl=timedelta(days=1)) as db:
        alice = db.user("alice")
        assert left(folder, {SECRET})
        if what == "turn":
            assert alice.forget("trip", turn_of_secret(alice)).leftovers == ()
        elif what == "conversation":
            assert alice.forget("trip").leftovers == ()
        elif what == "tenant":
            assert db.forget_tenant("default").leftovers == ()
        elif what == "expiry":
            clock.advance(timedelta(days=2))
            db.expire()
        else:
            assert alice.forget().leftovers == ()
        assert left(folder, {SECRET}) == []
        assert SECRET not in kept(db)
        if what == "turn":
            thread = alice.thread("trip")
            assert SECRET not in thread.context().summary
            assert thread.maintain().parts == 1
            assert kept(db)
            assert left(folder, {SECRET}) == []


def test_nothing_is_left_of_an_apps_thread(folder: Path) -> None:
    with threefold.open(folder, embedder=None, background=False) as db:
        app, whole = db.user("alice", app="planner"), db.user("alice")
        for number in range(100):
            app.thread("trip").add("user", f"The {SECRET} is {number}.")
        whole.thread("trip").maintain()
        whole.thread("other").add("user", "stays")
        app.forget()
        assert left(folder, {SECRET}) == []
        assert [entry.name for entry in whole.threads()] == ["other"]


def test_a_fuller_edition_leaves_no_summary_of_the_one_before(folder: Path) -> None:
    clock = Clock()
    with threefold.open(folder, embedder=None, background=False, clock=clock) as db:
        alice = db.user("alice")

        def turn(number: int, *more: str) -> Turn:
            at = clock.at + timedelta(minutes=number)
            said = tuple(Submission("prompt", text, at) for text in (f"Matter {number}.", *more))
            return Turn("trip", f"{number:03}", at, at + timedelta(seconds=len(more)), submissions=said)

        alice.conv.record_all([turn(number) for number in range(100)])
        alice.thread("trip").maintain()
        assert kept(db)
        assert alice.conv.record(turn(3, f"The {SECRET} is 4711.")) == "replaced"
        assert kept(db) == ""
        assert SECRET in alice.thread("trip").context().summary


@pytest.mark.parametrize("calls", range(1, 6))
@pytest.mark.parametrize("whole", [False, True])
def test_a_crash_while_forgetting_leaves_no_stale_summary(
    folder: Path, monkeypatch: pytest.MonkeyPatch, calls: int, whole: bool
) -> None:
    """The process dies before its n-th write: the summary is gone whenever the turn is."""
    clock = Clock()
    with filled(folder, clock) as db:
        alice = db.user("alice")
        turn = None if whole else turn_of_secret(alice)
        left_to_do = [calls]

        class Died(BaseException):
            pass

        for name in ("purge", "commit"):
            method = getattr(db._backend, name)

            def call(*args, method=method):
                left_to_do[0] -= 1
                if not left_to_do[0]:
                    raise Died
                return method(*args)

            monkeypatch.setattr(db._backend, name, call)
        try:
            alice.forget("trip", turn)
        except Died:
            pass
        else:
            assert calls > 3
    with threefold.open(folder, embedder=None, background=False, clock=clock) as db:
        alice = db.user("alice")
        there = any(SECRET in entry.about for entry in alice.conv.turns("trip", limit=100))
        assert there or SECRET not in kept(db)
        if alice.conv.turns("trip"):
            assert (SECRET in alice.thread("trip").context().summary) == there
        alice.forget("trip", turn)
        assert left(folder, {SECRET}) == []
        if whole:
            assert alice.threads() == ()

"""Lanes against a plain model: two processes that hold, crash and come back, people that send, and a clock.

What was acknowledged is at every moment in exactly one place: it waits, it is in the turn that runs, or it is in one
recorded turn. And it is drained to the end by whoever is left.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from conftest import FAST_FOLDER
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import threefold
from threefold.errors import Conflict, NotFound
from threefold.realms.conv.lanes.arriving import draft
from threefold.realms.conv.lanes.values import Running
from threefold.testing.contract.desk import NOW
from threefold.testing.fakes import Clock

LEASE, MOST = timedelta(seconds=30), 4
PROCESSES = st.integers(0, 1)
KINDS = st.sampled_from(["prompt", "followup", "steer", "steer"])


class Model:
    """A lane as lists of names."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.running: list[str] | None = None
        self.holder, self.until, self.closed, self.cancelled = -1, NOW, False, False
        self.recorded: list[list[str]] = []


class Lanes(RuleBasedStateMachine):
    """Two processes over one store. Each knows of a turn that it holds what it was told; it may be out of date."""

    shared = True

    def __init__(self) -> None:
        super().__init__()
        self.clock, self.model, self.count = Clock(), Model(), 0
        self.folder = tempfile.TemporaryDirectory(dir=FAST_FOLDER)
        place = ":memory:" if self.shared else f"{self.folder.name}/store"
        options: dict[str, Any] = {"embedder": None, "background": False, "durable": False, "clock": self.clock}
        first = threefold.open(place, **options)
        self.stores = [first, first if self.shared else threefold.open(place, **options)]
        self.key = first.lanes.key(first.user("alice").scope, "trip")
        # By process: the turn it holds as it knows it, how much of it its agent took, and whether it is closed.
        self.held: list[Running | None] = [None, None]
        self.taken, self.closing = [0, 0], [False, False]
        self.turns: dict[str, list[str]] = {}
        self.steers: set[str] = set()

    def lanes(self, process: int) -> Any:
        return self.stores[process].lanes

    @rule(process=PROCESSES, kind=KINDS)
    def send(self, process: int, kind: Any) -> None:
        self.count += 1
        name, model = f"s{self.count}", self.model
        steers = model.running is not None and not model.closed and kind == "steer"
        full = model.running is not None and sum(each in self.steers for each in model.running) >= MOST
        sent = draft(name, kind, f"text of {name}", self.clock(), key=name)
        refused = full if steers else len(model.waiting) >= MOST
        if refused:
            with pytest.raises(Conflict):
                self.lanes(process).submit(self.key, sent, MOST)
            return
        accepted, _ = self.lanes(process).submit(self.key, sent, MOST)
        again, _ = self.lanes(1 - process).submit(self.key, sent, MOST)
        assert (again.joined, again.turn, again.position) == ("repeated", accepted.turn, accepted.position)
        if kind == "steer":
            self.steers.add(name)
        if steers:
            assert model.running is not None
            model.running.append(name)
            assert (accepted.joined, accepted.position) == ("steered", len(model.running))
        else:
            expected = "folded" if model.waiting else "opened" if model.running is None else "queued"
            model.waiting.append(name)
            assert (accepted.joined, accepted.position) == (expected, len(model.waiting))

    @rule(process=PROCESSES)
    def look(self, process: int) -> None:
        """A process that has no turn looks for one to run, or one that was left."""
        model, now = self.model, self.clock()
        if self.held[process] is not None:
            return
        running = self.lanes(process).next(self.key, f"p{process}", LEASE)
        if model.running is None and model.waiting:
            model.running, model.waiting = model.waiting, []
            model.closed = model.cancelled = False
        elif model.running is not None and model.until <= now:
            model.closed = True
        else:
            assert running is None
            return
        model.holder, model.until = process, now + LEASE
        assert running is not None
        assert [each.id for each in running.sent] == model.running
        assert (running.closed, running.cancelled) == (model.closed, model.cancelled)
        self.held[process], self.taken[process], self.closing[process] = running, len(running.sent), running.closed

    @contextmanager
    def holding(self, process: int) -> Iterator[Running | None]:
        """A turn that a process believes to hold: it is told where that is not so, and has none then."""
        running = self.held[process]
        if running is None:
            yield None
        elif self.model.running is not None and (self.model.holder, self.turn) == (process, running.turn):
            yield running
        else:
            self.held[process] = None
            lanes, holder = self.lanes(process), f"p{process}"
            with pytest.raises(Conflict):
                lanes.renew(self.key, holder, running.turn, LEASE)
            with pytest.raises(Conflict):
                lanes.close(self.key, holder, running.turn, 0, LEASE, True)
            yield None

    @property
    def turn(self) -> str | None:
        return self.stores[0].lanes.view(self.key).turn

    @rule(process=PROCESSES)
    def renew(self, process: int) -> None:
        with self.holding(process) as running:
            if running is not None:
                self.lanes(process).renew(self.key, f"p{process}", running.turn, LEASE)
                self.model.until = self.clock() + LEASE

    @rule(process=PROCESSES, force=st.booleans())
    def agent_ends(self, process: int, force: bool) -> None:
        """The agent is done with what it took; it goes on where something came, unless it was forced."""
        with self.holding(process) as running:
            if running is None or self.closing[process]:
                return
            seen = self.taken[process]
            now = self.lanes(process).close(self.key, f"p{process}", running.turn, seen, LEASE, force)
            model = self.model
            assert model.running is not None
            assert [each.id for each in now.sent] == model.running
            assert now.cancelled == model.cancelled
            assert now.closed == (force or model.cancelled or len(now.sent) == seen)
            self.taken[process] = len(model.running)
            self.closing[process] = model.closed = now.closed
            if now.closed:
                model.until = self.clock() + LEASE

    @rule(process=PROCESSES, crash=st.booleans())
    def record(self, process: int, crash: bool) -> None:
        """A closed turn is recorded, and the lane let go; or the process is killed in between."""
        with self.holding(process) as running:
            if running is None or not self.closing[process]:
                return
            sent = self.lanes(process).close(self.key, f"p{process}", running.turn, 0, LEASE, True).sent
            self.model.until = self.clock() + LEASE
            turn = self.stores[process].user("alice").turn("trip", running.turn, once=True)
            for each in sent:
                turn.prompt(each.text, each.at, each.id)
            turn.answer(f"by {process}")
            try:
                turn.record()
            except Conflict:
                assert running.turn in self.turns  # recorded before its holder was killed
            assert self.model.running is not None
            self.turns[running.turn] = list(self.model.running)
            self.held[process] = None
            if not crash:
                self.lanes(process).end(self.key, f"p{process}", running.turn)
                self.model.recorded.append(self.model.running)
                self.model.running = None

    @rule(process=PROCESSES)
    def crash(self, process: int) -> None:
        self.held[process] = None

    @rule(process=PROCESSES)
    def cancel(self, process: int) -> None:
        model = self.model
        there = model.running is not None and not model.closed and not model.cancelled
        assert self.lanes(process).cancel(self.key) == there
        model.cancelled = model.cancelled or there

    @rule(process=PROCESSES, place=st.integers(0, MOST))
    def withdraw(self, process: int, place: int) -> None:
        """Take back what waits; what runs, or is not there any more, stays as it is."""
        model, lanes = self.model, self.lanes(process)
        if place < len(model.waiting):
            assert lanes.withdraw(self.key, model.waiting[place]).id == model.waiting.pop(place)
        elif model.running is not None:
            with pytest.raises(Conflict):
                lanes.withdraw(self.key, model.running[-1])
        else:
            with pytest.raises(NotFound):
                lanes.withdraw(self.key, "s0")

    @rule(seconds=st.sampled_from([1, 10, 29, 30, 31]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(timedelta(seconds=seconds))

    @invariant()
    def everything_is_in_one_place(self) -> None:
        model, view = self.model, self.stores[1].lanes.view(self.key)
        assert [each.id for each in view.waiting] == model.waiting
        assert [each.id for each in view.submissions] == (model.running or [])
        now = self.clock()
        free, left = (call(None, 10) for call in (self.stores[0].lanes.free, self.stores[0].lanes.left))
        assert free == ([self.key] if model.waiting and model.running is None else [])
        assert left == ([self.key] if model.running is not None and model.until <= now else [])

    def teardown(self) -> None:
        """Whoever is left drains the lane."""
        self.held = [None, None]
        for _ in range(3):
            self.clock.advance(LEASE)
            self.look(0)
            self.agent_ends(0, True)
            self.record(0, False)
        assert (self.model.waiting, self.model.running) == ([], None)
        conv = self.stores[1].user("alice").conv
        found = {each.turn: conv.turn(f"conv:ar:conv_trip.turn_{each.turn}.turn.log") for each in conv.turns("trip")}
        said = {turn: [m.batch for m in view.messages if m.role == "user"] for turn, view in found.items()}
        assert said == self.turns
        counted = Counter(name for names in said.values() for name in names)
        assert set(counted.values()) <= {1}
        assert sorted(counted) == sorted(name for names in self.model.recorded for name in names)
        for db in self.stores:
            db.close()
        self.folder.cleanup()


class LanesOnDisk(Lanes):
    shared = False


TestLanes = Lanes.TestCase
TestLanesOnDisk = LanesOnDisk.TestCase
TestLanesOnDisk.settings = settings(max_examples=max(10, settings().max_examples // 4))

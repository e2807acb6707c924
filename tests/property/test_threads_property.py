"""Threads against a plain model, a list of messages: added, forgotten, maintained, archived, read in any order."""

from __future__ import annotations

import tempfile
from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import threefold
from threefold.errors import Conflict, NotFound
from threefold.realms.conv.threads.writing import BUDGET
from threefold.testing.contract.desk import NOW, own
from threefold.testing.fakes import Clock
from threefold.text.tokens import count_tokens

NAMES = st.sampled_from(["trip", "旅", "a'b%"])
WINDOWS = st.sampled_from([1, 3, 8, 50])


class Threads(RuleBasedStateMachine):
    """One store; every message has a word that nothing else has."""

    store = ":memory:"

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.db = threefold.open(self.store, embedder=None, background=False, durable=False, clock=self.clock)
        self.alice = self.db.user("alice")
        self.count = 0
        # By name: turns as (started, id, [(role, text)]) in order; which are threads; which are archived.
        self.turns: dict[str, list[tuple[float, str, list[tuple[str, str]]]]] = {}
        self.threads: set[str] = set()
        self.archived: set[str] = set()
        self.forgotten: list[str] = []

    def word(self) -> str:
        self.count += 1
        return f"{own(self.count)} said {self.count % 7}."

    def keep(self, name: str, offset: float, turn: str, said: list[tuple[str, str]]) -> None:
        self.turns.setdefault(name, []).append((offset, turn, said))
        self.turns[name].sort(key=lambda kept: kept[:2])

    @rule(name=NAMES, role=st.sampled_from(["user", "assistant"]), count=st.integers(1, 30))
    def add(self, name: str, role: str, count: int) -> None:
        thread = self.alice.thread(name)
        for _ in range(count):
            text = self.word()
            self.clock.advance(timedelta(seconds=30))
            try:
                ref = thread.add(role, text)
            except Conflict:
                assert name in self.archived
                return
            assert name not in self.archived
            offset = (self.clock.at - NOW).total_seconds()
            self.keep(name, offset, self.alice.conv.parse(ref).turn, [(role, text)])
            self.threads.add(name)

    @rule(name=NAMES, back=st.integers(0, 2000), said=st.lists(st.sampled_from(["user", "assistant"]), max_size=4))
    def record_a_turn(self, name: str, back: int, said: list[str]) -> None:
        """A turn of the record, perhaps an old one, perhaps without words."""
        at = self.clock.at - timedelta(seconds=back)
        messages = [(role, self.word()) for role in said if role == "user"]
        with self.alice.turn(name, started=at) as turn:
            for _, text in messages:
                turn.prompt(text, at=at)
            if "assistant" in said:
                messages.append(("assistant", self.word()))
                turn.answer(messages[-1][1], at=at)
        self.keep(name, (at - NOW).total_seconds(), turn.id, messages)

    @rule(name=NAMES, place=st.integers(0, 200))
    def forget_a_turn(self, name: str, place: int) -> None:
        turns = self.turns.get(name)
        if turns:
            _, turn, said = turns.pop(place % len(turns))
            self.forgotten += [text for _, text in said]
            assert self.alice.forget(name, turn).stores["turns"] == 1
            if not turns:
                del self.turns[name]

    @rule(name=NAMES)
    def forget_all(self, name: str) -> None:
        self.forgotten += [text for _, _, said in self.turns.pop(name, []) for _, text in said]
        self.alice.forget(name)
        self.threads.discard(name)
        self.archived.discard(name)

    @rule(name=NAMES, window=WINDOWS)
    def maintain(self, name: str, window: int) -> None:
        try:
            self.alice.thread(name).maintain(window)
        except NotFound:
            assert not self.known(name)
        else:
            assert self.known(name)
            self.threads.add(name)

    @precondition(lambda self: self.turns or self.threads)
    @rule(name=NAMES, archive=st.booleans())
    def archive_or_reopen(self, name: str, archive: bool) -> None:
        thread = self.alice.thread(name)
        try:
            status = (thread.archive() if archive else thread.reopen()).status
        except NotFound:
            assert not self.known(name)
            return
        assert status == ("archived" if archive else "active")
        self.threads.add(name)
        (self.archived.add if archive else self.archived.discard)(name)

    def known(self, name: str) -> bool:
        return name in self.turns or name in self.threads

    @rule(name=NAMES, window=WINDOWS)
    def read(self, name: str, window: int) -> None:
        try:
            context = self.alice.thread(name).context(window)
        except NotFound:
            assert not self.known(name)
            return
        assert self.known(name)
        said = [message for _, _, messages in self.turns.get(name, []) for message in messages]
        assert [(m.role, m.text) for m in context.messages] == said[-window:]
        assert context.summarised == max(0, len(said) - window)
        assert context.status == ("archived" if name in self.archived else "active")
        assert count_tokens(context.summary) <= BUDGET
        before = {f"{role}: {text}" for role, text in said[:-window]}
        assert set(filter(None, context.summary.split("\n"))) <= before
        assert bool(context.summary) == bool(before)
        info = self.alice.thread(name).retrieve()
        assert (info.messages, info.turns) == (len(said), len(self.turns.get(name, [])))

    @invariant()
    def the_list_has_what_was_made(self) -> None:
        assert {entry.name for entry in self.alice.threads(limit=10)} == self.threads - self.archived
        listed = {(entry.name, entry.status) for entry in self.alice.threads(limit=10, archived=True)}
        assert listed == {(name, "archived" if name in self.archived else "active") for name in self.threads}

    def teardown(self) -> None:
        self.db.close()


class ThreadsInFiles(Threads):
    """The same over SQLite."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.store = self.folder.name
        super().__init__()

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


TestThreads = Threads.TestCase
TestThreads.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
TestThreadsInFiles = ThreadsInFiles.TestCase
TestThreadsInFiles.settings = settings(max_examples=8, stateful_step_count=25, deadline=None)

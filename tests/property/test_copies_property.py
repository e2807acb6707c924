"""A store after any calls, copied to another kind, cannot be told from its copy; copying again adds nothing."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from conftest import BACKENDS, FAST_FOLDER, Address
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from threefold.backends.opening import open_backend
from threefold.errors import ThreefoldError
from threefold.model.clean import storable
from threefold.model.query import LISTS
from threefold.model.scope import Scope
from threefold.model.turn import Turn
from threefold.testing.contract import Desk
from threefold.testing.fakes import HashEmbedder
from threefold.testing.strategies import texts, turns
from threefold.transfer import Place, compare, copy

MODEL = HashEmbedder(16)
SCOPES = [Scope("a"), Scope("a%"), Scope("a", "t"), Scope("a", app="x", agent="g"), Scope("a", app="y")]
CONVERSATIONS, TURNS = ["c", "c%", "cc"], ["1", "2", "_"]
scopes, conversations, names = st.sampled_from(SCOPES), st.sampled_from(CONVERSATIONS), st.sampled_from(TURNS)
ttls = st.sampled_from([None, None, timedelta(hours=1), timedelta(days=3)])


class Copies(RuleBasedStateMachine):
    """`source` lives through the calls; `partial` is a copy that was made on the way and is resumed at the end."""

    @initialize(kinds=st.permutations(BACKENDS))
    def open(self, kinds: list[str]) -> None:
        self.folder = TemporaryDirectory(dir=FAST_FOLDER)
        self.addresses: list[Address] = []
        self.kinds = kinds
        self.source, self.partial = self.fresh(kinds[0]), self.fresh(kinds[1])

    def fresh(self, kind: str) -> Desk:
        self.addresses.append(Address(kind, Path(self.folder.name) / str(len(self.addresses))))
        return Desk(*open_backend(self.addresses[-1].name, durable=False))

    def attempt(self, call: Any) -> None:
        with suppress(ThreefoldError):
            call()

    @rule(turn=turns(conversations, names), scope=scopes, ttl=ttls, rich=st.booleans())
    def record(self, turn: Turn, scope: Scope, ttl: Any, rich: bool) -> None:
        self.attempt(lambda: self.source.record(turn, scope, ttl, rich))

    @rule(c=conversations, t=names, scope=scopes, given=st.sampled_from(["ok", "not_ok", None]), by=st.booleans())
    def feedback(self, c: str, t: str, scope: Scope, given: Any, by: bool) -> None:
        more = {} if given is None else {"origin": "machine" if by else "user"}
        self.attempt(lambda: self.source.react(c, t, given, scope, **more))

    @rule(scope=scopes, c=conversations, t=st.none() | names)
    def purge(self, scope: Scope, c: str, t: Any) -> None:
        self.attempt(lambda: self.source.purge(c, t, scope))

    @rule(hours=st.sampled_from([1, 30]))
    def expire(self, hours: int) -> None:
        self.source.now += timedelta(hours=hours)
        self.source.backend.expire(self.source.now)

    @rule(limit=st.sampled_from([1, 1000]))
    def embed(self, limit: int) -> None:
        self.source.embed(MODEL, limit)

    @rule()
    def copy_part(self) -> None:
        self.attempt(lambda: copy(place(self.source), place(self.partial), self.source.now))

    @rule(text=texts())
    def copies_are_alike(self, text: str) -> None:
        before = contents(self.source)
        for kind in self.kinds:
            target = self.fresh(kind)
            copied = copy(place(self.source), place(target), self.source.now)
            assert copied.lost == ()
            self.alike(target, text)
            again = copy(place(self.source), place(target), self.source.now)
            assert (again.turns, again.blobs, again.unchanged) == (0, 0, copied.turns)
            problems = target.backend.state(target.now, check=True).problems
            assert all("time to live" in problem for problem in problems)
            target.close()
        assert contents(self.source) == before

    def alike(self, target: Desk, text: str) -> None:
        target.now = self.source.now
        assert contents(target) == contents(self.source)
        compared = compare(place(self.source), place(target), self.source.now, MODEL, deep=True, questions=5)
        assert compared.differences == ()
        for scope in SCOPES:
            answers, near = [], []
            for desk in (self.source, target):
                found = desk.ask(storable(text), *LISTS, scope=scope, depth=10_000, embedder=MODEL)
                lists = {name: {found.rows[i].key for i, _ in found.lists[name]} for name in ("lexical", "trigram")}
                semantic = {found.rows[i].key: score for i, score in found.lists["semantic"]}
                answers.append((lists, dict(found.corrections), found.warnings))
                near.append(semantic)
            assert answers[0] == answers[1]
            assert near[0] == pytest.approx(near[1], abs=1e-4)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.source.close()
            self.partial.close()
            for address in self.addresses:
                address.give_back()
            self.folder.cleanup()


def place(desk: Desk) -> Place:
    return Place(desk.backend, desk.blobs)


def contents(desk: Desk) -> dict[Scope, Any]:
    """Everything that the ports say of every owner."""
    found = {}
    for scope in sorted(desk.backend.scopes(), key=repr):
        turns = desk.backend.moved(scope, desk.backend.turn_keys(scope))
        vectors = [{row: vector.tolist() for row, vector in turn.vectors.items()} for turn in turns]
        stored = [desk.turn(t.record.conversation, t.record.turn, scope) for t in turns]
        listed = desk.backend.conversations(scope, desk.now, 1000)
        bytes_ = sorted({file.digest for turn in turns for file in turn.record.files})
        assert all(desk.blobs.get(scope, digest) is not None for digest in bytes_)
        found[scope] = turns, vectors, stored, listed, dict(desk.backend.tombstones(scope)), desk.catalog(scope=scope)
    return found


TestCopies = Copies.TestCase
TestCopies.settings = settings(max_examples=max(15, settings().max_examples // 3))

"""Durable back ends against the one in memory, the plainest statement: any series of calls, the same answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from conftest import FAST_FOLDER, Address
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from threefold.backends.opening import open_backend
from threefold.errors import ThreefoldError
from threefold.jobs.collect import collect_blobs
from threefold.model.clean import storable
from threefold.model.codec import digest_of
from threefold.model.commit import RecordTurn
from threefold.model.query import LISTS
from threefold.model.record import StoredTurn
from threefold.model.retention import Receipt, Target
from threefold.model.rows import RowKey
from threefold.model.scope import Scope
from threefold.model.times import now
from threefold.model.turn import Turn
from threefold.testing.contract import Desk
from threefold.testing.contract.desk import NOW
from threefold.testing.fakes import HashEmbedder
from threefold.testing.strategies import texts, turns

MODEL = HashEmbedder(16)
SCOPES = [Scope("a"), Scope("a%"), Scope("a", "t"), Scope("a", app="x", agent="g"), Scope("a", app="y")]
CONVERSATIONS, TURNS = ["c", "c%", "cc"], ["1", "2", "_"]
scopes, conversations, names = st.sampled_from(SCOPES), st.sampled_from(CONVERSATIONS), st.sampled_from(TURNS)
ttls = st.sampled_from([None, None, timedelta(hours=1), timedelta(days=3)])
marks = st.lists(st.sampled_from(["x", "y", "z"]), unique=True).map(sorted)


class BackendsAgree(RuleBasedStateMachine):
    backend: str

    @initialize()
    def open(self) -> None:
        self.folder = TemporaryDirectory(dir=FAST_FOLDER)
        self.address = Address(self.backend, Path(self.folder.name))
        self.name = self.address.name
        self.plain = Desk(*open_backend(":memory:"))
        self.tested = Desk(*open_backend(self.name, durable=False))
        self.last: tuple[Turn, Scope, Any] | None = None

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.tested.close()
            self.address.give_back()
            self.folder.cleanup()

    def both(self, call: Callable[[Desk], Any]) -> Any:
        """The same call on both; the same answer, or an error of the same kind."""
        answers = []
        for desk in (self.plain, self.tested):
            try:
                answers.append(call(desk))
            except ThreefoldError as error:
                answers.append(type(error))
        assert answers[0] == answers[1]
        return answers[1]

    @rule(turn=turns(conversations, names), scope=scopes, ttl=ttls, rich=st.booleans())
    def record(self, turn: Turn, scope: Scope, ttl: Any, rich: bool) -> None:
        self.last = (turn, scope, ttl)
        self.both(lambda desk: desk.record(turn, scope, ttl, rich))

    @rule(rich=st.booleans())
    def record_again(self, rich: bool) -> None:
        if self.last is not None:
            turn, scope, ttl = self.last
            self.both(lambda desk: desk.record(turn, scope, ttl, rich))

    @rule(one=turns(conversations, names), other=turns(conversations, names), scope=scopes)
    def record_two_at_once(self, one: Turn, other: Turn, scope: Scope) -> None:
        self.both(lambda desk: desk.commit(*(RecordTurn(desk.fold(turn, scope)) for turn in (one, other)), scope=scope))

    @rule(turn=turns(conversations, names), scope=scopes, ttl=ttls, marks=marks)
    def change(self, turn: Turn, scope: Scope, ttl: Any, marks: list[str]) -> None:
        self.last = (turn, scope, ttl)

        def changed(desk: Desk) -> Any:
            record = desk.fold(turn, scope, ttl)
            record = replace(record, labels=tuple(marks), digest=digest_of([record.digest, marks]))
            stored = desk.turn(turn.conversation, turn.id, scope)
            replaces = stored.record.digest if isinstance(stored, StoredTurn) else ""
            return desk.commit(RecordTurn(record, replaces=replaces), scope=scope)

        self.both(changed)

    @rule(kept=st.integers(0, 2), other=st.none() | turns(conversations, names), ttl=ttls, marks=marks)
    def change_in_part(self, kept: int, other: Turn | None, ttl: Any, marks: list[str]) -> None:
        if self.last is not None:
            turn, scope, _ = self.last
            said = turn.submissions[:kept] + (() if other is None else other.submissions)
            self.change(replace(turn, submissions=said), scope, ttl, marks)

    @rule(c=conversations, t=names, scope=scopes, given=st.sampled_from(["ok", "not_ok", None]), by=st.booleans())
    def feedback(self, c: str, t: str, scope: Scope, given: Any, by: bool) -> None:
        more = {} if given is None else {"origin": "machine" if by else "user"}
        self.both(lambda desk: desk.react(c, t, given, scope, **more))

    @rule(scope=scopes, c=st.none() | conversations, t=st.none() | names, tenant=st.integers(0, 15))
    def purge(self, scope: Scope, c: Any, t: Any, tenant: int) -> None:
        target = Target(tenant=True) if tenant == 0 else Target(c, t if c is not None else None)

        def counted(desk: Desk) -> Any:
            receipt: Receipt = desk.backend.purge(scope, target)
            stores = receipt.stores
            counts = {name: stores.get(name, 0) for name in ("turns", "rows", "files", "vectors")}
            return receipt.kind, counts, receipt.leftovers

        self.both(counted)

    @rule(hours=st.sampled_from([1, 30, 100]))
    def time_passes(self, hours: int) -> None:
        for desk in (self.plain, self.tested):
            desk.now += timedelta(hours=hours)

    @rule()
    def expire(self) -> None:
        self.both(lambda desk: desk.backend.expire(desk.now))
        # Bytes that nothing refers to may wait for this moment.
        self.both(lambda desk: {s: sorted(d for d, _ in desk.blobs.digests(s)) for s in SCOPES[:3]})

    @rule()
    def collect(self) -> None:
        for desk in (self.plain, self.tested):
            collect_blobs(desk.backend, desk.blobs, now() + timedelta(hours=1), timedelta(0))

    @rule()
    def embed(self) -> None:
        self.both(lambda desk: desk.embed(MODEL))

    @rule()
    def fail_to_embed(self) -> None:
        def failing(desk: Desk) -> Any:
            rows = desk.backend.claim(1000, desk.now, 60)
            desk.backend.embedding_failed(rows, "why", desk.now)
            return {(row.scope, row.key, row.text, row.attempts) for row in rows}

        self.both(failing)

    @rule()
    def reset_vectors(self) -> None:
        self.both(lambda desk: desk.backend.reset_vectors())

    @rule()
    def reindex(self) -> None:
        self.both(lambda desk: desk.backend.reindex())

    @rule()
    def reopen(self) -> None:
        self.tested.close()
        self.tested.backend, self.tested.blobs = open_backend(self.name, durable=False)

    @rule(text=texts(), scope=scopes, c=st.none() | conversations, data=st.data())
    def search(self, text: str, scope: Scope, c: Any, data: st.DataObject) -> None:
        where: dict[str, Any] = {
            "conversation": c,
            "roles": data.draw(st.sampled_from([None, None, ("user",), ("note", "assistant"), ()])),
            "agent": data.draw(st.sampled_from([None, None, None, "g"])),
            "since": data.draw(st.sampled_from([None, None, NOW])),
            "labels": data.draw(st.sampled_from([(), (), (("x",),), (("x", "y"), ("z",))])),
            "until": data.draw(st.sampled_from([None, None, NOW + timedelta(hours=9)])),
        }

        def found(desk: Desk) -> Any:
            asked = storable(text)
            answer = desk.ask(asked, *LISTS, scope=scope, depth=10_000, embedder=MODEL, **where)
            lists = {}
            for name in ("lexical", "trigram"):
                lists[name] = {answer.rows[i].key for i, _ in answer.lists[name]}
            # Whole candidates: author, whether it asks, which words of the question it has.
            places = {row.key: row for row in answer.rows if row.key in lists["lexical"] | lists["trigram"]}
            rarity = [round(each, 6) for each in answer.rarity] if places else None
            return lists, places, rarity, dict(answer.corrections), len(answer.warnings)

        self.both(found)

    @rule(scope=scopes, c=st.none() | conversations, newest=st.booleans(), data=st.data())
    def catalog(self, scope: Scope, c: Any, newest: bool, data: st.DataObject) -> None:
        more: dict[str, Any] = {"newest_first": newest, "limit": data.draw(st.sampled_from([1, 3, 100]))}
        if c is not None:
            more["ordinal"] = data.draw(st.sampled_from([None, None, 1, 2, -1, -3]))
        more["since"] = data.draw(st.sampled_from([None, None, NOW]))
        found = self.both(lambda desk: desk.catalog(c, scope, **more))
        if found and more.get("ordinal") is None:
            after = (found[-1].started, found[-1].conversation, found[-1].turn)
            self.both(lambda desk: desk.catalog(c, scope, after=after, **more))

    @rule(scope=scopes, limit=st.sampled_from([1, 2, 100]))
    def conversations_listed(self, scope: Scope, limit: int) -> None:
        found = self.both(lambda desk: desk.backend.conversations(scope, desk.now, limit))
        if found:
            after = (found[-1].last_activity, found[-1].id)
            self.both(lambda desk: desk.backend.conversations(scope, desk.now, limit, after))

    @rule(scope=scopes, c=conversations, t=names, around=st.integers(0, 2))
    def rows(self, scope: Scope, c: str, t: str, around: int) -> None:
        self.both(lambda desk: desk.backend.rows(scope, [RowKey(c, t, 0)], desk.now, around))

    @rule(scope=scopes, keys=st.lists(st.tuples(conversations, names, st.integers(0, 3)), max_size=4))
    def rows_alone(self, scope: Scope, keys: list[tuple[str, str, int]]) -> None:
        self.both(lambda desk: desk.backend.rows(scope, [RowKey(*key) for key in keys], desk.now, whole=False))

    @rule(scope=scopes, keys=st.lists(st.tuples(conversations, names), max_size=4), with_rows=st.booleans())
    def records(self, scope: Scope, keys: list[tuple[str, str]], with_rows: bool) -> None:
        self.both(lambda desk: desk.backend.records(scope, keys, desk.now, with_rows))

    @invariant()
    def every_turn_is_the_same(self) -> None:
        if not hasattr(self, "plain"):
            return
        for scope in SCOPES:
            for c in CONVERSATIONS:
                for t in TURNS:
                    found = self.both(lambda desk, s=scope, c=c, t=t: desk.turn(c, t, s))
                    if isinstance(found, StoredTurn):
                        assert all(self.tested.blobs.has(scope, file.digest) for file in found.record.files)
        self.both(lambda desk: sorted(map(repr, desk.backend.scopes())))

        def counted(desk: Desk) -> Any:
            state = desk.backend.state(desk.now)
            counts = {n: state.counts[n] for n in ("owners", "conversations", "turns", "rows", "vectors")}
            return counts, state.pending, state.failed, state.embedder, state.dimensions

        self.both(counted)


def against_memory(name: str) -> type:
    """The test case of one back end."""
    case: type = type("Agree", (BackendsAgree,), {"backend": name}).TestCase
    case.settings = settings(max_examples=max(15, settings().max_examples // 3))
    return case


TestSqliteAgrees = against_memory("sqlite")
TestPostgresAgrees = against_memory("postgres")

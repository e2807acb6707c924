"""Isolation: two identities that look alike share nothing, in any method."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from threefold.errors import NotFound, ThreefoldError
from threefold.model.scope import Scope
from threefold.testing.contract.desk import NOW, Desk, full_turn, own, refused
from threefold.testing.contract.suite import Contract
from threefold.testing.fakes import HashEmbedder

ALIKE = (
    "foo", "foobar", "foo%", "foo_", "fo_", "%", "_", "*", "foo*", "FOO", "foo ", " foo", "foo.", "foo/bar", "foo/",
    "../foo", "foo\\", "foo:", "foo|", "foo'", 'foo"', "foo' OR '1'='1", 'foo" OR "x', "foo;--", "{foo}", "foo\n",
    "foo\u0301", "fo\u00f3", "foo\u200d", "\u202efoo", "foo\ufeff", "ｆｏｏ", "𝐟oo", "🕯️", "🕯", "1:foo", "ﱞ1:foo", "c1",
)  # fmt: skip


class IsolationContract(Contract):
    """The scope is part of every stored key and of every statement."""

    @pytest.mark.capability("isolation")
    def test_ids_that_look_alike_stay_apart(self, desk: Desk) -> None:
        """As users: each finds exactly its own turn, and removing one removes no other."""
        self.check([Scope(name) for name in ALIKE], desk)

    @pytest.mark.capability("isolation")
    def test_tenants_that_look_alike_stay_apart(self, desk: Desk) -> None:
        """Also where the tenant of one and the user of another run together."""
        alike = [Scope("foo", name) for name in ALIKE] + [Scope("oo", "xf"), Scope("foo", "x"), Scope("o", "xfo")]
        self.check(alike, desk)

    @pytest.mark.capability("isolation")
    def test_conversations_and_turns_that_look_alike_stay_apart(self, desk: Desk) -> None:
        """Within one owner: reading, filtering, feedback and removing mean one exactly."""
        for name in ALIKE:
            desk.say(name, name, "word")
            desk.say("same", name, "word")
        for i, name in enumerate(ALIKE):
            assert desk.turns("word", conversation=name) == {(name, name)}
            assert [e.turn for e in desk.catalog(name)] == [name]
            desk.react("same", name, "ok", text=f"about {i}")
        for i, name in enumerate(ALIKE):
            assert [f.text for f in desk.stored("same", name).feedback] == [f"about {i}"]
        for gone, name in enumerate(ALIKE, 1):
            desk.purge(name)
            desk.purge("same", name)
            assert len(desk.conversations()) == len(ALIKE) - gone + (gone < len(ALIKE))
            assert len(desk.find("word", depth=1000)) == 2 * (len(ALIKE) - gone)

    def check(self, scopes: Sequence[Scope], desk: Desk) -> None:
        """Record the same under every scope, then compare every read of each with what it should be alone."""
        model = HashEmbedder()
        for i, scope in enumerate(scopes):
            desk.record(full_turn("trip", "1", f"common {own(i)}"), scope)
            desk.react("trip", "1", "ok", scope, text=own(i))
        while desk.embed(model):
            pass
        for i, scope in enumerate(scopes):
            others = own((i + 1) % len(scopes))
            for name in ("lexical", "trigram", "semantic"):
                found = desk.ask(f"asked common {own(i)}", name, scope=scope, embedder=model)
                assert 0 < len(found.rows) <= 6, (scope, name)
                assert name == "semantic" or len(found.rows) == 6, (scope, name)
            assert desk.find(others, scope=scope) == []
            stored = desk.stored("trip", "1", scope)
            assert stored.record.rows[0].text == f"asked common {own(i)}"
            assert [f.text for f in stored.feedback] == [own(i)]
            assert len(list(desk.blobs.digests(scope))) == 2
        for i, scope in enumerate(scopes):
            desk.purge("trip", "1", scope=scope) if i % 2 else desk.purge(scope=scope)
            assert not desk.ask("common", "lexical", "semantic", scope=scope, embedder=model).rows
            for other in scopes[i + 1 :]:
                assert len(desk.find("common", scope=other)) == 6, (scope, other)
                assert len(list(desk.blobs.digests(other))) == 2

    @pytest.mark.capability("isolation.reads-make-nothing")
    def test_reads_and_refused_writes_make_nothing(self, desk: Desk) -> None:
        """An unknown scope is nothing, before and after it was asked for."""
        desk.say("trip", "1", "word")
        nobody = Scope("nobody", app="x")
        for answer in self.every_read(desk, nobody):
            assert not answer
        with refused(NotFound):
            desk.react("trip", "1", "ok", nobody)
        desk.purge(scope=nobody)
        desk.purge("trip", scope=nobody)
        desk.commit(scope=nobody)
        assert list(desk.backend.scopes()) == [Scope("alice")]
        assert desk.backend.state(NOW).counts["owners"] == 1

    def every_read(self, desk: Desk, scope: Scope) -> Iterator[Any]:
        """What every reading method says of a scope, in a shape that is empty where there is nothing."""
        model = HashEmbedder()
        for name in ("lexical", "trigram", "semantic"):
            yield desk.ask("word", name, scope=scope, embedder=model).rows
        yield desk.rows(("trip", "1", 0), scope=scope, around=3)
        yield desk.turn("trip", "1", scope)
        yield desk.catalog(scope=scope)
        yield desk.catalog("trip", scope=scope)
        yield desk.conversations(scope)
        yield list(desk.blobs.digests(scope))

    @pytest.mark.capability("isolation")
    def test_no_id_is_everyone(self, desk: Desk) -> None:
        """Empty, blank, NUL and surrogates are refused where a scope is made."""
        for bad, part in itertools.product(
            ["", " ", "\t\n", "a\x00b", "\ud800", "x" * 1025], ["user", "tenant", "app"]
        ):
            with refused(ThreefoldError):
                Scope(**({"user": "alice"} | {part: bad}))
        assert list(desk.backend.scopes()) == []

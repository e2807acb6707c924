"""The operator's side: the queue for vectors, changes of the model, counts, repair."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from threefold.errors import Conflict, Unavailable
from threefold.model.codec import digest_of
from threefold.model.commit import RecordTurn
from threefold.model.scope import Scope
from threefold.testing.contract.desk import ALICE, NOW, Desk, full_turn, make_turn, own, refused
from threefold.testing.contract.suite import Contract
from threefold.testing.fakes import HashEmbedder

SECOND = timedelta(seconds=1)
MODEL = HashEmbedder()


class UpkeepContract(Contract):
    """`Upkeep`."""

    @pytest.mark.capability("upkeep.claims")
    def test_rows_are_claimed_once_until_the_lease_ends(self, desk: Desk) -> None:
        """No two workers get a row at the same time; a worker that died loses it to another."""
        for i in range(5):
            desk.record(make_turn("trip", f"{i}", f"text {i}", author="Ann"))
        first = desk.backend.claim(3, NOW, 60)
        second = desk.backend.claim(10, NOW, 60)
        assert (len(first), len(second)) == (3, 2)
        assert {row.text for row in (*first, *second)} == {f"Ann: text {i}" for i in range(5)}
        assert {row.scope for row in first} == {ALICE}
        assert desk.backend.claim(10, NOW + 59 * SECOND, 60) == ()
        assert len(desk.backend.claim(10, NOW + 60 * SECOND, 60)) == 5

    @pytest.mark.capability("upkeep.claims")
    def test_a_vector_is_stored_once(self, desk: Desk) -> None:
        """What no longer waits is not stored: done by another worker, purged, replaced."""
        for i in range(3):
            desk.say("trip", f"{i}", f"text {i}")
        rows = desk.backend.claim(10, NOW, 60)
        done = list(zip(rows, MODEL.embed([row.text for row in rows]), strict=True))
        purged = next(row.key.turn for row in rows)
        desk.purge("trip", purged)
        assert desk.backend.put_vectors(MODEL.name, done) == 2
        assert desk.backend.put_vectors(MODEL.name, done) == 0
        assert desk.backend.put_vectors(MODEL.name, []) == 0
        state = desk.backend.state(NOW)
        assert (state.pending, state.counts["vectors"]) == (0, 2)
        assert (state.embedder, state.dimensions) == (MODEL.name, MODEL.dimensions)

    @pytest.mark.capability("upkeep.stale-claims")
    def test_a_vector_of_a_replaced_text_is_not_taken_for_the_new_one(self, desk: Desk) -> None:
        """The turn was recorded anew, fuller, while its old text was being embedded."""
        desk.record(make_turn("trip", "1", "same", "river boat"))
        rows = desk.backend.claim(10, NOW, 60)
        desk.record(make_turn("trip", "1", "same", "mountain hut", ended=NOW + 60 * SECOND))
        done = list(zip(rows, MODEL.embed([row.text for row in rows]), strict=True))
        desk.backend.put_vectors(MODEL.name, done)
        assert desk.find("river boat", "semantic", embedder=MODEL) == []
        desk.now += 3600 * SECOND
        desk.embed(MODEL)
        assert desk.find("mountain hut", "semantic", embedder=MODEL) == [("trip", "1", 1)]
        assert desk.backend.state(NOW).pending == 0

    @pytest.mark.capability("upkeep.failures")
    def test_failures_are_seen_and_tried_again(self, desk: Desk) -> None:
        """Visible in the state until it worked; the row says how often it failed; lexical search goes on."""
        desk.say("trip", "1", "word")
        (row,) = desk.backend.claim(1, NOW, 60)
        assert row.attempts == 0
        desk.backend.embedding_failed([row], "no model", NOW + 5 * SECOND)
        state = desk.backend.state(NOW)
        assert (state.pending, state.failed, state.last_failure) == (1, 1, "no model")
        assert desk.backend.claim(1, NOW + 4 * SECOND, 60) == ()
        (again,) = desk.backend.claim(1, NOW + 5 * SECOND, 60)
        assert again.attempts == 1
        assert desk.turns("word") == {("trip", "1")}
        assert desk.backend.put_vectors(MODEL.name, [(again, MODEL.embed([again.text])[0])]) == 1
        state = desk.backend.state(NOW)
        assert (state.pending, state.failed, state.last_failure) == (0, 0, None)
        desk.backend.embedding_failed([again], "too late", NOW)
        assert desk.backend.state(NOW).failed == 0

    @pytest.mark.capability("upkeep.reembed")
    def test_all_vectors_can_be_dropped_and_made_anew(self, desk: Desk) -> None:
        """Then another model may fill them; every row waits again, also those that were claimed or had failed."""
        for i in range(3):
            desk.say("trip", f"{i}", f"text {i}")
        desk.embed(MODEL, 2)
        desk.backend.claim(1, NOW, 60)
        assert desk.backend.reset_vectors() == 3
        state = desk.backend.state(NOW)
        assert (state.pending, state.embedder, state.dimensions, state.counts["vectors"]) == (3, None, None, 0)
        other = HashEmbedder(32, "other-2")
        assert desk.find("text", "semantic", embedder=MODEL) == []
        assert desk.embed(other) == 3
        assert len(desk.find("text", "semantic", embedder=other)) == 3

    @pytest.mark.capability("upkeep.other-model")
    @pytest.mark.parametrize("other", [HashEmbedder(64, "other-1"), HashEmbedder(32, MODEL.name)])
    def test_vectors_of_two_models_are_never_mixed(self, desk: Desk, other: HashEmbedder) -> None:
        """Another name or another number of dimensions: refused whole, said in a warning, lexical goes on."""
        desk.say("trip", "1", "river boat")
        desk.embed(MODEL)
        desk.say("trip", "2", "river boat")
        with refused(Conflict):
            desk.embed(other)
        found = desk.ask("river boat", "lexical", "semantic", embedder=other)
        assert not found.lists["semantic"]
        assert len(found.lists["lexical"]) == 2
        assert len(found.warnings) == 1
        assert MODEL.name in found.warnings[0]
        assert "reembed" in found.warnings[0]
        state = desk.backend.state(NOW)
        assert (state.counts["vectors"], state.embedder, state.dimensions) == (1, MODEL.name, MODEL.dimensions)
        desk.now += 3600 * SECOND
        assert desk.embed(MODEL) == 1
        assert desk.ask("river boat", "semantic", embedder=MODEL).warnings == ()

    @pytest.mark.capability("upkeep.scopes")
    def test_every_owner_is_named(self, desk: Desk) -> None:
        """By tenant and user, without the app or agent that recorded."""
        for scope in (ALICE, Scope("alice", "b"), Scope("b", app="x", agent="y")):
            desk.say("trip", "1", "word", scope)
        assert set(desk.backend.scopes()) == {ALICE, Scope("alice", "b"), Scope("b")}

    @pytest.mark.capability("upkeep.state")
    def test_the_state_counts_what_is_there(self, desk: Desk) -> None:
        """And finds nothing wrong in a store that is right."""
        desk.record(full_turn("trip", "1", "x"))
        desk.say("work", "1", "y", Scope("bob"))
        desk.embed(MODEL, 2)
        state = desk.backend.state(NOW, check=True)
        counts = {name: state.counts[name] for name in ("owners", "conversations", "turns", "rows", "vectors")}
        assert counts == {"owners": 2, "conversations": 2, "turns": 2, "rows": 7, "vectors": 2}
        assert (state.pending, state.failed, state.last_failure, state.problems) == (5, 0, None, ())

    @pytest.mark.capability("upkeep.reindex")
    def test_indexes_can_be_built_anew_from_the_rows(self, desk: Desk) -> None:
        """All rows are counted, found again, and keep their vectors."""
        for i in range(20):
            desk.record(full_turn("trip", f"{i}", own(i)))
        desk.embed(MODEL, 60)
        assert desk.backend.reindex() == 120
        assert all(len(desk.find(own(i))) == 6 for i in range(20))
        assert desk.find(own(1)[1:], "trigram")
        state = desk.backend.state(NOW, check=True)
        assert (state.counts["vectors"], state.pending, state.problems) == (60, 60, ())
        desk.purge("trip", "3")
        assert desk.find(own(3)) == []
        assert desk.backend.state(NOW, check=True).problems == ()

    @pytest.mark.capability("upkeep.scrub")
    def test_scrubbing_changes_nothing_that_is_there(self, desk: Desk) -> None:
        """It may be done at any time; what it leaves it says."""
        desk.record(full_turn("trip", "1", "x"))
        desk.record(full_turn("trip", "2", "y"))
        desk.embed(MODEL)
        desk.purge("trip", "1")
        before = desk.turn("trip", "2")
        assert desk.backend.scrub() == desk.backend.scrub() == ()
        assert desk.turn("trip", "2") == before
        assert desk.turns("y") == desk.turns("y", "semantic", embedder=MODEL) == {("trip", "2")}
        assert desk.backend.state(NOW, check=True).problems == ()

    @pytest.mark.capability("upkeep.close")
    def test_a_closed_store_says_so(self, desk: Desk) -> None:
        """Closing twice is no error; using it afterwards is `Unavailable`."""
        desk.say("trip", "1", "word")
        desk.close()
        desk.close()
        uses: tuple[Callable[[], object], ...] = (
            lambda: desk.say("trip", "2", "word"),
            lambda: desk.find("word"),
            lambda: desk.turn("trip", "1"),
            desk.catalog,
            desk.conversations,
            desk.purge,
            lambda: desk.backend.claim(1, NOW, 1),
            lambda: desk.backend.state(NOW),
            lambda: desk.backend.expire(NOW),
            desk.backend.reindex,
            desk.backend.reset_vectors,
            lambda: list(desk.backend.scopes()),
            lambda: desk.backend.collect(ALICE, (), NOW),
            lambda: desk.backend.collect_strays({}, NOW),
            lambda: desk.backend.turn_keys(ALICE),
            lambda: desk.backend.receive(ALICE, (), None),
            desk.backend.scrub,
        )
        for use in uses:
            with refused(Unavailable):
                use()

    @pytest.mark.capability("upkeep.labelled")
    def test_turns_with_a_label_are_found_over_all_owners_by_their_start(self, desk: Desk) -> None:
        """Of one realm only, those that start before a moment, unexpired ones; what loses its label is not found."""
        places = [(ALICE, "b"), (replace(ALICE, tenant="acme"), "c"), (Scope("böb"), "a")]
        for number, (owner, turn) in enumerate(places):
            record = desk.fold(make_turn("trip", turn, "x", at=NOW + number * SECOND), replace(owner, realm="work"))
            labels = ("ready", "other")[number % 2 :]
            desk.commit(RecordTurn(replace(record, labels=labels)), scope=replace(owner, realm="work"))
        elsewhere = desk.fold(make_turn("trip", "z", "x"))
        desk.commit(RecordTurn(replace(elsewhere, labels=("ready",))))

        def found(label: str = "ready", **more: Any) -> list[tuple[str, str, str]]:
            asked = {"now": NOW, "before": None, "limit": 10, **more}
            return [(f"{s.tenant}/{s.user}", c, t) for s, c, t in desk.backend.labelled("work", label, **asked)]

        alice, acme, bob = (f"{owner.tenant}/{owner.user}" for owner, _ in places)
        assert found() == [(alice, "trip", "b"), (bob, "trip", "a")]
        assert found("other") == [(alice, "trip", "b"), (acme, "trip", "c"), (bob, "trip", "a")]
        assert found("other", limit=2) == [(alice, "trip", "b"), (acme, "trip", "c")]
        assert found("other", before=NOW + SECOND) == [(alice, "trip", "b")]
        assert found("rea%") == []
        mine = replace(ALICE, realm="work")
        stored = desk.stored("trip", "b", mine).record
        changed = replace(stored, labels=("other",), digest=digest_of("changed"), expires=NOW + 5 * SECOND)
        desk.commit(RecordTurn(changed, stored.digest), scope=mine)
        assert found() == [(bob, "trip", "a")]
        assert found("other", now=NOW + 5 * SECOND) == [(acme, "trip", "c"), (bob, "trip", "a")]

"""Moving: turns whole out of a store and into another, with all that the store knows beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from threefold.backends.blobs.memory import MemoryBlobs
from threefold.backends.memory import MemoryStore
from threefold.errors import Conflict
from threefold.model.moving import MovedTurn
from threefold.model.query import LISTS
from threefold.model.rows import Row
from threefold.model.scope import Scope
from threefold.testing.contract.desk import ALICE, NOW, Desk, full_turn, listed, make_turn, own, refused
from threefold.testing.contract.suite import Contract
from threefold.testing.fakes import HashEmbedder
from threefold.text.terms import index_terms

MODEL = HashEmbedder()
BOB = Scope("bob", "other")
MINUTE = timedelta(minutes=1)


def memory() -> Desk:
    """A fresh memory store, which needs no place: the other end of a move."""
    return Desk(MemoryStore(blobs := MemoryBlobs()), blobs)


def terms(row: Row) -> Row:
    """The row as `receive` takes it."""
    return row._replace(terms=index_terms(f"{row.author}\n{row.text}" if row.author else row.text))


def floats(turn: MovedTurn) -> dict[int, list[float]]:
    """Its vectors as plain numbers."""
    return {seq: vector.tolist() for seq, vector in turn.vectors.items()}


def taken(desk: Desk, scope: Scope = ALICE) -> tuple[MovedTurn, ...]:
    """Everything of an owner, ready to be received."""
    turns = desk.backend.moved(scope, desk.backend.turn_keys(scope))
    return tuple(replace(t, record=replace(t.record, rows=tuple(map(terms, t.record.rows)))) for t in turns)


def move(source: Desk, target: Desk, scope: Scope = ALICE, model: str | None = MODEL.name) -> int:
    """Move everything of an owner; returns how many turns were new or replaced."""
    for turn in taken(source, scope):
        for file in turn.record.files:
            target.blobs.put(scope, source.blobs.get(scope, file.digest))
    count = target.backend.receive(scope, taken(source, scope), model)
    target.backend.bury(scope, source.backend.tombstones(scope))
    return count


class MovingContract(Contract):
    """`turn_keys`, `moved`, `receive`, `tombstones` and `bury`."""

    @pytest.fixture
    def other(self) -> Iterator[Desk]:
        """A store of another kind."""
        other = memory()
        yield other
        other.close()

    def fill(self, desk: Desk, scope: Scope = ALICE) -> None:
        """A history with everything that can be lost on the way."""
        for i in range(6):
            at = NOW + i * MINUTE
            desk.record(full_turn("trip", f"{i}", own(i), at), scope, ttl=None if i % 2 else timedelta(hours=i + 1))
        desk.record(make_turn("trip", "x", ["one", "two"], "three", author="Ann", title="Given"), scope, rich=True)
        desk.record(make_turn("empty", "1"), scope)
        desk.record(make_turn("app", "1", "of an app"), replace(scope, app="x", agent="g"))
        desk.record(make_turn("app", "2", "of no app"), scope)
        desk.react("trip", "1", "ok", scope, text="good")
        desk.react("trip", "1", "not_ok", scope, origin="machine")
        desk.embed(MODEL, 20)
        desk.purge("trip", "2", scope)
        desk.purge("app", "1", scope)
        desk.purge("trip", "x", scope)
        desk.record(make_turn("trip", "0", f"asked {own(0)}", "longer", NOW, ended=NOW + 9 * MINUTE), scope, rich=True)

    def same(self, one: Desk, other: Desk, scope: Scope = ALICE) -> None:
        """All that the ports say of an owner is the same."""
        left, right = taken(one, scope), taken(other, scope)
        assert left == right
        for a, b in zip(left, right, strict=True):
            assert {seq: v.tolist() for seq, v in a.vectors.items()} == {
                seq: v.tolist() for seq, v in b.vectors.items()
            }
            name = (a.record.conversation, a.record.turn)
            assert one.turn(*name, scope) == other.turn(*name, scope)
        assert one.backend.tombstones(scope) == other.backend.tombstones(scope)
        assert one.backend.conversations(scope, NOW, 99) == other.backend.conversations(scope, NOW, 99)
        assert one.catalog(scope=scope) == other.catalog(scope=scope)

    @pytest.mark.capability("move.keys")
    def test_keys_come_in_order_of_arrival_and_in_pages(self, desk: Desk) -> None:
        """A turn that was replaced stays in its place; another owner's are not among them."""
        for name in ("3", "1", "2"):
            desk.say("trip", name, f"text {name}")
        desk.say("trip", "9", "other", BOB)
        desk.record(make_turn("trip", "3", ["text 3", "more"], ended=NOW + MINUTE))
        desk.react("trip", "2", "ok")
        desk.embed(MODEL)
        keys = desk.backend.turn_keys(ALICE)
        assert [key.name for key in keys] == [("trip", "3"), ("trip", "1"), ("trip", "2")]
        assert [key.vectors for key in keys] == [2, 1, 1]
        assert [key.digest for key in keys] == [desk.stored("trip", key.turn).record.digest for key in keys]
        assert [[f.reaction for f in key.feedback] for key in keys] == [[], [], ["ok"]]
        paged = [desk.backend.turn_keys(ALICE, after, 1) for after in (0, keys[0].arrival, keys[1].arrival)]
        assert [key for page in paged for key in page] == list(keys)
        assert desk.backend.turn_keys(ALICE, keys[-1].arrival) == ()
        assert desk.backend.turn_keys(Scope("nobody")) == ()
        assert desk.backend.moved(Scope("nobody"), keys) == ()

    @pytest.mark.capability("move.turns")
    def test_turns_come_out_whole_and_go_in_whole(self, desk: Desk, other: Desk) -> None:
        """Log, rows, files, replay, feedback, title, app, expiry; into a store of another kind and back."""
        self.fill(desk)
        self.fill(desk, BOB)
        before = taken(desk)
        assert move(desk, other) == len(before)
        assert move(desk, other, BOB) == len(before)
        self.same(desk, other)
        self.same(desk, other, BOB)
        for turn in before:
            assert all(other.blobs.has(ALICE, file.digest) for file in turn.record.files)
        desk.purge()
        assert move(other, desk) == len(before)
        self.same(other, desk)
        self.same(other, desk, BOB)
        assert desk.backend.state(NOW, check=True).problems == ()

    @pytest.mark.capability("move.turns")
    def test_a_turn_that_went_meanwhile_is_left_out(self, desk: Desk) -> None:
        """Purged since its key was read; one that was replaced comes as it is now."""
        for name in ("1", "2", "3"):
            desk.say("trip", name, f"text {name}")
        keys = desk.backend.turn_keys(ALICE)
        desk.purge("trip", "1")
        desk.record(make_turn("trip", "2", ["text 2", "more"], ended=NOW + MINUTE))
        found = desk.backend.moved(ALICE, keys)
        assert [[row.text for row in turn.record.rows] for turn in found] == [["text 2", "more"], ["text 3"]]

    @pytest.mark.capability("move.turns")
    def test_expired_turns_move_too(self, desk: Desk, other: Desk) -> None:
        """As long as they are not swept, with their expiry."""
        desk.say("trip", "1", "word", ttl=MINUTE)
        assert move(desk, other) == 1
        other.now = NOW + timedelta(hours=1)
        assert other.turn("trip", "1") == "expired"
        assert other.backend.expire(other.now) == 1

    @pytest.mark.capability("move.search")
    def test_what_moved_is_found(self, desk: Desk, other: Desk) -> None:
        """By words, misspelt words and vectors; also with words that only the name of a speaker has."""
        self.fill(other)
        move(other, desk)
        for question in (own(3), f"asked {own(5)}", "answered", own(4)[1:], "one Ann", "of no app"):
            found = [side.ask(question, *LISTS, embedder=MODEL) for side in (desk, other)]
            for name in LISTS:
                assert sorted(listed(found[0], name)) == sorted(listed(found[1], name))
            assert {row.key: row for row in found[0].rows} == {row.key: row for row in found[1].rows}
        assert desk.find(own(2)) == []

    @pytest.mark.capability("move.vectors")
    def test_vectors_move_exactly_and_the_rest_waits(self, desk: Desk, other: Desk) -> None:
        """Moved twice they are still the same; the model is known afterwards; what has none is embedded later."""
        self.fill(other)
        rows = other.backend.state(NOW).counts["rows"]
        vectors = other.backend.state(NOW).counts["vectors"]
        assert 0 < vectors < rows
        move(other, desk)
        state = desk.backend.state(NOW)
        assert (state.counts["vectors"], state.pending, state.failed) == (vectors, rows - vectors, 0)
        assert (state.embedder, state.dimensions) == (MODEL.name, MODEL.dimensions)
        assert desk.embed(MODEL) == rows - vectors
        again = memory()
        move(desk, again)
        self.same(desk, again)
        assert again.backend.state(NOW).pending == 0

    @pytest.mark.capability("move.vectors")
    def test_vectors_of_another_model_are_refused_whole(self, desk: Desk, other: Desk) -> None:
        """By name or by dimensions; without vectors the same turns are welcome."""
        desk.say("work", "1", "word")
        desk.embed(MODEL)
        other.say("trip", "1", "river boat")
        other.embed(HashEmbedder(32, MODEL.name))
        with refused(Conflict):
            move(other, desk)
        with refused(Conflict):
            desk.backend.receive(
                ALICE, [replace(turn, vectors={0: MODEL.embed(["x"])[0]}) for turn in taken(other)], "b"
            )
        assert desk.turn("trip", "1") is None
        assert desk.backend.receive(ALICE, [replace(turn, vectors={}) for turn in taken(other)], None) == 1
        assert desk.backend.state(NOW).pending == 1

    @pytest.mark.capability("move.idempotent")
    def test_receiving_again_changes_nothing(self, desk: Desk, other: Desk) -> None:
        """And goes on where it was interrupted; a fuller edition replaces what came before."""
        self.fill(other)
        move(other, desk)
        keys = desk.backend.turn_keys(ALICE)
        assert move(other, desk) == 0
        assert desk.backend.turn_keys(ALICE) == keys
        other.say("trip", "new", "one more")
        other.record(make_turn("trip", "3", "fuller", at=NOW + 3 * MINUTE), rich=True)
        assert move(other, desk) == 2
        self.same(other, desk)

    @pytest.mark.capability("move.idempotent")
    def test_feedback_and_vectors_are_brought_in_step(self, desk: Desk, other: Desk) -> None:
        """Those of a turn that is there already: given, changed, taken back; made since."""
        self.fill(other)
        move(other, desk)
        other.react("trip", "1", None)
        other.react("trip", "3", "ok")
        other.now += timedelta(hours=1)
        other.embed(MODEL)
        assert move(other, desk) == 0
        other.now = NOW
        self.same(other, desk)
        assert desk.backend.state(NOW).pending == 0

    @pytest.mark.capability("move.conflict")
    def test_another_turn_under_the_id_is_refused_whole(self, desk: Desk, other: Desk) -> None:
        """So is a conversation of another app; nothing is left of the call. Other turns and owners are merged."""
        desk.say("trip", "2", "river")
        desk.say("work", "1", "mine", replace(ALICE, app="y"))
        other.say("trip", "1", "boat")
        other.say("trip", "2", "yours")
        with refused(Conflict):
            move(other, desk)
        assert desk.turn("trip", "1") is None
        other.purge("trip", "2")
        other.say("work", "2", "of another app", replace(ALICE, app="x"))
        with refused(Conflict):
            move(other, desk)
        assert desk.turn("trip", "1") is None
        other.purge("work")
        other.say("trip", "1", "of bob", BOB)
        assert (move(other, desk), move(other, desk, BOB)) == (1, 1)
        assert desk.turns("river boat") == {("trip", "1"), ("trip", "2")}

    @pytest.mark.capability("move.positions")
    def test_rows_keep_their_positions_and_new_ones_follow(self, desk: Desk, other: Desk) -> None:
        """Gaps of purged turns stay; what is recorded next stands at the same place in both."""
        self.fill(other)
        move(other, desk)
        for side in (desk, other):
            side.say("trip", "next", "what comes next")
            side.say("app", "next", "what comes next")
        self.same(other, desk)
        assert [c.app for c in desk.backend.conversations(ALICE, NOW, 99) if c.id == "app"] == ["x"]

    @pytest.mark.capability("move.titles")
    def test_titles_live_and_die_with_the_turns_that_gave_them(self, desk: Desk, other: Desk) -> None:
        """After the move as before it."""
        other.record(make_turn("trip", "1", "said first", title="Earlier"))
        other.record(make_turn("trip", "2", "said then"))
        other.record(make_turn("trip", "3", "said last", title="Later"))
        move(other, desk)
        for purged, title in (("3", "Earlier"), ("1", "said then")):
            for side in (desk, other):
                side.purge("trip", purged)
                (conversation,) = side.backend.conversations(ALICE, NOW, 9)
                assert conversation.title == title

    @pytest.mark.capability("move.tombstones")
    def test_tombstones_move(self, desk: Desk, other: Desk) -> None:
        """With their reason; also of an owner who has no turn left; a turn that is there is not covered by one."""
        self.fill(other)
        other.backend.expire(NOW + timedelta(hours=6))
        other.say("c", "1", "word", BOB)
        other.purge("c", "1", BOB)
        for scope in other.backend.scopes():
            move(other, desk, scope)
            assert desk.backend.tombstones(scope) == other.backend.tombstones(scope)
        assert (desk.turn("trip", "2"), desk.turn("trip", "4")) == ("purged", "expired")
        assert desk.turn("c", "1", BOB) == "purged"
        assert set(desk.backend.scopes()) == {ALICE, BOB}
        desk.say("trip", "2", "again")
        move(other, desk)
        assert desk.stored("trip", "2")
        desk.backend.bury(Scope("nobody"), {})
        assert set(desk.backend.scopes()) == {ALICE, BOB}

    @pytest.mark.capability("move.reads-only")
    def test_the_source_stays_as_it_was(self, desk: Desk, other: Desk) -> None:
        """Reading for a move changes nothing."""
        self.fill(desk)
        before = desk.backend.turn_keys(ALICE), desk.backend.state(NOW)
        move(desk, other)
        assert (desk.backend.turn_keys(ALICE), desk.backend.state(NOW)) == before

"""Retention: what is over or removed is gone from everywhere, at once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from threefold.errors import InvalidInput
from threefold.model.retention import Receipt, Target
from threefold.model.scope import Scope
from threefold.testing.contract.desk import ALICE, NOW, Desk, full_turn, make_turn, refused
from threefold.testing.contract.suite import Contract
from threefold.testing.fakes import HashEmbedder

HOUR = timedelta(hours=1)
BOB = Scope("bob")
OTHER_TENANT = Scope("alice", "another")
LISTS = ("lexical", "trigram", "semantic")


def nothing_of(desk: Desk, word: str, conversation: str, turn: str, scope: Scope = ALICE) -> None:
    """Assert that no read of the scope shows anything of the turn."""
    model = HashEmbedder()
    for name in LISTS:
        assert (conversation, turn) not in desk.turns(word, name, scope=scope, embedder=model)  # type: ignore[arg-type]
    assert desk.rows((conversation, turn, 0), scope=scope) == []
    assert turn not in [e.turn for e in desk.catalog(conversation, scope)]
    assert desk.turn(conversation, turn, scope) in ("expired", "purged", None)


class RetentionContract(Contract):
    """Expiry, `Store.purge` and `Upkeep.expire`."""

    @pytest.fixture
    def four(self, desk: Desk) -> Desk:
        """Full turns of two users and two tenants, embedded."""
        for scope in (ALICE, BOB, OTHER_TENANT):
            for conversation in ("trip", "work"):
                for turn in ("1", "2"):
                    mark = f"mark{turn}{conversation}"
                    desk.record(full_turn(conversation, turn, mark, NOW + HOUR * int(turn)), scope)
        while desk.embed(HashEmbedder()):
            pass
        return desk

    def intact(self, desk: Desk, *turns: tuple[Scope, str, str]) -> None:
        """Assert that these turns are whole."""
        for scope, conversation, turn in turns:
            found = desk.stored(conversation, turn, scope)
            assert len(found.record.rows) == 6
            for file in found.record.files:
                assert desk.blobs.get(scope, file.digest)
            for name in ("lexical", "semantic"):
                asked = f"mark{turn}{conversation}"
                model = HashEmbedder()
                assert (conversation, turn) in desk.turns(asked, name, scope=scope, embedder=model)

    @pytest.mark.capability("retention.expiry")
    def test_what_is_over_is_gone_from_every_read_before_any_sweep(self, desk: Desk) -> None:
        """To the microsecond, and other turns stay."""
        desk.record(full_turn("trip", "1", "mark1trip"), ttl=HOUR)
        desk.record(full_turn("trip", "2", "mark2trip", NOW + HOUR))
        while desk.embed(HashEmbedder()):
            pass
        over = NOW + timedelta(seconds=1) + HOUR
        desk.now = over - timedelta(microseconds=1)
        self.intact(desk, (ALICE, "trip", "1"))
        desk.now = over
        nothing_of(desk, "mark1trip", "trip", "1")
        assert desk.turn("trip", "1") == "expired"
        self.intact(desk, (ALICE, "trip", "2"))

    @pytest.mark.capability("retention.expiry")
    def test_a_conversation_of_which_all_is_over_is_not_listed(self, desk: Desk) -> None:
        """Nor is it after the sweep, which removes turns for good and says how many."""
        for i in range(7):
            desk.say("trip", f"{i}", "word", ttl=HOUR)
        desk.say("work", "1", "word")
        desk.now = NOW + 2 * HOUR
        assert desk.conversations() == ["work"]
        swept = []
        while count := desk.backend.expire(desk.now, 3):
            swept.append(count)
        assert swept == [3, 3, 1]
        assert desk.conversations() == ["work"]
        assert desk.backend.state(desk.now).counts["turns"] == 1
        assert desk.turn("trip", "1") == "expired"
        assert desk.backend.expire(desk.now) == 0

    @pytest.mark.capability("retention.purge-turn")
    def test_purging_a_turn_leaves_the_others_whole(self, four: Desk) -> None:
        """Of the conversation, the user and other users."""
        four.purge("trip", "1")
        nothing_of(four, "mark1trip", "trip", "1")
        for scope in (ALICE, BOB, OTHER_TENANT):
            self.intact(four, (scope, "trip", "2"), (scope, "work", "1"))
        self.intact(four, (BOB, "trip", "1"), (OTHER_TENANT, "trip", "1"))
        assert [e.ordinal for e in four.catalog("trip")] == [1]
        assert {c.id: c.turns for c in four.backend.conversations(ALICE, NOW, 9)} == {"trip": 1, "work": 2}

    @pytest.mark.capability("retention.purge-conversation")
    def test_purging_a_conversation_leaves_the_others_whole(self, four: Desk) -> None:
        """And it is no longer listed."""
        four.purge("trip")
        for turn in ("1", "2"):
            nothing_of(four, f"mark{turn}trip", "trip", turn)
            self.intact(four, (ALICE, "work", turn), (BOB, "trip", turn), (OTHER_TENANT, "trip", turn))
        assert four.conversations() == ["work"]

    @pytest.mark.capability("retention.purge-user")
    def test_purging_a_user_leaves_no_trace_of_the_user(self, four: Desk) -> None:
        """Not even that anything was removed."""
        four.purge()
        assert (four.catalog(), four.conversations()) == ((), [])
        assert four.turn("trip", "1") is None
        assert ALICE not in list(four.backend.scopes())
        assert list(four.blobs.digests(ALICE)) == []
        for turn in ("1", "2"):
            self.intact(four, (BOB, "trip", turn), (OTHER_TENANT, "work", turn))

    @pytest.mark.capability("retention.purge-tenant")
    def test_purging_a_tenant_removes_all_its_users_and_no_others(self, four: Desk) -> None:
        """A user of the same name in another tenant stays."""
        four.purge(scope=Scope("operator"), tenant=True)
        assert list(four.backend.scopes()) == [OTHER_TENANT]
        for scope in (ALICE, BOB):
            assert four.catalog(scope=scope) == ()
            assert list(four.blobs.digests(scope)) == []
        self.intact(four, *[(OTHER_TENANT, c, t) for c in ("trip", "work") for t in ("1", "2")])

    @pytest.mark.capability("retention.purge-app")
    def test_an_app_purges_only_what_is_its_own(self, desk: Desk) -> None:
        """A purge without a target through a handle that is narrowed to an app."""
        app = Scope("alice", app="notes")
        desk.say("mine", "1", "word", app)
        desk.say("other", "1", "word")
        assert desk.purge(scope=app).stores["turns"] == 1
        assert desk.conversations() == ["other"]

    @pytest.mark.capability("retention.tombstones")
    def test_the_owner_is_told_why_something_is_gone_and_nobody_else(self, four: Desk) -> None:
        """Purged turns and conversations; recording a turn again brings it back."""
        four.purge("trip", "1")
        four.purge("work")
        assert four.turn("trip", "1") == four.turn("work", "1") == four.turn("work", "2") == "purged"
        assert four.turn("trip", "3") is None
        for scope in (Scope("eve"), Scope("alice2"), Scope("alice", "another2")):
            assert four.turn("trip", "1", scope) is None
        four.say("trip", "1", "again")
        assert four.stored("trip", "1").record.rows[0].text == "again"

    @pytest.mark.capability("retention.tombstones")
    def test_the_nearer_reason_is_told(self, desk: Desk) -> None:
        """A turn that had expired before its conversation was purged had expired."""
        desk.say("trip", "1", "word", ttl=HOUR)
        desk.say("trip", "2", "word")
        desk.now += 2 * HOUR
        desk.backend.expire(desk.now)
        desk.purge("trip")
        assert (desk.turn("trip", "1"), desk.turn("trip", "2")) == ("expired", "purged")

    @pytest.mark.capability("retention.tombstones")
    def test_recording_again_brings_back_only_its_own_turn(self, desk: Desk) -> None:
        """What else of the conversation was purged is still told to be so."""
        desk.say("trip", "1", "one")
        desk.say("trip", "2", "two")
        desk.purge("trip")
        desk.say("trip", "1", "one")
        assert desk.stored("trip", "1").record.turn == "1"
        assert desk.turn("trip", "2") == "purged"

    @pytest.mark.capability("retention.receipt")
    def test_a_receipt_says_what_went(self, four: Desk) -> None:
        """Kind and counts; nothing where there was nothing."""
        receipt = four.purge("trip", "1")
        assert isinstance(receipt, Receipt)
        assert receipt.kind == "turn"
        counted = {name: receipt.stores[name] for name in ("turns", "rows", "files", "blobs", "vectors")}
        assert counted == {"turns": 1, "rows": 6, "files": 2, "blobs": 2, "vectors": 6}
        assert receipt.leftovers == ()
        for again in (four.purge("trip", "1"), four.purge("nowhere"), four.purge(scope=Scope("nobody"))):
            assert sum(again.stores.get(name, 0) for name in ("turns", "rows", "files", "blobs", "vectors")) == 0
        assert four.purge("trip").kind == "conversation"
        assert four.purge().kind == "user"
        assert four.purge(tenant=True).kind == "tenant"

    @pytest.mark.capability("retention.receipt")
    def test_a_turn_without_its_conversation_is_no_target(self, four: Desk) -> None:
        """It must never come to mean everything."""
        with refused(InvalidInput):
            four.purge(None, "1")
        with refused(InvalidInput):
            four.backend.purge(ALICE, Target("trip", None, True))
        assert len(four.catalog()) == 4

    @pytest.mark.capability("retention.files")
    def test_bytes_stay_until_their_last_turn_goes(self, desk: Desk) -> None:
        """Whether turns are purged or expire; another owner's equal bytes are another matter."""
        turn = full_turn("trip", "1", "x", data=b"shared")
        other = full_turn("trip", "2", "x", data=b"shared")
        for scope in (ALICE, BOB):
            desk.record(turn, scope)
            desk.record(other, scope, HOUR)
        digest = desk.stored("trip", "1").record.files[0].digest
        desk.purge("trip", "1")
        assert desk.blobs.get(ALICE, digest)
        desk.backend.expire(NOW + 2 * HOUR)
        assert not desk.blobs.has(ALICE, digest)
        assert desk.blobs.get(BOB, digest)
        desk.purge(scope=BOB)
        assert not desk.blobs.has(BOB, digest)

    @pytest.mark.capability("retention.files")
    def test_bytes_whose_turn_was_never_recorded_go_with_the_user(self, desk: Desk) -> None:
        """They are written before the commit, which may never have come."""
        desk.record(make_turn("trip", "1", "word"))
        desk.blobs.put(ALICE, b"never committed")
        desk.purge()
        assert list(desk.blobs.digests(ALICE)) == []

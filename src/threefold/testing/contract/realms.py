"""What realms beside the record rest on: owners by realm, labels, changing what was seen, reading several at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from threefold.errors import Conflict, Forbidden
from threefold.model.codec import digest_of
from threefold.model.commit import RecordTurn
from threefold.model.record import TurnRecord
from threefold.model.scope import Scope
from threefold.model.turn import Attachment
from threefold.testing.contract.desk import ALICE, NOW, Desk, enrich, full_turn, listed, make_turn, refused
from threefold.testing.contract.suite import Contract
from threefold.testing.fakes import HashEmbedder

NOTES = Scope("alice", realm="notes")


class RealmsContract(Contract):
    """Records of another kind under the same rules."""

    def labelled(self, desk: Desk, name: str, *labels: str, minutes: int = 0, scope: Scope = ALICE) -> None:
        """Record a turn with labels in a conversation of its own."""
        turn = make_turn(name, "1", "river boat", at=NOW + timedelta(minutes=minutes))
        desk.commit(RecordTurn(replace(desk.fold(turn, scope), labels=labels)), scope=scope)

    @pytest.mark.capability("realms")
    def test_realms_of_a_user_share_nothing(self, desk: Desk) -> None:
        """The same ids in two realms are two things, for every read and for removing."""
        model = HashEmbedder()
        for scope, text in ((ALICE, "river in the record"), (NOTES, "river in the notes")):
            desk.record(full_turn("trip", "1", text), scope)
        rows = len(desk.stored("trip", "1").record.rows)
        assert desk.embed(model) == 2 * rows
        for scope, text in ((ALICE, "asked river in the record"), (NOTES, "asked river in the notes")):
            assert desk.stored("trip", "1", scope).record.rows[0].text == text
            for lists in ("lexical", "semantic"):
                assert len(desk.find("river", lists, scope=scope, embedder=model)) == rows
            assert len(list(desk.blobs.digests(scope))) == 2
            assert [entry.turn for entry in desk.catalog(scope=scope)] == ["1"]
        desk.purge("trip", scope=NOTES)
        assert desk.find("river", scope=NOTES) == []
        assert len(desk.find("river")) == rows
        assert len(list(desk.blobs.digests(ALICE))) == 2
        assert list(desk.blobs.digests(NOTES)) == []

    @pytest.mark.capability("realms")
    def test_a_user_is_removed_from_every_realm(self, desk: Desk) -> None:
        """Whichever realm it is asked in, and nobody else from any."""
        bob = Scope("bob", realm="notes")
        for scope in (ALICE, NOTES, bob):
            desk.record(full_turn("trip", "1", "river"), scope)
        assert {scope.key for scope in desk.backend.scopes()} == {ALICE.key, NOTES.key, bob.key}
        desk.purge()
        assert {scope.key for scope in desk.backend.scopes()} == {bob.key}
        for scope in (ALICE, NOTES):
            assert desk.find("river", scope=scope) == []
            assert list(desk.blobs.digests(scope)) == []
        assert desk.turns("river", scope=bob) == {("trip", "1")}

    @pytest.mark.capability("labels")
    def test_turns_are_asked_for_by_their_labels(self, desk: Desk) -> None:
        """One of each group; in search, in the catalog, and in what comes back."""
        self.labelled(desk, "a", "layer:long", "tag:travel", "tag:🕯️")
        self.labelled(desk, "b", "layer:long", "tag:food", minutes=1)
        self.labelled(desk, "c", "layer:short", "tag:travel", minutes=2)
        self.labelled(desk, "d", minutes=3)
        assert sorted(desk.stored("a", "1").record.labels) == sorted(("layer:long", "tag:travel", "tag:🕯️"))
        for groups, wanted in (
            ((), "abcd"),
            ((("layer:long",),), "ab"),
            ((("layer:long", "layer:short"),), "abc"),
            ((("layer:long", "layer:short"), ("tag:travel",)), "ac"),
            ((("tag:🕯",),), ""),
            ((("tag:🕯️",),), "a"),
            ((("tag:%",),), ""),
            ((("LAYER:LONG",),), ""),
            ((("tag:travel",), ("tag:food",)), ""),
        ):
            assert {name for name, _ in desk.turns("river", labels=groups)} == set(wanted), groups
            assert [e.conversation for e in desk.catalog(labels=groups)] == list(wanted), groups
            newest = desk.catalog(labels=groups, newest_first=True, limit=1)
            assert [e.conversation for e in newest] == list(wanted[-1:]), groups

    @pytest.mark.capability("labels")
    def test_labels_stay_within_their_owner_and_go_with_their_turn(self, desk: Desk) -> None:
        """A fuller edition has its own; what is removed is asked for in vain."""
        self.labelled(desk, "a", "mine")
        self.labelled(desk, "a", "mine", scope=Scope("bob"))
        desk.purge("a", "1")
        self.labelled(desk, "b", "other")
        assert desk.turns("river", labels=(("mine",),)) == set()
        assert desk.turns("river", labels=(("mine",),), scope=Scope("bob")) == {("a", "1")}
        edition = replace(enrich(desk.stored("b", "1").record), labels=("new",))
        desk.commit(RecordTurn(replace(edition, rows=desk.fold(make_turn("b", "1", "river boat")).rows)))
        assert desk.turns("river", labels=(("other",),)) == set()
        assert desk.turns("river", labels=(("new",),)) == {("b", "1")}

    @pytest.mark.capability("labels")
    def test_labels_are_looked_for_before_the_cut(self, desk: Desk) -> None:
        """A few among many that are nearer."""
        for i in range(30):
            desk.say(f"c{i}", "1", "river river boat")
        self.labelled(desk, "a", "rare")
        assert desk.turns("river", labels=(("rare",),), depth=5) == {("a", "1")}

    @pytest.mark.capability("changing")
    def test_a_record_is_changed_only_by_who_saw_it(self, desk: Desk) -> None:
        """And all writes of a commit happen, or none."""

        def edition(text: str) -> TurnRecord:
            return replace(desk.fold(make_turn("a", "1", text)), labels=(text,))

        first, second, third = (edition(text) for text in ("one", "two", "three"))
        assert desk.commit(RecordTurn(first, replaces="")) == ("created",)
        assert desk.commit(RecordTurn(first, replaces="")) == ("unchanged",)
        with refused(Conflict):
            desk.commit(RecordTurn(second, replaces=""))
        assert desk.commit(RecordTurn(second, replaces=first.digest)) == ("replaced",)
        assert desk.commit(RecordTurn(second, replaces=first.digest)) == ("unchanged",)
        with refused(Conflict):
            desk.commit(RecordTurn(desk.fold(make_turn("b", "1", "one"))), RecordTurn(third, replaces=first.digest))
        assert desk.conversations() == ["a"]
        assert desk.find("two") == [("a", "1", 0)]
        assert desk.find("one") == []
        with refused(Conflict):
            desk.commit(RecordTurn(desk.fold(make_turn("c", "1", "one")), replaces=first.digest))
        assert desk.stored("a", "1").record.labels == ("two",)

    def change(self, desk: Desk, said: str | Sequence[str], minutes: int = 0, *labels: str, **more: Any) -> None:
        """Put an edition of one turn in the place of whatever is there."""
        at = NOW + timedelta(minutes=minutes)
        record = replace(desk.fold(make_turn("a", "1", said, at=at, **more)), labels=labels)
        record = replace(record, digest=digest_of([record.digest, labels]))
        stored = desk.turn("a", "1")
        outcome = desk.commit(RecordTurn(record, replaces="" if stored is None else stored.record.digest))
        assert outcome == ("created" if stored is None else "replaced",)

    @pytest.mark.capability("changing")
    def test_what_says_the_same_keeps_its_vector(self, desk: Desk) -> None:
        """Whatever else is changed of it: nothing waits, and it is found by meaning at once."""
        model = HashEmbedder()
        self.change(desk, "river boat", 0, "old", "both")
        desk.say("b", "1", "mountain")
        desk.embed(model)
        for minutes, labels in ((0, ("both", "new")), (5, ("new",)), (9, ())):
            self.change(desk, "river boat", minutes, *labels)
            assert desk.backend.claim(9, desk.now, 60) == ()
            for lists in ("lexical", "semantic"):
                now = desk.ask("river boat", lists, embedder=model)
                assert listed(now, lists)[0] == ("a", "1", 0)
                assert now.rows[now.lists[lists].numbers[0]].at == NOW + timedelta(minutes=minutes)
            for label in ("old", "both", "new"):
                found = desk.turns("river boat", "semantic", labels=((label,),), embedder=model)
                assert found == ({("a", "1")} if label in labels else set())
        assert desk.backend.state(NOW, check=True).problems == ()

    @pytest.mark.capability("changing")
    def test_what_says_something_else_waits_anew(self, desk: Desk) -> None:
        """Nothing finds what it said; rows of the turn that say the same are as they were, also where some came."""
        model = HashEmbedder()
        for before, after, waits in (
            (["river boat"], ["mountain hut"], 1),
            (["mountain hut"], ["mountain hut", "yellow paper"], 1),
            (["mountain hut", "yellow paper"], ["yellow paper", "mountain hut"], 2),
            (["yellow paper", "mountain hut"], ["yellow paper"], 0),
        ):
            if desk.turn("a", "1") is None:
                self.change(desk, before)
            desk.say("b", "".join(before), "some river")
            desk.embed(model)
            self.change(desk, after)
            assert desk.backend.state(NOW).pending == waits
            lost = {text for seq, text in enumerate(before) if after[seq : seq + 1] != [text]}
            assert len(desk.find(before[0], "semantic", embedder=model, conversation="a")) == len(after) - waits
            assert all(desk.find(text, conversation="a") == [] for text in lost - set(after))
            assert desk.embed(model) == waits
            for seq, text in enumerate(after):
                for lists in ("lexical", "semantic"):
                    assert desk.find(text, lists, embedder=model, conversation="a")[0] == ("a", "1", seq)
        state = desk.backend.state(NOW, check=True)
        assert (state.problems, state.counts["rows"], state.counts["vectors"]) == ((), 5, 5)
        assert desk.purge("a").stores["vectors"] == 1

    @pytest.mark.capability("changing")
    def test_words_that_are_no_longer_said_correct_nothing(self, desk: Desk) -> None:
        """Those that the turn still says, or another one, do."""
        desk.say("b", "1", "harbour")
        self.change(desk, "mountain harbour window")
        self.change(desk, "yellow window")
        asked = desk.ask("mountaim harbuor windoww yelow", "trigram")
        assert set(asked.corrections) == {"harbuor", "windoww", "yelow"}

    @pytest.mark.capability("changing")
    def test_what_says_the_same_keeps_its_place_in_the_queue(self, desk: Desk) -> None:
        """Who claimed it may still bring its vector, and its failures are remembered."""
        model = HashEmbedder()
        self.change(desk, "river boat")
        rows = desk.backend.claim(9, desk.now, 60)
        desk.backend.embedding_failed(rows, "no model", desk.now)
        (row,) = desk.backend.claim(9, desk.now, 60)
        self.change(desk, "river boat", 1, "new")
        assert desk.backend.claim(9, desk.now, 60) == ()
        assert (row.attempts, desk.backend.state(NOW).failed) == (1, 1)
        assert desk.backend.put_vectors(model.name, [(row, model.embed([row.text])[0])]) == 1
        assert desk.find("river boat", "semantic", embedder=model) == [("a", "1", 0)]

    @pytest.mark.capability("changing")
    def test_what_belongs_to_a_changed_turn_follows(self, desk: Desk) -> None:
        """Feedback stays; files, times, title, order and end of its time are those of the edition."""
        kept, old, new = (Attachment(name, name.encode(), NOW) for name in ("kept", "old", "new"))
        self.change(desk, "river", attachments=(kept, old), title="first")
        desk.say("b", "1", "boat", at=NOW + timedelta(minutes=2))
        desk.react("a", "1", "ok")
        was = {file.path: file.digest for file in desk.stored("a", "1").record.files}
        self.change(desk, "river", 5, attachments=(kept, new), title="second")
        desk.backend.expire(desk.now)
        found = desk.stored("a", "1")
        assert [given.reaction for given in found.feedback] == ["ok"]
        assert sorted(desk.blobs.get(ALICE, file.digest) for file in found.record.files) == [b"kept", b"new"]
        assert [desk.blobs.has(ALICE, digest) for digest in was.values()] == [True, False]
        assert [entry.conversation for entry in desk.catalog(newest_first=True)] == ["a", "b"]
        (first, _) = desk.backend.conversations(ALICE, NOW, 9)
        assert (first.id, first.title, first.turns) == ("a", "second", 1)
        assert (first.started, first.last_activity) == (found.record.log.started, found.record.log.ended)
        over = replace(found.record, digest=digest_of("over"), expires=NOW + timedelta(hours=1))
        terms = desk.fold(make_turn("a", "1", "river", attachments=(kept, new))).rows
        desk.commit(RecordTurn(replace(over, rows=terms), replaces=found.record.digest))
        desk.now += timedelta(hours=1)
        assert (desk.turns("river"), desk.turn("a", "1")) == (set(), "expired")
        assert desk.backend.expire(desk.now) == 1

    @pytest.mark.capability("records")
    def test_several_records_are_read_at_once(self, desk: Desk) -> None:
        """In order of the keys, each once; without those that are not there, over or another user's."""
        for i in range(3):
            desk.record(full_turn(f"c{i}", "1", f"mark{i}"))
        desk.say("over", "1", "gone", ttl=timedelta(minutes=1))
        keys = [("c2", "1"), ("c0", "1"), ("none", "1"), ("over", "1"), ("c2", "1"), ("c1", "9")]
        now = NOW + timedelta(hours=1)
        found = desk.backend.records(ALICE, keys, now)
        assert [record.conversation for record in found] == ["c2", "c0"]
        for record in found:
            whole = desk.stored(record.conversation, record.turn).record
            assert (record.rows, record.files, record.log) == (whole.rows, whole.files, whole.log)
        assert desk.backend.records(Scope("bob"), keys, now) == ()
        assert desk.backend.records(ALICE, [], now) == ()
        desk.record(full_turn("apps", "1", "app"), Scope("alice", app="one"))
        with refused(Forbidden):
            desk.backend.records(Scope("alice", app="two"), [("apps", "1")], now)

    @pytest.mark.capability("records")
    def test_records_are_read_without_their_rows(self, desk: Desk) -> None:
        """What a row says is not in the log then either; all else is there."""
        for i in range(3):
            desk.record(full_turn(f"c{i}", "1", f"mark{i}"))
        desk.record(make_turn("empty", "1"))
        desk.say("over", "1", "gone", ttl=timedelta(minutes=1))
        keys, now = [("c2", "1"), ("c0", "1"), ("none", "1"), ("over", "1"), ("empty", "1")], NOW + timedelta(hours=1)
        whole = desk.backend.records(ALICE, keys, now)
        bare = desk.backend.records(ALICE, keys, now, rows=False)
        assert [record.conversation for record in bare] == ["c2", "c0", "empty"]
        for one, other in zip(bare, whole, strict=True):
            assert replace(one, log=other.log, rows=other.rows) == other
            said = {row.path for row in other.rows}
            blocks = tuple(replace(b, text=None) if b.path in said else b for b in other.log.blocks)
            assert (one.rows, one.log) == ((), replace(other.log, blocks=blocks))
        assert any(block.text is None for block in bare[0].log.blocks)
        assert desk.backend.records(Scope("bob"), keys, now, rows=False) == ()
        desk.record(full_turn("apps", "1", "app"), Scope("alice", app="one"))
        with refused(Forbidden):
            desk.backend.records(Scope("alice", app="two"), [("apps", "1")], now, rows=False)

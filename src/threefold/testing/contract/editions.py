"""Another edition of a turn: each row that says what one said is that row, wherever it stands now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from threefold.model.codec import digest_of
from threefold.model.commit import RecordTurn
from threefold.model.query import LISTS
from threefold.model.record import StoredTurn
from threefold.model.rows import RowKey
from threefold.model.scope import Scope
from threefold.ports import PendingRow
from threefold.testing.contract.desk import ALICE, NOW, Desk, OpenStore, listed, make_turn
from threefold.testing.contract.suite import Contract
from threefold.testing.fakes import HashEmbedder

MODEL = HashEmbedder(256)
A, B, C, D, E = "river boat", "mountain hut", "yellow paper", "morning market", "harbour window"
# What the turn said, what it says then, and what of that was not said before.
EDITIONS: dict[str, tuple[Sequence[str], Sequence[str], Sequence[str]]] = {
    "one in front": ([A, B, C], [D, A, B, C], [D]),
    "several in front and between": ([A, B, C], [D, A, E, B, C, D], [D, E, D]),
    "one behind": ([A, B], [A, B, C], [C]),
    "none in the middle": ([A, B, C], [A, C], []),
    "none in front": ([A, B, C], [B, C], []),
    "two swapped": ([A, B, C], [C, B, A], []),
    "all turned round": ([A, B, C, D, E], [E, A, B, C, D], []),
    "one in front for one behind": ([A, B, C], [D, A, B], [D]),
    "another in the middle": ([A, B, C], [A, D, C], [D]),
    "twice": ([A, B], [A, A, B], [A]),
    "twice, moved": ([A, A, B], [B, A, A], []),
    "once of twice": ([A, B, A], [B, A], []),
    "twice once more": ([A, A], [B, A, C, A, A], [B, C, A]),
    "all else": ([A, B], [C, D], [C, D]),
    "nothing, then something": ([], [A, B], [A, B]),
    "something, then nothing": ([A, B], [], []),
}


class EditionsContract(Contract):
    """Rows of a turn that is changed in place."""

    def change(
        self,
        desk: Desk,
        said: Sequence[str],
        minutes: int = 0,
        authors: Sequence[str | None] | None = None,
        scope: Scope = ALICE,
    ) -> None:
        """Put an edition that says this in the place of what the turn is."""
        at = NOW + timedelta(minutes=minutes)
        turn = make_turn("doc", "1", said, at=at)
        if authors is not None:
            spoken = zip(turn.submissions, authors, strict=True)
            turn = replace(turn, submissions=tuple(replace(text, author=author) for text, author in spoken))
        record = desk.fold(turn, scope)
        record = replace(record, digest=digest_of([record.digest, minutes]))
        stored = desk.turn("doc", "1", scope)
        digest = stored.record.digest if isinstance(stored, StoredTurn) else ""
        desk.commit(RecordTurn(record, replaces=digest), scope=scope)

    def check(self, desk: Desk, said: Sequence[str], new: Sequence[str] = ()) -> None:
        """The turn says this in this order, and is found by it; by meaning, but for the `new` ones."""
        record = desk.stored("doc", "1").record
        assert [(row.seq, row.text) for row in record.rows] == list(enumerate(said))
        assert [block.text for block in record.log.blocks] == list(said)
        rows = desk.backend.rows(ALICE, [RowKey("doc", "1", 0)], desk.now)
        assert [row.key.seq for row in rows] == list(range(len(said)))
        first = desk.catalog("doc")[0].position
        assert [row.position for row in rows] == list(range(first, first + len(rows)))
        known = Counter(said) - Counter(new)
        for text in (A, B, C, D, E):
            where = {("doc", "1", seq) for seq, each in enumerate(said) if each == text}
            asked = desk.ask(text, *LISTS, conversation="doc", embedder=MODEL)
            lexical = listed(asked, "lexical")
            semantic = [asked.rows.key(number) for number, score in asked.lists["semantic"] if score > 0.9]
            assert (len(lexical), set(lexical)) == (len(where), where)
            assert (len(semantic), where.issuperset(semantic)) == (known[text], True)
            for row in asked.rows:
                assert row.position == first + row.key.seq
        assert desk.backend.state(desk.now, check=True).problems == ()

    @pytest.mark.capability("changing.rows")
    @pytest.mark.parametrize("name", EDITIONS)
    def test_rows_that_say_the_same_keep_their_vectors(self, desk: Desk, open_store: OpenStore, name: str) -> None:
        """Only what was not said before is embedded, and every handle on the store sees it all at once."""
        before, after, new = EDITIONS[name]
        other = Desk(*open_store()) if open_store.durable else desk
        desk.say("other", "0", "unlike")
        self.change(desk, before)
        desk.say("other", "1", "unlike")
        desk.embed(MODEL)
        for handle in (desk, other):
            self.check(handle, before)
        desk.react("doc", "1", "ok")
        self.change(desk, after, 5)
        for handle in (desk, other):
            self.check(handle, after, new)
        rows = other.backend.claim(99, desk.now, 60)
        assert Counter(row.text for row in rows) == Counter(new)
        self.put(other, rows)
        for handle in (desk, other):
            self.check(handle, after)
        # And back again, which moves rows that lie apart by now.
        self.change(other, before, 9)
        waiting = desk.backend.claim(99, desk.now, 60)
        assert Counter(row.text for row in waiting) == Counter(before) - Counter(after)
        self.put(desk, waiting)
        for handle in (other, desk):
            self.check(handle, before)
        assert [given.reaction for given in desk.stored("doc", "1").feedback] == ["ok"]
        state = desk.backend.state(desk.now)
        assert (state.counts["rows"], state.counts["vectors"], state.pending) == (len(before) + 2, len(before) + 2, 0)
        assert desk.purge("doc").stores.get("vectors", 0) == len(before)

    def put(self, desk: Desk, rows: Sequence[PendingRow]) -> int:
        """Bring the vectors of claimed rows."""
        done = list(zip(rows, MODEL.embed([row.text for row in rows]), strict=True))
        return desk.backend.put_vectors(MODEL.name, done)

    @pytest.mark.capability("changing.rows")
    def test_moved_rows_are_there_when_the_store_is_opened_again(self, desk: Desk, reopen: Callable[..., Desk]) -> None:
        """With all that is theirs."""
        self.change(desk, [A, B, C])
        desk.embed(MODEL)
        self.change(desk, [D, C, A], 1)
        self.check(desk, [D, C, A], [D])
        desk = reopen(desk)
        self.check(desk, [D, C, A], [D])
        assert [row.text for row in desk.backend.claim(9, desk.now, 60)] == [D]

    @pytest.mark.capability("changing.rows")
    def test_the_same_words_of_somebody_else_are_another_row(self, desk: Desk) -> None:
        """The speaker's name is embedded and found with the text."""
        self.change(desk, [A, A, B], authors=["Anna", "Bert", None])
        desk.embed(MODEL)
        self.change(desk, [B, A, A, A], 1, authors=[None, "Bert", "Carla", "Anna"])
        assert [row.text for row in desk.backend.claim(9, desk.now, 60)] == [f"Carla: {A}"]
        assert desk.find("Anna") == [("doc", "1", 3)]
        assert desk.find("Bert") == [("doc", "1", 1)]
        found = desk.ask("Bert", "semantic", embedder=MODEL, conversation="doc")
        assert found.rows[found.lists["semantic"].numbers[0]].key == ("doc", "1", 1)

    @pytest.mark.capability("changing.rows")
    def test_rows_that_move_keep_their_places_in_the_queue(self, desk: Desk) -> None:
        """Who claimed one may still bring its vector, and its failures are remembered; what is gone gets none."""
        self.change(desk, [A, B, C])
        rows = desk.backend.claim(9, desk.now, 60)
        desk.backend.embedding_failed([row for row in rows if row.text != C], "no model", desk.now)
        claimed = desk.backend.claim(9, desk.now, 60)
        assert {row.text: row.attempts for row in claimed} == {A: 1, B: 1}
        self.change(desk, [D, B, A], 1)
        (new,) = desk.backend.claim(9, desk.now, 60)
        assert (new.text, new.attempts, desk.backend.state(NOW).failed) == (D, 0, 2)
        assert self.put(desk, [*rows, *claimed]) == 2
        self.check(desk, [D, B, A], [D])
        assert self.put(desk, [new]) == 1
        self.check(desk, [D, B, A])

    @pytest.mark.capability("changing.rows")
    def test_a_failure_that_is_told_late_is_that_of_the_row_where_it_stands_now(self, desk: Desk) -> None:
        """And so it is tried again when it was said to be."""
        self.change(desk, [A, B])
        rows = desk.backend.claim(9, desk.now, 60)
        self.change(desk, [C, A], 1)
        desk.backend.embedding_failed(rows, "no model", desk.now)
        waiting = desk.backend.claim(9, desk.now, 60)
        assert {row.key.seq: (row.text, row.attempts) for row in waiting} == {0: (C, 0), 1: (A, 1)}

    @pytest.mark.capability("changing.rows")
    def test_words_of_rows_that_move_stay_and_others_go(self, desk: Desk) -> None:
        """The vocabulary, by which misspellings are corrected, is that of what is said."""
        self.change(desk, ["mountain harbour", "window yellow"])
        self.change(desk, ["market", "window yellow"], 1)
        self.change(desk, ["boat", "market", "window yellow"], 2)
        asked = desk.ask("mountaim harbuor windoww yelow markett", "trigram")
        assert set(asked.corrections) == {"windoww", "yelow", "markett"}

    @pytest.mark.capability("changing.rows")
    def test_another_owners_rows_that_say_the_same_are_not_touched(self, desk: Desk) -> None:
        """Nor those of another turn."""
        bob = Scope("bob")
        for scope in (ALICE, bob):
            self.change(desk, [A, B], scope=scope)
        desk.say("other", "1", A)
        desk.embed(MODEL)
        self.change(desk, [C, A], 1, scope=bob)
        self.check(desk, [A, B])
        assert [(row.scope, row.text) for row in desk.backend.claim(9, desk.now, 60)] == [(bob, C)]
        assert desk.find(A, "semantic", embedder=MODEL, conversation="other") == [("other", "1", 0)]
        assert desk.find(B, scope=bob) == []

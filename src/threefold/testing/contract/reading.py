"""Reading back what is named: rows of turns, rows alone, records."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from threefold.errors import Forbidden
from threefold.model.rows import RowKey
from threefold.model.scope import Scope
from threefold.model.turn import Replay
from threefold.testing.contract.desk import ALICE, NOW, Desk, full_turn, make_turn, refused
from threefold.testing.contract.suite import Contract

BOB = Scope("bob")


class ReadingContract(Contract):
    """`Store.rows`, `Store.records` and `Store.replays`."""

    @pytest.mark.capability("search.rows")
    def test_rows_come_with_their_turn_and_its_neighbours(self, desk: Desk) -> None:
        """All rows of the named turns, in order of conversation and position; unknown keys are left out."""
        for i in range(5):
            desk.record(make_turn("trip", f"{i}", f"prompt {i}", f"answer {i}", NOW + timedelta(minutes=i)))
        desk.say("other", "x", "prompt")
        two = [("trip", "2", 0), ("trip", "2", 1)]
        assert desk.rows(("trip", "2", 1)) == two
        around = [("trip", f"{i}", s) for i in (1, 2, 3) for s in (0, 1)]
        assert desk.rows(("trip", "2", 0), around=1) == around
        assert desk.rows(("trip", "0", 0), ("other", "x", 7), around=1) == [
            ("other", "x", 0), ("trip", "0", 0), ("trip", "0", 1), ("trip", "1", 0), ("trip", "1", 1),
        ]  # fmt: skip
        assert desk.rows(("trip", "9", 0), ("nowhere", "2", 0)) == []
        assert desk.rows() == []

    @pytest.mark.capability("search.rows")
    def test_rows_come_alone_where_their_turn_is_not_asked_for(self, desk: Desk) -> None:
        """Each once, in order of conversation and position, as they come with their turn; none that are over."""
        for i in range(3):
            desk.record(full_turn("trip", f"{i}", f"mark{i}", NOW + timedelta(minutes=i)))
        desk.say("other", "x", "prompt", ttl=timedelta(hours=1))
        desk.say("apps", "x", "prompt", Scope("alice", app="one"))
        wanted = [("trip", "1", 2), ("other", "x", 0), ("trip", "0", 1), ("trip", "1", 0), ("trip", "1", 2)]
        found = [("other", "x", 0), ("trip", "0", 1), ("trip", "1", 0), ("trip", "1", 2)]
        assert desk.rows(*wanted, ("trip", "1", 99), ("trip", "9", 0), ("nowhere", "1", 0), whole=False) == found
        keys = [RowKey(*key) for key in found]
        whole = {row.key: row for row in desk.backend.rows(ALICE, keys, NOW)}
        assert desk.backend.rows(ALICE, keys, NOW, whole=False) == tuple(whole[key] for key in keys)
        desk.now += timedelta(hours=2)
        assert desk.rows(*wanted, whole=False) == found[1:]
        assert desk.rows(whole=False) == []
        assert desk.rows(*wanted, scope=BOB, whole=False) == []
        for app, seen in (("one", [("apps", "x", 0)]), ("two", []), (None, [("apps", "x", 0)])):
            assert desk.rows(("apps", "x", 0), scope=Scope("alice", app=app), whole=False) == seen

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
        assert desk.backend.records(BOB, keys, now) == ()
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
        assert desk.backend.records(BOB, keys, now, rows=False) == ()
        desk.record(full_turn("apps", "1", "app"), Scope("alice", app="one"))
        with refused(Forbidden):
            desk.backend.records(Scope("alice", app="two"), [("apps", "1")], now, rows=False)

    @pytest.mark.capability("records")
    def test_replays_are_read_alone(self, desk: Desk) -> None:
        """They are those of the records, in order of the keys, each once; of a turn without any it is empty."""
        for i in range(3):
            desk.record(replace(full_turn(f"c{i}", "1", f"mark{i}"), replay=Replay(({"shown": [i, "地図"]},))))
        desk.record(make_turn("empty", "1"))
        desk.say("over", "1", "gone", ttl=timedelta(minutes=1))
        keys = [("c2", "1"), ("c0", "1"), ("none", "1"), ("over", "1"), ("empty", "1"), ("c2", "1"), ("c1", "9")]
        now = NOW + timedelta(hours=1)
        found = desk.backend.replays(ALICE, keys, now)
        assert list(found) == [("c2", "1"), ("c0", "1"), ("empty", "1")]
        assert found == {(r.conversation, r.turn): r.replay for r in desk.backend.records(ALICE, keys, now)}
        assert found["c2", "1"]["events"] == [{"shown": [2, "地図"]}]
        assert found["empty", "1"] == {}
        assert desk.backend.replays(BOB, keys, now) == {}
        assert desk.backend.replays(ALICE, [], now) == {}
        desk.record(full_turn("apps", "1", "app"), Scope("alice", app="one"))
        with refused(Forbidden):
            desk.backend.replays(Scope("alice", app="two"), [("apps", "1")], now)

"""The catalog of turns and the list of conversations."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from threefold.model.turn import Summary
from threefold.testing.contract.desk import ALICE, NOW, Desk, make_turn
from threefold.testing.contract.suite import Contract

MINUTE = timedelta(minutes=1)


class CatalogContract(Contract):
    """`Store.catalog` and `Store.conversations`."""

    @pytest.fixture
    def ten(self, desk: Desk) -> Desk:
        """Ten turns of one conversation, recorded out of order, and two of another."""
        for i in (3, 1, 4, 0, 5, 9, 2, 6, 8, 7):
            desk.say("trip", f"t{i}", f"prompt {i}", at=NOW + i * MINUTE)
        desk.say("other", "t0", "else", at=NOW + 4 * MINUTE)
        desk.say("other", "t1", "else", at=NOW + 20 * MINUTE)
        return desk

    @pytest.mark.capability("catalog.ordinals")
    def test_ordinals_count_turns_by_their_start(self, ten: Desk) -> None:
        """From 1 at the beginning, from -1 at the end, nothing beyond; and each entry and turn knows its own."""
        entries = ten.catalog("trip")
        assert [(e.ordinal, e.turn) for e in entries] == [(i + 1, f"t{i}") for i in range(10)]
        for ordinal, turn in ((1, "t0"), (4, "t3"), (10, "t9"), (-1, "t9"), (-10, "t0")):
            (entry,) = ten.catalog("trip", ordinal=ordinal)
            assert (entry.turn, entry.ordinal) == (turn, ordinal if ordinal > 0 else 11 + ordinal)
            assert ten.stored("trip", turn).ordinal == entry.ordinal
        assert ten.catalog("trip", ordinal=11) == ten.catalog("trip", ordinal=-11) == ()
        assert ten.catalog("nowhere", ordinal=1) == ()

    @pytest.mark.capability("catalog.ordinals")
    def test_windows_and_expired_turns_do_not_shift_ordinals(self, ten: Desk) -> None:
        """The n-th turn is the n-th of the conversation's live turns; a window only says whether it is shown."""
        assert [e.turn for e in ten.catalog("trip", ordinal=4, since=NOW + 2 * MINUTE)] == ["t3"]
        assert ten.catalog("trip", ordinal=1, since=NOW + 2 * MINUTE) == ()
        assert ten.catalog("trip", ordinal=-1, until=NOW + 2 * MINUTE) == ()
        ten.say("trip", "gone", "old", at=NOW - 10 * MINUTE, ttl=MINUTE)
        assert [(e.turn, e.ordinal) for e in ten.catalog("trip", ordinal=1)] == [("t0", 1)]
        assert ten.stored("trip", "t0").ordinal == 1

    @pytest.mark.capability("catalog.paging")
    def test_a_bare_list_is_the_same_but_for_what_costs(self, ten: Desk) -> None:
        """In any order and window; without ordinal, position and what turns were about."""
        for more in ({}, {"newest_first": True, "limit": 3}, {"since": NOW + 3 * MINUTE}):
            whole = ten.catalog("trip", **more)
            bare = tuple(replace(entry, ordinal=0, position=0, about="") for entry in whole)
            assert ten.catalog("trip", bare=True, **more) == bare

    @pytest.mark.capability("catalog.window")
    def test_a_window_has_its_start_and_not_its_end(self, ten: Desk) -> None:
        """Over one conversation or all, either order, with ordinals that do not change."""
        window: dict[str, Any] = {"since": NOW + 3 * MINUTE, "until": NOW + 6 * MINUTE}
        assert [(e.turn, e.ordinal) for e in ten.catalog("trip", **window)] == [("t3", 4), ("t4", 5), ("t5", 6)]
        assert [e.turn for e in ten.catalog("trip", newest_first=True, limit=2)] == ["t9", "t8"]
        everywhere = [(e.conversation, e.turn) for e in ten.catalog(**window)]
        assert everywhere == [("trip", "t3"), ("other", "t0"), ("trip", "t4"), ("trip", "t5")]
        assert ten.catalog("trip", since=NOW + 6 * MINUTE, until=NOW + 3 * MINUTE) == ()

    @pytest.mark.capability("catalog.paging")
    @pytest.mark.parametrize("newest_first", [False, True])
    @pytest.mark.parametrize("conversation", ["trip", None])
    def test_pages_follow_each_other_without_gap_or_repetition(
        self, ten: Desk, newest_first: bool, conversation: str | None
    ) -> None:
        """Also where turns start at the same moment, and where one was removed between two pages."""
        for i in range(5):
            ten.say("trip", f"same{i}", "again", at=NOW + 2 * MINUTE)
        whole = [(e.conversation, e.turn) for e in ten.catalog(conversation, newest_first=newest_first)]
        paged, after = [], None
        while page := ten.catalog(conversation, newest_first=newest_first, limit=3, after=after):
            paged += [(e.conversation, e.turn) for e in page]
            after = (page[-1].started, page[-1].conversation, page[-1].turn)
            if len(paged) == 3:
                ten.purge(*paged[-1])
        assert paged == whole

    @pytest.mark.capability("catalog.about")
    def test_an_entry_says_what_the_turn_was_about(self, desk: Desk) -> None:
        """Its summary, else what the person said first, else the answer; at most 800 characters; with its labels."""
        desk.record(make_turn("trip", "1", ["the prompt", "more"], "the answer", summary=Summary("the sum", NOW)))
        desk.record(make_turn("trip", "2", ["the prompt", "more"], "the answer", status="failed", error="x"))
        desk.record(make_turn("trip", "3", None, "the answer"))
        desk.record(make_turn("trip", "4"))
        desk.record(make_turn("trip", "5", "é" * 900))
        entries = desk.catalog("trip")
        assert [e.about for e in entries] == ["the sum", "the prompt", "the answer", "", "é" * 800]
        assert [e.status for e in entries] == ["completed", "failed", "completed", "completed", "completed"]
        assert {(e.state, e.started, e.ended) for e in entries} == {("minimal", NOW, NOW + timedelta(seconds=1))}

    @pytest.mark.capability("timeline")
    def test_conversations_are_listed_by_their_last_activity(self, ten: Desk) -> None:
        """With title, times and number of turns; a late import does not move one backwards."""
        ten.say("other", "early", "imported", at=NOW - 60 * MINUTE)
        found = ten.backend.conversations(ALICE, NOW, 10)
        second = timedelta(seconds=1)
        assert [(c.id, c.turns, c.started, c.last_activity) for c in found] == [
            ("other", 3, NOW - 60 * MINUTE, NOW + 20 * MINUTE + second),
            ("trip", 10, NOW, NOW + 9 * MINUTE + second),
        ]

    @pytest.mark.capability("timeline")
    def test_a_title_is_given_or_made_of_what_was_said_first(self, desk: Desk) -> None:
        """One line, at most 120 characters; the last title that was given counts."""
        desk.say("a", "1", "what was\n said   first " + "x" * 200)
        desk.say("a", "2", "more")
        assert desk.backend.conversations(ALICE, NOW, 1)[0].title.startswith("what was said first xxx")
        assert len(desk.backend.conversations(ALICE, NOW, 1)[0].title) == 120
        desk.record(make_turn("a", "3", "again", title="Given"))
        desk.say("a", "4", "and again")
        assert desk.backend.conversations(ALICE, NOW, 1)[0].title == "Given"
        desk.record(make_turn("silent", "1", at=NOW + MINUTE))
        assert desk.backend.conversations(ALICE, NOW, 1)[0].title == "silent"

    @pytest.mark.capability("timeline")
    def test_a_title_goes_with_the_turn_it_came_from(self, desk: Desk) -> None:
        """Else words of a purged turn would stay in the list."""
        desk.say("a", "1", "secretword")
        desk.say("a", "2", "second")
        desk.record(make_turn("a", "3", "third", title="Given"))
        desk.purge("a", "3")
        assert desk.backend.conversations(ALICE, NOW, 1)[0].title == "secretword"
        desk.purge("a", "1")
        assert desk.backend.conversations(ALICE, NOW, 1)[0].title == "second"

    @pytest.mark.capability("timeline.paging")
    def test_conversations_are_paged_without_gap_or_repetition(self, desk: Desk) -> None:
        """Also where several were last active at the same moment."""
        for i in range(11):
            desk.say(f"c{i}", "1", "word", at=NOW + (i // 3) * MINUTE)
        whole = desk.conversations()
        assert len(whole) == 11
        paged: list[str] = []
        after = None
        while page := desk.backend.conversations(ALICE, NOW, 2, after):
            paged += [c.id for c in page]
            after = (page[-1].last_activity, page[-1].id)
        assert paged == whole

"""Recording: whole or not at all, once, and only ever to a fuller edition."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from threefold.errors import Conflict, NotFound, Unavailable
from threefold.model.commit import PutFeedback, RecordTurn
from threefold.model.record import Feedback, FileEntry
from threefold.model.turn import Attachment, ContextEvent, Replay, Source, Step
from threefold.testing.contract.desk import ALICE, NOW, Desk, full_turn, make_turn, own, refused
from threefold.testing.contract.suite import Contract

LATER = NOW + timedelta(minutes=5)


class RecordingContract(Contract):
    """`Store.commit` and what comes back of it."""

    @pytest.mark.capability("recording.whole")
    def test_a_turn_comes_back_as_it_was_recorded(self, desk: Desk) -> None:
        """Log, rows, files and replay are equal to what was folded; terms are not given back."""
        turn = replace(
            full_turn("trip", "1", "lisbon"),
            title="The trip",
            context=(ContextEvent("page.opened", {"url": "https://x", "n": [1, 2.5, None, True]}, NOW),),
            steps=(Step("find", NOW, {"q": "a"}, ["b"], "error"),),
            sources=(Source("https://x", "X", "text"),),
            replay=Replay(({"type": "chat.step", "data": 1},), ({"marker": "canvas", "text": "x"},)),
            origin={"importer": "jsonl", "n": 1},
            error="it broke",
            status="failed",
        )
        record = desk.fold(turn)
        assert desk.commit(RecordTurn(record)) == ("created",)
        found = desk.stored("trip", "1")
        assert found.record.log == record.log
        assert found.record.rows == tuple(row._replace(terms=()) for row in record.rows)
        assert sorted(found.record.files, key=lambda f: f.path) == sorted(record.files, key=lambda f: f.path)
        assert found.record.replay == record.replay
        assert (found.record.digest, found.record.head, found.record.title) == (record.digest, record.head, "The trip")
        assert (found.ordinal, found.feedback) == (1, ())

    @pytest.mark.capability("recording.whole")
    @pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
    def test_every_ending_is_recorded_even_when_nothing_was_said(self, desk: Desk, status: str) -> None:
        """A turn without any text is a turn."""
        desk.record(make_turn("trip", "empty", status=status))
        assert desk.stored("trip", "empty").record.log.status == status
        assert [entry.turn for entry in desk.catalog("trip")] == ["empty"]

    @pytest.mark.capability("recording.idempotent")
    def test_recording_again_changes_nothing(self, desk: Desk) -> None:
        """The same turn is there once, whatever was tried how often."""
        turn = full_turn("trip", "1", "lisbon")
        assert [desk.record(turn) for _ in range(3)] == ["created", "unchanged", "unchanged"]
        assert len(desk.find("lisbon")) == len(desk.stored("trip", "1").record.rows)
        assert desk.backend.state(NOW).counts["turns"] == 1

    @pytest.mark.capability("recording.supersede")
    def test_a_rich_log_supersedes_a_minimal_one_and_never_the_reverse(self, desk: Desk) -> None:
        """none < minimal < rich."""
        desk.record(make_turn("trip", "1", "old words", "old answer"))
        assert desk.record(make_turn("trip", "1", "new words", "fresh answer", NOW), rich=True) == "replaced"
        assert desk.record(make_turn("trip", "1", "old words", "old answer")) == "unchanged"
        assert desk.stored("trip", "1").record.state == "rich"
        assert (desk.turns("old"), desk.turns("fresh")) == (set(), {("trip", "1")})

    @pytest.mark.capability("recording.supersede")
    def test_a_fuller_edition_replaces_a_shorter_one(self, desk: Desk) -> None:
        """As when a session file is imported again after it has grown."""
        desk.record(make_turn("trip", "1", "first", "partial"))
        desk.react("trip", "1", "ok")
        grown = make_turn("trip", "1", ["first", "second"], "complete", ended=LATER)
        assert desk.record(grown) == "replaced"
        assert desk.record(make_turn("trip", "1", "first", "partial")) == "unchanged"
        assert desk.turns("partial") == set()
        assert desk.turns("complete") == desk.turns("second") == {("trip", "1")}
        assert [entry.turn for entry in desk.catalog("trip")] == ["1"]
        assert [f.reaction for f in desk.stored("trip", "1").feedback] == ["ok"]
        assert [c.turns for c in desk.backend.conversations(ALICE, NOW, 5)] == [1]

    @pytest.mark.capability("recording.supersede")
    def test_times_and_title_of_the_conversation_follow_the_edition_that_is_kept(self, desk: Desk) -> None:
        """Nothing of the replaced edition is left in the timeline."""
        desk.record(make_turn("trip", "1", "oldtitle", at=NOW, ended=LATER))
        desk.record(make_turn("trip", "1", "newtitle", at=NOW + timedelta(seconds=5)), rich=True)
        (timeline,) = desk.backend.conversations(ALICE, NOW, 5)
        assert timeline.title == "newtitle"
        assert timeline.started == NOW + timedelta(seconds=5)
        assert timeline.last_activity == NOW + timedelta(seconds=6)

    @pytest.mark.capability("recording.supersede")
    def test_another_turn_under_a_taken_id_is_a_conflict(self, desk: Desk) -> None:
        """A record is never edited."""
        desk.record(make_turn("trip", "1", "first"))
        with refused(Conflict):
            desk.record(make_turn("trip", "1", "something else", ended=LATER))
        assert desk.turns("something") == set()
        assert desk.turns("first") == {("trip", "1")}

    @pytest.mark.capability("recording.supersede-files")
    @pytest.mark.parametrize("rich", [False, True])
    def test_files_that_both_editions_have_are_kept(self, desk: Desk, rich: bool) -> None:
        """Also after maintenance; what only the old edition had goes."""
        kept, old = (Attachment("a", b"kept bytes", NOW), Attachment("b", b"old bytes", NOW))
        desk.record(make_turn("trip", "1", "first", attachments=(kept, old)))
        digests = [file.digest for file in desk.stored("trip", "1").record.files]
        desk.record(make_turn("trip", "1", "first", attachments=(kept,), ended=LATER), rich=rich)
        desk.backend.expire(NOW)
        assert desk.blobs.get(ALICE, digests[0]) == b"kept bytes"
        assert not desk.blobs.has(ALICE, digests[1])

    @pytest.mark.capability("recording.atomic")
    def test_a_commit_happens_whole_or_not_at_all(self, desk: Desk) -> None:
        """A write that fails takes those before and after it along."""
        desk.record(make_turn("trip", "taken", "first"))
        good = RecordTurn(desk.fold(make_turn("trip", "good", "goodword")))
        bad = RecordTurn(desk.fold(make_turn("trip", "taken", "something else")))
        nowhere = PutFeedback("trip", "nowhere", Feedback("ok", NOW))
        for writes, error in (((good, bad), Conflict), ((bad, good), Conflict), ((good, nowhere), NotFound)):
            with refused(error):
                desk.commit(*writes)
            assert desk.turn("trip", "good") is None
            assert desk.turns("goodword") == set()
        assert desk.commit(good) == ("created",)

    @pytest.mark.capability("recording.order")
    def test_writes_of_a_commit_see_those_before_them(self, desk: Desk) -> None:
        """A turn and the feedback on it can be committed together; the same turn twice is one turn."""
        record = RecordTurn(desk.fold(make_turn("trip", "1", "first")))
        outcomes = desk.commit(record, PutFeedback("trip", "1", Feedback("ok", NOW)), record)
        assert outcomes == ("created", "created", "unchanged")
        assert [f.reaction for f in desk.stored("trip", "1").feedback] == ["ok"]
        assert desk.turns("first") == {("trip", "1")}
        assert desk.commit() == ()

    @pytest.mark.capability("recording.missing-bytes")
    def test_a_turn_whose_bytes_are_not_kept_is_refused(self, desk: Desk) -> None:
        """So that no reference leads to nothing."""
        record = desk.fold(make_turn("trip", "1", "first"))
        with refused(Unavailable):
            desk.commit(RecordTurn(replace(record, files=(FileEntry("files/x", "0" * 64, 1),))))
        assert desk.turn("trip", "1") is None
        assert desk.conversations() == []

    @pytest.mark.capability("recording.any-text")
    @pytest.mark.parametrize(
        "text", ["a\x00b", "\ufeffbom", "e\u0301 \u200d \u202e rtl", "🕯️👩‍👩‍👧", "\r\n\t\x1b[0m", "𠀀𪛖", "x" * 200_000]
    )
    def test_any_text_comes_back_exactly(self, desk: Desk, text: str) -> None:
        """NUL, control characters, combining marks, every plane, any length."""
        desk.record(make_turn("trip", "1", f"first {text} last", text))
        row = desk.stored("trip", "1").record.rows[0]
        assert row.text == f"first {text} last"
        assert desk.turns("first") == desk.turns("last") == {("trip", "1")}
        assert desk.catalog("trip")[0].about == row.text[:800]

    @pytest.mark.capability("recording.threads")
    def test_many_threads_record_at_once(self, desk: Desk) -> None:
        """Nothing is lost, nothing is there twice, a conflict of one is not that of another."""
        errors: list[Exception] = []

        def work(n: int) -> None:
            for i in range(10):
                try:
                    desk.say(f"c{n % 3}", f"{n}-{i}", own(n % 3))
                    with refused(Conflict):
                        desk.say(f"c{n % 3}", f"{n}-{i}", "another text")
                except Exception as error:  # noqa: BLE001 - shown below
                    errors.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert len(desk.catalog()) == 80
        assert [len(desk.find(own(n))) for n in range(3)] == [30, 30, 20]

    @pytest.mark.capability("recording.durable")
    def test_what_was_recorded_is_there_after_reopening(self, desk: Desk, reopen: Callable[[Desk], Desk]) -> None:
        """Rows, search, files, feedback, queue."""
        desk.record(full_turn("trip", "1", "lisbon"))
        desk.react("trip", "1", "not_ok", text="no")
        before = desk.stored("trip", "1")
        desk = reopen(desk)
        assert desk.stored("trip", "1") == before
        assert desk.turns("lisbon") == {("trip", "1")}
        assert desk.blobs.get(ALICE, before.record.files[0].digest)
        assert desk.backend.state(NOW).pending == len(before.record.rows)

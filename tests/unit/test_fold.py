"""Folding a turn: the order of blocks, the rows by role, batches, names of files, limits, identity of content."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from threefold.errors import InvalidInput, ThreefoldError
from threefold.model.commit import Recorded, supersede
from threefold.model.scope import Scope
from threefold.model.turn import (
    Attachment,
    Completion,
    ContextEvent,
    Note,
    PublishedFile,
    Replay,
    Source,
    Step,
    Submission,
    Summary,
    Turn,
)
from threefold.realms.conv.fold import fold
from threefold.realms.conv.limits import MAX_ANCHOR, MAX_SUBMISSIONS, MAX_SUMMARY

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
SCOPE = Scope("alice", app="app", agent="agent")


def turn(**more: Any) -> Turn:
    return Turn("trip", "t", NOW, NOW + timedelta(seconds=1), **more)


def folded(**more: Any):
    return fold(SCOPE, turn(**more), None).record


EVERYTHING = turn(
    submissions=(
        Submission("prompt", "one", NOW, "b1", "Ann"),
        Submission("followup", "two", NOW),
        Submission("steer", "three", NOW),
    ),
    context=(ContextEvent("page", {"n": 1}, NOW), ContextEvent("page", None, NOW)),
    attachments=(Attachment("a.txt", b"a", NOW, "text/plain", "said a"), Attachment("b.png", b"b", NOW)),
    steps=(Step("find", NOW, {"q": 1}, "r"), Step("look", NOW, status="error")),
    files=(PublishedFile("out/x.md", b"x", NOW), PublishedFile("y.md", b"y", NOW)),
    notes=(Note("noted", NOW, "decision"),),
    summary=Summary("summed", NOW, ("conv:x",), ("Alfama", "river")),
    completion=Completion("done", NOW, "Bot"),
    sources=(Source("https://x", "X"),),
    replay=Replay(({"type": "chat.step"},), ()),
)


def test_blocks_come_in_the_order_of_the_minimal_log() -> None:
    blocks = fold(SCOPE, EVERYTHING, None).record.log.blocks
    assert [(b.type, b.path) for b in blocks] == [
        ("user.prompt", "user.prompt"),
        ("user.followup", "user.prompt.1"),
        ("user.steer", "user.prompt.2"),
        ("context.event", "events/1"),
        ("context.event", "events/2"),
        ("user.attachment", "user.attachments/a.txt"),
        ("user.attachment", "user.attachments/b.png"),
        ("assistant.step", "step_1.call"),
        ("assistant.step", "step_2.call"),
        ("assistant.file", "files/out/x.md"),
        ("assistant.file", "files/y.md"),
        ("agent.note", "notes.1"),
        ("working.summary", "conv.working.summary"),
        ("assistant.completion", "assistant.completion"),
    ]


def test_the_envelope_says_what_the_turn_was() -> None:
    log = fold(SCOPE, EVERYTHING, None).record.log
    assert (log.turn, log.started, log.ended, log.status) == ("t", NOW, NOW + timedelta(seconds=1), "completed")
    assert log.counts["context.event"] == 2
    assert log.sources == ({"url": "https://x", "title": "X"},)


def test_rows_are_one_for_each_text_in_the_order_of_blocks() -> None:
    rows = fold(SCOPE, EVERYTHING, None).record.rows
    assert [(r.seq, r.role, r.event_type, r.text, r.batch) for r in rows] == [
        (0, "user", "event.user.prompt", "one", "b1"),
        (1, "user", "event.user.followup", "two", "t.batch"),
        (2, "user", "event.user.steer", "three", "t.batch"),
        (3, "attachment", "event.user.attachment", "said a", "t.batch"),
        (4, "note", "agent.note", "noted", None),
        (5, "summary", "agent.summary", "summed", None),
        (6, "summary", "agent.anchors", "Alfama\nriver", None),
        (7, "assistant", "agent.completion", "done", None),
    ]
    assert (rows[0].spoken, rows[7].spoken, rows[1].spoken) == ("Ann: one", "Bot: done", "two")
    assert "ann" in rows[0].terms


def test_blank_texts_have_blocks_and_no_rows() -> None:
    record = folded(submissions=(Submission("prompt", "  \n", NOW),), completion=Completion("", NOW))
    assert [b.text for b in record.log.blocks] == ["  \n", ""]
    assert record.rows == ()


def test_names_of_attachments_are_distinct_and_lose_their_folders() -> None:
    names = ["a.txt", "a.txt", "a.txt", "x/y/a.txt", "C:\\x\\b", "b", "b", "a-2.txt", ".hidden", ".hidden"]
    record = folded(attachments=tuple(Attachment(n, str(i).encode(), NOW) for i, n in enumerate(names)))
    paths = [f.path.removeprefix("user.attachments/") for f in record.files]
    assert len(set(paths)) == len(names)
    assert paths[:7] == ["a.txt", "a-2.txt", "a-3.txt", "a-4.txt", "b", "b-2", "b-3"]


def test_of_a_path_that_was_published_twice_the_later_bytes_are_kept() -> None:
    both = fold(SCOPE, turn(files=(PublishedFile("x", b"old", NOW), PublishedFile("x", b"new", NOW))), None)
    assert [(f.path, f.size) for f in both.record.files] == [("files/x", 3)]
    assert list(both.blobs.values()) == [b"new"]


@pytest.mark.parametrize("path", ["", " ", "/x", "../x", "a//b", "a/./b", "a/../b", "a/", "a\\b", "x\x00", "\ud800"])
def test_paths_that_lead_elsewhere_are_refused(path: str) -> None:
    with pytest.raises(InvalidInput, match="path"):
        folded(files=(PublishedFile(path, b"", NOW),))


@pytest.mark.parametrize(
    "more",
    [
        {"submissions": (Submission("prompt", "x", NOW),) * (MAX_SUBMISSIONS + 1)},
        {"summary": Summary("x" * (MAX_SUMMARY + 1), NOW)},
        {"summary": Summary("x", NOW, ("r",) * 65)},
        {"summary": Summary("x", NOW, (), ("a",) * 33)},
        {"summary": Summary("x", NOW, (), ("a" * (MAX_ANCHOR + 1),))},
        {"summary": Summary("x", NOW, (), ("two\nlines",))},
        {"steps": (Step("x", NOW, object()),)},
        {"steps": (Step("x", NOW, float("nan")),)},
        {"steps": (Step("x", NOW, {1, 2}),)},
        {"context": (ContextEvent("x", b"bytes", NOW),)},
        {"origin": {"x": object()}},
        {"replay": Replay(({"x": object()},), ())},
    ],
)
def test_what_cannot_be_kept_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        folded(**more)


def test_a_turn_may_not_end_before_it_starts() -> None:
    with pytest.raises(InvalidInput, match="before it started"):
        fold(SCOPE, replace(turn(), ended=NOW - timedelta(seconds=1)), None)


@pytest.mark.parametrize("depth", [50, 500, 5_000, 100_000])
def test_deep_values_are_kept_or_refused_and_nothing_else(depth: int) -> None:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    with contextlib.nullcontext() if depth == 50 else contextlib.suppress(ThreefoldError):
        assert folded(steps=(Step("x", NOW, value),)).digest


def test_lone_surrogates_become_storable_text_everywhere() -> None:
    bad = "a\ud800b"
    record = folded(
        submissions=(Submission("prompt", bad, NOW),),
        steps=(Step(bad, NOW, {bad: bad}, bad),),
        notes=(Note(bad, NOW, bad),),
        summary=Summary(bad, NOW, (bad,), (bad,)),
        completion=Completion(bad, NOW),
        sources=(Source(bad, bad, bad),),
        context=(ContextEvent("x", bad, NOW),),
        origin={bad: bad},
        error=bad,
        title=bad,
    )
    assert repr(record.log).encode()
    assert {row.text for row in record.rows} == {"a\ufffdb"}


def test_equal_content_has_an_equal_digest_and_labels_do_not_count() -> None:
    one, other = fold(SCOPE, EVERYTHING, None).record, fold(Scope("bob"), EVERYTHING, NOW).record
    assert (one.digest, one.head) == (other.digest, other.head)
    assert (
        folded(steps=(Step("x", NOW, {"a": 1, "b": 2}),)).digest
        == folded(steps=(Step("x", NOW, {"b": 2, "a": 1}),)).digest
    )
    assert folded(completion=Completion("x", NOW)).digest != folded(completion=Completion("y", NOW)).digest
    assert (one.app, one.agent, other.app, other.expires) == ("app", "agent", None, NOW)


def recorded(record, **more: Any) -> Recorded:
    values = {"state": record.state, "digest": record.digest, "head": record.head, "ended": record.log.ended}
    return Recorded(**(values | more))


def said(*texts: str, ended: int = 1, answer: str = "x", rich: bool = False):
    record = fold(
        SCOPE,
        replace(
            turn(submissions=tuple(Submission("prompt", t, NOW) for t in texts), completion=Completion(answer, NOW)),
            ended=NOW + timedelta(seconds=ended),
        ),
        None,
    ).record
    return replace(record, state="rich", digest="r" + record.digest[1:]) if rich else record


@pytest.mark.parametrize(
    ("stored", "new", "outcome"),
    [
        (None, said("a"), "created"),
        (said("a"), said("a"), "unchanged"),
        (said("a"), said("a", answer="y", ended=2), "replaced"),
        (said("a"), said("a", "b", ended=2), "replaced"),
        (said("a", "b", ended=2), said("a"), "unchanged"),
        (said("a"), said("z", rich=True), "replaced"),
        (said("a", rich=True), said("a", answer="y", ended=9), "unchanged"),
        (said("a", rich=True), said("a", ended=9, rich=True), "replaced"),
        (said("a"), said("z", ended=9), "conflict"),
        (said("a", "b"), said("a", "c", ended=9), "conflict"),
        (said("a", "b", ended=2), said("a", ended=9), "conflict"),
    ],
)
def test_what_recording_again_does(stored, new, outcome: str) -> None:
    if outcome == "conflict":
        with pytest.raises(ThreefoldError, match="new turn id"):
            supersede(recorded(stored), new)
    else:
        assert supersede(None if stored is None else recorded(stored), new) == outcome

"""Export and restore: everything of a user, checked byte by byte, idempotent."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

import threefold
from threefold.testing.fakes import HashEmbedder


@pytest.fixture
def db(tmp_path: Path) -> Iterator[threefold.Threefold]:
    with threefold.open(tmp_path / "store", embedder=HashEmbedder(), background=False) as db:
        yield db


def fill(alice: threefold.Handle) -> None:
    with alice.turn("trip", turn="1", title="Lisbon", started="2026-05-01T10:00:00Z") as turn:
        turn.prompt("Plan a weekend in Lisbon", at="2026-05-01T10:00:00Z", author="Ann")
        turn.attach(("map.pdf", b"\x00\xffmap"), text="streets of Alfama", at="2026-05-01T10:00:01Z")
        turn.step("find", {"city": "Lisbon"}, result=["a", "b"], at="2026-05-01T10:00:02Z")
        turn.publish("plan.md", "# plan", at="2026-05-01T10:00:03Z")
        turn.source("https://example.org", title="Ferries")
        turn.note("prefers trains", tag="preference", at="2026-05-01T10:00:04Z")
        turn.summary("weekend plan", anchors=["Alfama"], at="2026-05-01T10:00:05Z")
        turn.event("chat.citations", {"n": 1}, at="2026-05-01T10:00:05Z")
        turn.stream("canvas", "drawn")
        turn.answer("Here is the plan", at="2026-05-01T10:00:06Z")
    alice.conv.feedback(str(turn.ref), "ok", "nice")
    alice.conv.feedback(str(turn.ref), "not_ok", "slow", origin="machine")
    for i in range(30):
        with alice.turn(f"c{i % 4}", turn=f"x{i}", started=f"2026-06-{i % 28 + 1:02}") as turn:
            turn.prompt(f"question {i} about weekend tables and plans", at=f"2026-06-{i % 28 + 1:02}")
            turn.answer(f"answer {i} with Lisbon in it" if i % 3 else "short", at=f"2026-06-{i % 28 + 1:02}")


def test_export_wipe_restore_gives_everything_back(db: threefold.Threefold, tmp_path: Path) -> None:
    alice = db.user("alice", agent="planner")
    fill(alice)
    db.embed_pending()
    questions = ("weekend in Lisbon", "tables", "Alfama streets", "pln weekend")

    def everything() -> object:
        turns = alice.conv.turns(limit=100)
        views = [alice.conv.turn(f"conv:ar:conv_{t.conversation}.turn_{t.turn}.turn.log") for t in turns]
        timeless = threefold.Ranking(recency=0)
        found = [alice.conv.search(question, limit=20, ranking=timeless) for question in questions]
        hits = [[(hit.ref, hit.score) for hit in each] for each in found]
        files = [alice.read(card.ref) for view in views for card in (*view.attachments, *view.files)]
        return views, alice.conv.conversations(), hits, files

    before = everything()
    done = alice.export(tmp_path / "all.zip")
    assert (done.turns, done.blobs) == (31, 2)
    alice.forget()
    assert alice.conv.conversations() == ()
    restored = threefold.restore(tmp_path / "all.zip", into=db)
    assert (restored.created, restored.unchanged, restored.blobs) == (31, 0, 2)
    db.embed_pending()
    assert everything() == before
    again = threefold.restore(tmp_path / "all.zip", into=db)
    assert (again.created, again.unchanged) == (0, 31)
    assert everything() == before


def test_restore_for_another_user_keeps_both_apart(db: threefold.Threefold, tmp_path: Path) -> None:
    fill(db.user("alice"))
    db.user("alice").export(tmp_path / "all.zip")
    threefold.restore(tmp_path / "all.zip", into=db, user="bob")
    db.user("alice").forget()
    assert len(db.user("bob").conv.turns(limit=100)) == 31
    assert db.user("bob").read("conv:fi:conv_trip.turn_1.user.attachments/map.pdf") == b"\x00\xffmap"


def test_a_moved_between_back_ends_record_is_the_same(db: threefold.Threefold, tmp_path: Path) -> None:
    fill(db.user("alice"))
    db.user("alice").export(tmp_path / "a.zip")
    with threefold.open(":memory:", embedder=None) as memory:
        threefold.restore(tmp_path / "a.zip", into=memory)
        memory.user("alice").export(tmp_path / "b.zip")
    lines = [zipfile.ZipFile(tmp_path / f"{name}.zip").read("turns.jsonl") for name in "ab"]
    assert lines[0] == lines[1]


def test_damaged_archives_are_refused_with_the_place(db: threefold.Threefold, tmp_path: Path) -> None:
    fill(db.user("alice"))
    db.user("alice").export(tmp_path / "all.zip")
    with zipfile.ZipFile(tmp_path / "all.zip") as whole:
        parts = {name: whole.read(name) for name in whole.namelist()}

    numbers = count()

    def restored(changed: dict[str, bytes]) -> None:
        with zipfile.ZipFile(tmp_path / "bad.zip", "w") as bad:
            for name, data in {**parts, **changed}.items():
                bad.writestr(name, data)
        threefold.restore(tmp_path / "bad.zip", into=db, user=f"user {next(numbers)}")

    blob = next(name for name in parts if name.startswith("blobs/"))
    with pytest.raises(threefold.IntegrityError, match="line 2"):
        restored({"turns.jsonl": parts["turns.jsonl"].split(b"\n")[0] + b"\n{broken"})
    with pytest.raises(threefold.IntegrityError, match="not those that were exported"):
        restored({blob: b"other bytes"})
    with pytest.raises(threefold.IntegrityError, match="format"):
        restored({"manifest.json": json.dumps({"format": "threefold.export.v99"}).encode()})
    (tmp_path / "bad.zip").write_bytes(b"not a zip")
    with pytest.raises(threefold.IntegrityError, match="no zip file"):
        threefold.restore(tmp_path / "bad.zip", into=db)
    with pytest.raises(threefold.NotFound, match="does not exist"):
        threefold.restore(tmp_path / "none.zip", into=db)


def test_a_failed_export_leaves_what_was_there(db: threefold.Threefold, tmp_path: Path) -> None:
    fill(db.user("alice"))
    with pytest.raises(threefold.Unavailable, match="export"):
        db.user("alice").export(tmp_path / "no-such-folder" / "all.zip")
    assert not list(tmp_path.glob("**/*.part"))


def row(role: str, text: str) -> dict[str, object]:
    return {"seq": 0, "role": role, "event_type": "x", "path": "user.prompt", "text": text, "at": "2026-01-01"}


@pytest.mark.parametrize(
    "change",
    [
        {"state": "weird"},
        {"head": 5},
        {"replay": None},
        {"title": 5},
        {"turn": 5},
        {"digest": "0" * 64},
        {
            "rows": [
                {"seq": 0, "role": "nobody", "event_type": "x", "path": "user.prompt", "text": "t", "at": "2026-01-01"}
            ]
        },
        {"rows": [row("user", "forged")]},
        {"files": [{"path": "files/x", "digest": 5, "size": 1}]},
        {"log": 3},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_changed_turn_is_refused_and_nothing_of_it_is_kept(
    db: threefold.Threefold, tmp_path: Path, change: dict[str, object]
) -> None:
    with db.user("alice").turn("trip", turn="1") as turn:
        turn.prompt("said")
    db.user("alice").export(tmp_path / "all.zip")
    with zipfile.ZipFile(tmp_path / "all.zip") as whole:
        line, manifest = json.loads(whole.read("turns.jsonl")), whole.read("manifest.json")
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as bad:
        bad.writestr("turns.jsonl", json.dumps({**line, **change}))
        bad.writestr("manifest.json", manifest)
    with pytest.raises(threefold.IntegrityError, match="line 1"):
        threefold.restore(tmp_path / "bad.zip", into=db, user="bob")
    assert db.user("bob").conv.conversations() == ()


def test_a_flipped_byte_anywhere_is_one_of_our_errors(db: threefold.Threefold, tmp_path: Path) -> None:
    fill(db.user("alice"))
    db.user("alice").export(tmp_path / "all.zip")
    data = (tmp_path / "all.zip").read_bytes()
    for place in range(0, len(data), max(1, len(data) // 150)):
        (tmp_path / "bad.zip").write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        with suppress(threefold.ThreefoldError):
            threefold.restore(tmp_path / "bad.zip", into=db, user="bob")
    assert db.state(check=True).problems == ()


def test_lost_bytes_do_not_keep_the_rest_from_being_exported(db: threefold.Threefold, tmp_path: Path) -> None:
    fill(db.user("alice"))
    lost = next((tmp_path / "store" / "blobs").glob("*/??/*"))
    lost.unlink()
    done = db.user("alice").export(tmp_path / "all.zip")
    assert (done.turns, done.blobs, done.missing) == (31, 1, (lost.name,))
    assert threefold.restore(tmp_path / "all.zip", into=db, user="bob").created == 31

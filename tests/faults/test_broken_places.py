"""Disk full, folders that cannot be used, damaged files, newer schemas: one clear line, and nothing half written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

import threefold
from threefold.errors import Conflict, IntegrityError, InvalidInput, NotFound, ThreefoldError, Unavailable

root = hasattr(os, "geteuid") and os.geteuid() == 0


def open_store(folder: Path) -> threefold.Threefold:
    return threefold.open(folder, embedder=None, background=False, durable=False)


def record(db: threefold.Threefold, name: str, text: str = "a prompt", data: bytes | None = None) -> str:
    with db.user("alice").turn("trip", turn=name) as turn:
        turn.prompt(text)
        if data is not None:
            turn.attach(("data.bin", data))
    return str(turn.ref)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[threefold.Threefold]:
    with open_store(tmp_path / "store") as db:
        record(db, "first", data=b"first bytes")
        yield db


def one_line(error: BaseException) -> str:
    text = str(error)
    assert text
    assert "\n" not in text
    assert "Traceback" not in text
    return text


def test_a_full_disk_keeps_nothing_of_the_turn_and_all_of_the_others(db: threefold.Threefold) -> None:
    writer = db._backend._writer
    pages = writer.outside(lambda c: c.execute("PRAGMA page_count").fetchone()[0])
    writer.outside(lambda c: c.execute(f"PRAGMA max_page_count = {pages + 2}").fetchall())
    for size in (100_000, 5_000_000):
        with pytest.raises(Unavailable) as failed:
            record(db, f"large{size}", "word " * size)
        assert "full" in one_line(failed.value)
    writer.outside(lambda c: c.execute("PRAGMA max_page_count = 1000000").fetchall())
    assert [entry.turn for entry in db.user("alice").conv.turns()] == ["first"]
    assert db.state(check=True).problems == ()
    record(db, "second")
    assert len(db.user("alice").conv.search("prompt")) == 2


def test_a_full_disk_for_one_is_an_error_for_those_of_its_group_and_lost_to_none(db: threefold.Threefold) -> None:
    import threading

    writer = db._backend._writer
    pages = writer.outside(lambda c: c.execute("PRAGMA page_count").fetchone()[0])
    writer.outside(lambda c: c.execute(f"PRAGMA max_page_count = {pages + 40}").fetchall())
    kept, refused = [], []

    def work(n: int) -> None:
        try:
            record(db, f"{n}", "word " * (50 if n % 2 else 200_000))
            kept.append(f"{n}")
        except Unavailable as error:
            refused.append(one_line(error))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(kept) + len(refused) == 16
    assert refused
    assert {entry.turn for entry in db.user("alice").conv.turns(limit=100)} == {"first", *kept}
    assert db.state(check=True).problems == ()


@pytest.mark.skipif(os.name != "posix", reason="needs resource limits")
def test_files_that_may_not_grow_any_more(tmp_path: Path) -> None:
    script = """
import resource, signal, sys
import threefold
from threefold.errors import Unavailable
db = threefold.open(sys.argv[1], embedder=None, background=False)
user = db.user("alice")
with user.turn("trip", turn="small") as turn: turn.prompt("small")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
refused = 0
for i in range(3):
    try:
        with user.turn("trip", turn=f"large{i}") as turn:
            turn.prompt("word " * 1_000_000)
            if i == 2: turn.attach(("big", b"x" * 2**21))
    except Unavailable as error:
        refused += 1
        assert "\\n" not in str(error), error
from pathlib import Path
print(refused, [t.turn for t in user.conv.turns()], list(Path(sys.argv[1]).rglob("*.part")))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], check=False, capture_output=True, text=True, timeout=120
    )
    assert (done.stdout.strip(), done.stderr) == ("3 ['small'] []", "")
    with open_store(tmp_path) as db:
        assert [entry.turn for entry in db.user("alice").conv.turns()] == ["small"]
        assert db.state(check=True).problems == ()


@pytest.mark.skipif(root, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(Unavailable) as failed:
            open_store(tmp_path / "store")
        assert "write" in one_line(failed.value)
    finally:
        tmp_path.chmod(0o700)


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("not a folder")
    for place in (tmp_path / "store", tmp_path / "store" / "below"):
        with pytest.raises(Unavailable) as failed:
            open_store(place)
        assert "store" in one_line(failed.value)
    assert (tmp_path / "store").read_text() == "not a folder"


def test_a_folder_where_the_file_should_be(tmp_path: Path) -> None:
    (tmp_path / "record.db").mkdir()
    with pytest.raises(Unavailable) as failed:
        open_store(tmp_path)
    assert "record.db" in one_line(failed.value)


@pytest.mark.parametrize("content", [b"this is no database" * 100, b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_file_that_is_no_database(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "record.db").write_bytes(content)
    with pytest.raises((IntegrityError, Unavailable)) as failed:
        open_store(tmp_path)
    assert "record.db" in one_line(failed.value)
    assert (tmp_path / "record.db").read_bytes() == content


def test_a_damaged_file_is_reported_and_never_taken_for_empty(tmp_path: Path) -> None:
    with open_store(tmp_path) as db:
        for i in range(200):
            record(db, f"{i}", f"prompt number {i} " + "filler " * 50)
    path = tmp_path / "record.db"
    data = bytearray(path.read_bytes())
    data[8192 : len(data) - 4096] = os.urandom(len(data) - 12288)
    path.write_bytes(data)
    seen = []
    try:
        with open_store(tmp_path) as db:
            for use in (
                lambda: db.state(check=True).problems,
                lambda: db.user("alice").conv.search("prompt"),
                db.user("alice").conv.turns,
                lambda: record(db, "new"),
                lambda: db.user("alice").forget(),
            ):
                try:
                    seen.append(use())
                except ThreefoldError as error:
                    seen.append(one_line(error))
    except ThreefoldError as error:
        seen.append(one_line(error))
    assert any("record.db" in str(s) or "database" in str(s) for s in seen), seen


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    other = apsw.Connection(str(tmp_path / "record.db"))
    other.execute("PRAGMA user_version = 9999")
    other.close()
    with pytest.raises(Conflict) as failed:
        open_store(tmp_path)
    assert "update threefold" in one_line(failed.value)
    assert apsw.Connection(str(tmp_path / "record.db")).execute("PRAGMA user_version").fetchone() == (9999,)


def test_blobs_that_were_damaged_or_lost(db: threefold.Threefold, tmp_path: Path) -> None:
    user = db.user("alice")
    card = user.conv.turn(user.conv.search("prompt")[0].ref).attachments[0]
    (file,) = [p for p in (tmp_path / "store" / "blobs").rglob("*") if p.is_file()]
    file.chmod(0o600)
    file.write_bytes(b"other bytes")
    with pytest.raises(IntegrityError) as failed:
        user.read(card.ref)
    assert card.digest in one_line(failed.value)
    file.unlink()
    with pytest.raises(NotFound) as lost:
        user.read(card.ref)
    one_line(lost.value)
    file.parent.rmdir()
    file.parent.parent.rmdir()
    file.parent.parent.write_text("a file where the owner's folder was")
    with pytest.raises(Unavailable) as refused:
        record(db, "second", data=b"second bytes")
    one_line(refused.value)
    assert [entry.turn for entry in user.conv.turns()] == ["first"]


def test_a_closed_store_says_so(db: threefold.Threefold) -> None:
    user = db.user("alice")
    db.close()
    for use in (lambda: record(db, "x"), lambda: user.conv.search("x"), db.state, db.expire, user.forget):
        with pytest.raises(Unavailable) as failed:
            use()
        assert "closed" in one_line(failed.value)


def test_names_that_are_no_store(tmp_path: Path) -> None:
    for name in ("", "  ", "nosuch://host/x", "a\x00b"):
        with pytest.raises(InvalidInput) as failed:
            threefold.open(name, embedder=None)
        assert "store" in one_line(failed.value)
    for settings in ({"embeder": None}, {"ttl": -1}, {"embedder": "nosuch"}):
        with pytest.raises(InvalidInput) as failed:
            threefold.open(tmp_path, **settings)
        assert next(iter(settings)) in one_line(failed.value)

"""Schemas move forward only, whole or not at all; what was released is never edited."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

import threefold
from threefold.backends.migrations import Migration, load, pending
from threefold.backends.opening import migrate_store
from threefold.backends.sqlite import schema
from threefold.errors import Conflict, IntegrityError, NotFound, ThreefoldError
from threefold.testing.fakes import HashEmbedder

# SHA-256 of every released migration. A schema changes by a new file: never change a line here.
DIGESTS = {
    "threefold.backends.sqlite": {
        "0001_record": "4113e3dae2d2d94c89736e867a862edd4b9d8a11ac1a555366d8f4ad8786898a",
        "0002_words": "6e0cde0f277de4eadfb56a88d5388c1d3895cc660e418ef6fab4009cae4e7353",
        "0003_lighter": "3017c14f941fcd237c136358e827562355c27622c1bd180a68d93c56e0bbb0e6",
        "0004_growing_vectors": "de7d07c160f05db87d11a38c8c11e55266cff82285ed0ccfba7421431e615665",
        "0005_columns": "4b4e6c105a5244f1900b4ac09dde245709c9f2a01ea57e9a6ea4f66c680413e2",
        "0006_realms": "f52ede1b2626f5cf94b5f43fff3cc60b2d9366345f1964a0256afaa9145fa05a",
    },
    "threefold.backends.postgres": {
        "0001_record": "82df2980f691011d01ce1d8843d650be23754f1e333bccb3ca77bae42d1dcf91",
        "0002_realms": "6dab945b1134f9c76d8887884f15d55df07a70c14dfa203b3495126d31597674",
    },
}


def migration(number: int, sql: str) -> Migration:
    return Migration(number, "test", sql, hashlib.sha256(sql.encode()).hexdigest())


def open_store(folder: Path) -> threefold.Threefold:
    return threefold.open(folder, embedder=HashEmbedder(16), background=False, durable=False)


def dump(folder: Path) -> list[tuple[object, ...]]:
    db = apsw.Connection(str(folder / "record.db"))
    found = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema").fetchall()
    found += db.execute("SELECT number, name, digest FROM migrations").fetchall()
    found += db.execute("PRAGMA user_version").fetchall()
    db.close()
    return sorted(found, key=repr)


def age(folder: Path) -> None:
    """Make the store what the first program left: its schema, its rows, and only the number in the file's header."""
    path = folder / "record.db"
    path.rename(folder / "now.db")
    db = apsw.Connection(str(path))
    db.execute(
        schema.known()[0].sql + "PRAGMA user_version = 1; INSERT INTO meta (key, value) VALUES ('analyzer', '1');"
    )
    db.execute("ATTACH ? AS now", (str(folder / "now.db"),))
    for table in ("owners", "conversations", "turns", "rows", "vocabulary", "waiting"):
        names = ", ".join(row[1] for row in db.execute(f"PRAGMA main.table_info({table})").fetchall())
        db.execute(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM now.{table}")
    db.execute("UPDATE rows SET event_type = 'event.user.prompt', path = 'user.prompt' WHERE role = 'user'")
    db.close()
    (folder / "now.db").unlink()


def with_one_more(monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    more = (*schema.known(), migration(len(schema.known()) + 1, sql))
    monkeypatch.setattr(schema, "known", lambda: more)


@pytest.mark.parametrize("package", DIGESTS)
def test_released_migrations_are_as_they_were(package: str) -> None:
    assert {str(m): m.digest for m in load(package)} == DIGESTS[package]


def test_numbers_have_no_gaps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "gappy" / "migrations"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    for name in ("0001_a.sql", "0003_c.sql"):
        (folder / name).write_text("SELECT 1;")
    with pytest.raises(IntegrityError, match="gap"):
        load("gappy")
    (folder / "0002_b.sql").write_bytes(b"SELECT 1;\r\nSELECT 2;\r\n")
    found = load("gappy")
    assert [str(m) for m in found] == ["0001_a", "0002_b", "0003_c"]
    assert found[1].digest == hashlib.sha256(b"SELECT 1;\nSELECT 2;\n").hexdigest()


def test_what_is_pending_is_what_was_not_applied() -> None:
    known = [migration(n, f"SELECT {n}") for n in (1, 2, 3)]
    assert pending(known, {}, "x") == tuple(known)
    assert pending(known, {1: known[0].digest}, "x") == tuple(known[1:])
    assert pending(known, {m.number: m.digest for m in known}, "x") == ()
    with pytest.raises(Conflict, match="store x has schema 7, this program knows up to 3; update threefold"):
        pending(known, {1: known[0].digest, 7: "?"}, "x")
    with pytest.raises(Conflict, match="store x: migration 0002_test was applied with other content"):
        pending(known, {1: known[0].digest, 2: "?"}, "x")


def test_a_store_of_the_first_program_becomes_what_a_fresh_one_is(tmp_path: Path) -> None:
    open_store(tmp_path / "fresh").close()
    old = tmp_path / "old"
    old.mkdir()
    db = apsw.Connection(str(old / "record.db"))
    db.execute(schema.known()[0].sql + "PRAGMA user_version = 1;")
    db.execute("INSERT INTO meta (key, value) VALUES ('analyzer', 'x')")
    db.close()
    assert migrate_store(str(old)).migrations == schema.known()[1:]
    assert dump(old) == dump(tmp_path / "fresh")


def test_the_data_of_an_older_store_is_found_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(tmp_path / "old") as db, db.user("alice").turn("trip") as turn:
        turn.prompt("river boat")
    age(tmp_path / "old")
    with_one_more(monkeypatch, "CREATE TABLE more (id INTEGER PRIMARY KEY);")
    open_store(tmp_path / "fresh").close()
    with open_store(tmp_path / "old") as db:
        assert len(db.user("alice").conv.search("boat")) == 1
        assert db.state(check=True).problems == ()
    assert dump(tmp_path / "old") == dump(tmp_path / "fresh")


def test_opening_a_store_does_not_wait_for_who_writes(tmp_path: Path) -> None:
    with open_store(tmp_path) as db, db.user("alice").turn("trip") as turn:
        turn.prompt("river boat")
    other = apsw.Connection(str(tmp_path / "record.db"))
    other.execute("BEGIN IMMEDIATE")
    with open_store(tmp_path) as db:
        assert len(db.user("alice").conv.search("boat")) == 1
    other.close()


def test_an_older_program_refuses_a_newer_store(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        with_one_more(patch, "CREATE TABLE more (id INTEGER PRIMARY KEY);")
        open_store(tmp_path).close()
    with pytest.raises(Conflict, match="update threefold"):
        open_store(tmp_path)
    for command in (["log"], ["migrate"], ["migrate", "--dry-run"]):
        said = subprocess.run(
            [sys.executable, "-m", "threefold", "--db", str(tmp_path), *command],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        assert (said.returncode, said.stdout) == (1, "")
        assert said.stderr.count("\n") == 1
        newest = len(schema.known())
        assert f"has schema {newest + 1}, this program knows up to {newest}; update threefold" in said.stderr


def test_a_migration_that_was_changed_is_refused(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    db = apsw.Connection(str(tmp_path / "record.db"))
    db.execute("UPDATE migrations SET digest = 'other' WHERE number = 1")
    db.close()
    with pytest.raises(Conflict, match="other content"):
        open_store(tmp_path)


def test_a_migration_that_fails_leaves_the_store_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(tmp_path) as db, db.user("alice").turn("trip") as turn:
        turn.prompt("river boat")
    before = dump(tmp_path)
    with monkeypatch.context() as patch:
        with_one_more(patch, "CREATE TABLE more (id INTEGER PRIMARY KEY); DELETE FROM rows; SELECT no_such_thing;")
        with pytest.raises(ThreefoldError, match="no_such_thing"):
            open_store(tmp_path)
        with pytest.raises(ThreefoldError, match="no_such_thing"):
            migrate_store(str(tmp_path))
    assert dump(tmp_path) == before
    with open_store(tmp_path) as db:
        assert len(db.user("alice").conv.search("boat")) == 1


def test_migrating_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotFound, match="no store"):
        migrate_store(str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()
    assert migrate_store(":memory:").migrations == ()
    open_store(tmp_path).close()
    age(tmp_path)
    with_one_more(monkeypatch, "CREATE TABLE more (id INTEGER PRIMARY KEY);")
    missing = [str(found) for found in schema.known()[1:]]
    assert missing[-1].endswith("_test")
    for _ in range(2):
        waiting = migrate_store(str(tmp_path), dry_run=True)
        assert (waiting.number, [str(m) for m in waiting.migrations]) == (1, missing)
    done = migrate_store(str(tmp_path))
    assert (done.number, [str(m) for m in done.migrations]) == (len(missing) + 1, missing)
    assert migrate_store(str(tmp_path)) == migrate_store(str(tmp_path), dry_run=True)

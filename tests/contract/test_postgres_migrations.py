"""The schema in PostgreSQL: fresh equals migrated, an older program refuses, a newer one asks to be told to migrate."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator

import psycopg
import pytest
from postgres_server import Server, server

import threefold
from threefold.backends.migrations import Migration
from threefold.backends.opening import migrate_store
from threefold.backends.postgres import schema
from threefold.errors import Conflict, InvalidInput, ThreefoldError
from threefold.testing.fakes import HashEmbedder

SHAPE = """
    SELECT c.relname, c.relkind::text, c.relrowsecurity, c.relforcerowsecurity, a.attname,
           format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attstattarget, a.attstorage::text
    FROM pg_class AS c LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relnamespace = 'threefold'::regnamespace
    UNION ALL SELECT 'policy', tablename, null, null, policyname, qual, null, null, roles::text FROM pg_policies
    UNION ALL SELECT 'index', tablename, null, null, indexname, indexdef, null, null, null FROM pg_indexes
        WHERE schemaname = 'threefold'
"""
MORE = "CREATE TABLE threefold.more (id integer PRIMARY KEY)"


@pytest.fixture
def database() -> Iterator[tuple[Server, str]]:
    """A server and a database without a schema."""
    pg = server()
    pg.make_database("migrating")
    yield pg, "migrating"
    with pg.admin() as db:
        db.execute("DROP DATABASE migrating WITH (FORCE)")


def open_store(url: str) -> threefold.Threefold:
    return threefold.open(url, embedder=HashEmbedder(16), background=False)


def shape(pg: Server, name: str) -> list[tuple[object, ...]]:
    with pg.admin(name) as db:
        found = db.execute(SHAPE).fetchall()
        found += db.execute("SELECT number, name, digest FROM threefold.migrations").fetchall()
    return sorted(found, key=repr)


def with_one_more(patch: pytest.MonkeyPatch, sql: str = MORE) -> None:
    known = schema.known_migrations()
    more = Migration(len(known) + 1, "test", sql, hashlib.sha256(sql.encode()).hexdigest())
    patch.setattr(schema, "known_migrations", lambda: (*known, more))


def test_an_older_store_is_migrated_when_told_and_then_is_as_a_fresh_one(database) -> None:
    pg, name = database
    url = f"{pg.url(name)}&partitions=2"
    newest = len(schema.known_migrations())
    with open_store(url) as db, db.user("alice").turn("trip") as turn:
        turn.prompt("river boat")
    with pytest.MonkeyPatch.context() as patch:
        with_one_more(patch)
        with pytest.raises(Conflict, match="threefold migrate"):
            open_store(url)
        for _ in range(2):
            waiting = migrate_store(url, dry_run=True)
            assert (waiting.number, [m.name for m in waiting.migrations]) == (newest, ["test"])
        done = migrate_store(url)
        assert (done.number, [m.name for m in done.migrations]) == (newest + 1, ["test"])
        assert migrate_store(url).migrations == ()
        with open_store(url) as db:
            assert len(db.user("alice").conv.search("boat")) == 1
            assert db.state(check=True).problems == ()
        migrated = shape(pg, name)
        pg.make_database(name)
        open_store(url).close()
        assert shape(pg, name) == migrated


def test_an_older_program_refuses_a_newer_store_in_one_line(database) -> None:
    pg, name = database
    url = f"{pg.url(name)}&partitions=2"
    newest = len(schema.known_migrations())
    with pytest.MonkeyPatch.context() as patch:
        with_one_more(patch)
        open_store(url).close()
    with pytest.raises(Conflict, match="update threefold"):
        open_store(url)
    for command in (["log"], ["migrate"], ["migrate", "--dry-run"]):
        said = subprocess.run(
            [sys.executable, "-m", "threefold", *command],
            check=False, capture_output=True, text=True, env={**os.environ, "THREEFOLD_DB": url},
        )  # fmt: skip
        assert (said.returncode, said.stdout) == (1, "")
        assert said.stderr.count("\n") == 1
        assert f"has schema {newest + 1}, this program knows up to {newest}; update threefold" in said.stderr


def test_a_migration_that_fails_or_was_changed_leaves_the_store_as_it_was(database) -> None:
    pg, name = database
    url = f"{pg.url(name)}&partitions=2"
    open_store(url).close()
    before = shape(pg, name)
    with pytest.MonkeyPatch.context() as patch:
        with_one_more(patch, f"{MORE}; DELETE FROM threefold.meta; SELECT no_such_thing")
        with pytest.raises(ThreefoldError, match="no_such_thing"):
            migrate_store(url)
    assert shape(pg, name) == before
    with pg.admin(name) as db:
        db.execute("UPDATE threefold.migrations SET digest = 'other'")
    for use in (open_store, migrate_store):
        with pytest.raises(Conflict, match="other content"):
            use(url)


@pytest.mark.parametrize("partitions", [0, 1, 5])
def test_a_store_has_as_many_partitions_as_its_url_says(database, partitions: int) -> None:
    pg, name = database
    with open_store(f"{pg.url(name)}&partitions={partitions}") as db:
        with db.user("alice").turn("trip", turn="1") as turn:
            turn.prompt("river boat")
            turn.attach(("a.txt", b"bytes"))
        db.embed_pending()
        assert db.user("alice").conv.search("river boat").mode == "hybrid"
        assert db.user("alice").forget(conversation="trip").leftovers == ()
        assert db.state(check=True).problems == ()
    with psycopg.connect(pg.url(name)) as found:
        ((count,),) = found.execute(
            "SELECT count(*) FROM pg_class WHERE relispartition AND relkind = 'r' AND relname LIKE 'rows_%'"
        ).fetchall()
    assert count == partitions


@pytest.mark.parametrize("partitions", ["-1", "x", "", "9999"])
def test_a_wrong_number_of_partitions_is_refused(partitions: str) -> None:
    with pytest.raises(InvalidInput, match="partitions"):
        open_store(f"postgresql://nobody@/none?partitions={partitions}")

"""The schema of the file: a fresh one gets every migration, an older one those it lacks, a newer one is refused."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import apsw

from threefold.backends import migrations
from threefold.backends.migrations import Migration, Schema
from threefold.backends.sqlite.connection import connect, driver_errors, fetch, one, scalar, transaction
from threefold.errors import NotFound
from threefold.model.times import now, to_micros

_TABLE = """
CREATE TABLE IF NOT EXISTS migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    applied INTEGER NOT NULL
)
"""


@cache
def known() -> tuple[Migration, ...]:
    """The migrations of this program."""
    return migrations.load("threefold.backends.sqlite")


def is_current(db: apsw.Connection) -> bool:
    """Whether the file has this program's schema and no other, so that opening it need not wait for who writes."""
    if one(db, "SELECT 1 FROM sqlite_schema WHERE name = 'migrations'") is None:
        return False
    applied = dict(fetch(db, "SELECT number, digest FROM migrations"))
    newest = int(scalar(db, "PRAGMA user_version"))
    return applied == {migration.number: migration.digest for migration in known()} and newest == len(applied)


def migrate(db: apsw.Connection, path: Path) -> Schema:
    """Bring the file to this program's schema; call it in a write transaction, so that it is whole or as before.

    Two processes may open a new store at once, so what was applied is read under the write lock.

    Raises:
        Conflict: a newer program wrote the file, or it has another migration under the same number.
    """
    applied = _applied(db)
    lacking = migrations.pending(known(), applied, str(path))
    db.execute(_TABLE)
    for migration in known():
        if migration in lacking:
            db.execute(migration.sql)
            db.execute(f"PRAGMA user_version = {migration.number}")  # what programs older than the table look at
        db.execute(
            "INSERT OR IGNORE INTO migrations (number, name, digest, applied) VALUES (?, ?, ?, ?)",
            (migration.number, migration.name, migration.digest, to_micros(now())),
        )
    if one(db, "SELECT 1 FROM meta WHERE key = 'analyzer' AND value != ''") is None:  # a new index, without anything
        from threefold.backends.sqlite.indexing import reindex

        reindex(db)
    return Schema(len(known()), lacking)


def _applied(db: apsw.Connection) -> dict[int, str]:
    """Number and digest of what was applied; files from before the table count by their `user_version` alone."""
    version = int(scalar(db, "PRAGMA user_version"))
    if one(db, "SELECT 1 FROM sqlite_schema WHERE name = 'migrations'"):
        applied = dict(fetch(db, "SELECT number, digest FROM migrations"))
    else:
        applied = {1: known()[0].digest} if version else {}
    if version > max(applied, default=0):
        applied[version] = ""
    return applied


def migrate_file(path: Path, dry_run: bool = False) -> Schema:
    """Bring the file of a store to this program's schema; with `dry_run`, only say what it lacks.

    Raises:
        NotFound: there is no such file. Otherwise as `migrate`.
    """
    if not path.is_file():
        raise NotFound(f"no store at {path.parent}; name the folder of one")
    with driver_errors(path):
        db = connect(path)
        try:
            if not dry_run:
                with transaction(db):
                    return migrate(db, path)
            applied = _applied(db)
            return Schema(max(applied, default=0), migrations.pending(known(), applied, str(path)))
        finally:
            db.close()

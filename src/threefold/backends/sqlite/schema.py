"""Numbered migrations: a fresh file gets all of them, an older one those it lacks, a newer one is refused."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import apsw

from threefold.backends.sqlite.connection import scalar
from threefold.errors import Conflict
from threefold.text.terms import ANALYZER


def migrations() -> list[tuple[int, str]]:
    """(number, SQL) of every migration, in order."""
    folder = resources.files("threefold.backends.sqlite") / "migrations"
    files = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(int(name.partition("_")[0]), (folder / name).read_text()) for name in files]


def version(db: apsw.Connection) -> int:
    """The number of the last migration that was applied; 0 for an empty file."""
    return int(scalar(db, "PRAGMA user_version"))


def migrate(db: apsw.Connection, path: Path) -> None:
    """Bring the file to this program's schema; call it in a write transaction, so that it is whole or as before.

    Raises:
        Conflict: a newer program wrote the file.
    """
    known = migrations()
    newest = known[-1][0]
    # Two processes may open a new store at once: the version is read again under the write lock.
    for number, sql in known:
        if number > version(db):
            db.execute(sql)
            db.execute(f"PRAGMA user_version = {number}")
            db.execute("INSERT OR IGNORE INTO meta (key, value) VALUES ('analyzer', ?)", (ANALYZER,))
    if version(db) > newest:
        raise Conflict(f"store {path} has schema {version(db)}, this program knows up to {newest}; update threefold")

"""From the name of a store to its back end: a folder, `:memory:`, or a URL."""

from __future__ import annotations

import re
from pathlib import Path

from threefold.backends.migrations import Schema
from threefold.errors import InvalidInput
from threefold.ports import Backend, Blobs

# The file whose presence makes a folder a store.
FILE_NAME = "record.db"


def open_backend(name: str, durable: bool = True) -> tuple[Backend, Blobs]:
    """Open the store called `name`, making it if it is new.

    Raises:
        InvalidInput: a URL of an unknown kind. Unavailable: the folder cannot be used. Conflict: it is too new.
    """
    if name == ":memory:":
        from threefold.backends.blobs.memory import MemoryBlobs
        from threefold.backends.memory import MemoryStore

        kept = MemoryBlobs()
        return MemoryStore(kept), kept
    _refuse_url(name)
    from threefold.backends.blobs.local import LocalBlobs
    from threefold.backends.sqlite import SqliteStore

    folder = Path(name).expanduser()
    blobs = LocalBlobs(folder / "blobs")
    return SqliteStore(folder, blobs, durable, FILE_NAME), blobs


def migrate_store(name: str, dry_run: bool = False) -> Schema:
    """Bring a store to this program's schema; with `dry_run`, only say where it stands and what it lacks.

    Raises:
        InvalidInput: a URL of an unknown kind. NotFound: there is no store. Conflict: it is too new.
    """
    if name == ":memory:":
        return Schema(0)
    _refuse_url(name)
    from threefold.backends.sqlite.schema import migrate_file

    return migrate_file(Path(name).expanduser() / FILE_NAME, dry_run)


def _refuse_url(name: str) -> None:
    scheme = re.match(r"([a-z][a-z0-9+]+)://", name)
    if scheme:
        raise InvalidInput(f"store {name!r}: no back end for {scheme[1]}://; give a folder or :memory:")

"""From the name of a store to its back end: a folder, `:memory:`, or a URL."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from threefold.errors import InvalidInput, Unavailable

if TYPE_CHECKING:
    from threefold.backends.blobs.claimed import Place
    from threefold.backends.migrations import Schema
    from threefold.ports import Backend, Blobs

# The file whose presence makes a folder a store.
FILE_NAME = "record.db"
POSTGRES = ("postgresql", "postgres")
# URLs at which bytes can be kept: S3, Google Cloud Storage, Azure.
OBJECT_STORES = ("s3", "gs", "az")


def open_backend(name: str, durable: bool = True, blobs: str | None = None) -> tuple[Backend, Blobs]:
    """Open the store called `name`, making it if it is new; its bytes are in `blobs`, by default beside the record.

    Raises:
        InvalidInput: a URL of an unknown kind. Unavailable: the folder cannot be used. Conflict: it is too new.
    """
    if blobs is None:
        return _open(name, durable, None)
    from threefold.backends.blobs.claimed import ClaimedBlobs

    held = ClaimedBlobs(open_blobs(blobs))
    store, _ = _open(name, durable, held)
    held.hold_to(store.identity())
    return store, held


def _open(name: str, durable: bool, blobs: Blobs | None) -> tuple[Backend, Blobs]:
    if name == ":memory:":
        from threefold.backends.blobs.memory import MemoryBlobs
        from threefold.backends.memory import MemoryStore

        kept = MemoryBlobs() if blobs is None else blobs
        return MemoryStore(kept), kept
    if _in_postgres(name):
        from threefold.backends.postgres import open_postgres

        return open_postgres(name, blobs, durable)
    from threefold.backends.blobs.local import LocalBlobs
    from threefold.backends.sqlite import SqliteStore

    folder = Path(name).expanduser()
    beside = LocalBlobs(folder / "blobs") if blobs is None else blobs
    return SqliteStore(folder, beside, durable, FILE_NAME), beside


def open_blobs(name: str) -> Place:
    """The place of bytes called `name`: a folder, or a URL of an object store. Nothing is made or asked for yet.

    Raises:
        InvalidInput: a URL of an unknown kind, or one that names no bucket. Unavailable: the driver is not installed.
    """
    scheme = re.match(r"(\w[\w+]+)://", name)
    if scheme is None:
        from threefold.backends.blobs.local import LocalBlobs

        return LocalBlobs(Path(name).expanduser())
    if scheme[1] not in OBJECT_STORES:
        raise InvalidInput(
            f"blobs {name!r}: no place for {scheme[1]}://; give a folder, or a URL that begins with s3, gs or az"
        )
    try:
        from threefold.backends.blobs.objects import open_objects
    except ImportError:
        raise Unavailable(f"blobs {name!r} need a driver that is not here: pip install 'threefold[s3]'") from None
    return open_objects(name)


def migrate_store(name: str, dry_run: bool = False) -> Schema:
    """Bring a store to this program's schema; with `dry_run`, only say where it stands and what it lacks.

    Raises:
        InvalidInput: a URL of an unknown kind. NotFound: there is no store. Conflict: it is too new.
    """
    if name == ":memory:":
        from threefold.backends.migrations import Schema

        return Schema(0)
    if _in_postgres(name):
        from threefold.backends.postgres import migrate_postgres

        return migrate_postgres(name, dry_run)
    from threefold.backends.sqlite.schema import migrate_file

    return migrate_file(Path(name).expanduser() / FILE_NAME, dry_run)


def _in_postgres(name: str) -> bool:
    """Whether the store is in PostgreSQL, whose driver is here then; False for a folder.

    Raises:
        InvalidInput: a URL of an unknown kind. Unavailable: the driver is not installed.
    """
    scheme = re.match(r"([a-z][a-z0-9+]+)://", name)
    if scheme is None:
        return False
    if scheme[1] not in POSTGRES:
        # Without the rest of the URL, which may hold a password.
        raise InvalidInput(f"store {scheme[0]}…: no back end for it; give a folder, postgresql:// or :memory:")
    if find_spec("psycopg") is None or find_spec("psycopg_pool") is None:
        raise Unavailable("a store in PostgreSQL needs a driver that is not here: pip install 'threefold[postgres]'")
    return True

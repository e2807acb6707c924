"""From the name of a store to its back end: a folder, `:memory:`, or a URL."""

from __future__ import annotations

import re
from pathlib import Path

from threefold.errors import InvalidInput, Unavailable
from threefold.ports import Backend, Blobs

# The file whose presence makes a folder a store.
FILE_NAME = "record.db"
POSTGRES = ("postgresql", "postgres")


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
    scheme = re.match(r"([a-z][a-z0-9+]+)://", name)
    if scheme and scheme[1] in POSTGRES:
        try:
            from threefold.backends.postgres import open_postgres
        except ImportError:
            raise Unavailable(
                f"a store at {scheme[1]}:// needs a driver that is not here: pip install 'threefold[postgres]'"
            ) from None
        return open_postgres(name, None, durable)
    if scheme:
        # Without the rest of the URL, which may hold a password.
        raise InvalidInput(f"store {scheme[0]}…: no back end for it; give a folder, postgresql:// or :memory:")
    from threefold.backends.blobs.local import LocalBlobs
    from threefold.backends.sqlite import SqliteStore

    folder = Path(name).expanduser()
    blobs = LocalBlobs(folder / "blobs")
    return SqliteStore(folder, blobs, durable, FILE_NAME), blobs

"""The embedded back end: one SQLite file, exact vector scan, FTS5. No SQLite idea leaves this folder."""

from threefold.backends.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]

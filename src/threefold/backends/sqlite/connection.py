"""Connections to one SQLite file: how they are set up, pooled, and how driver errors become ours."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from threefold.errors import IntegrityError, ThreefoldError, Unavailable

BUSY_MILLISECONDS = 30_000
MAX_IDLE = 8
# SQLite's own page cache for each connection, in KiB (negative by its convention).
CACHE_KIB = -8_192
LOG_LIMIT_BYTES = 16 * 2**20
# When the log is folded into the file: seldom enough that the pages which every commit writes are copied once for many.
LOG_PAGES = 4_000


@contextmanager
def driver_errors(path: Path) -> Iterator[None]:
    """Turn driver errors into Threefold's; anything else passes."""
    try:
        yield
    except (apsw.BusyError, apsw.LockedError):
        raise Unavailable(f"store {path}: another process holds the write lock; try again") from None
    except apsw.FullError:
        raise Unavailable(f"store {path}: the disk is full; nothing of this call was kept") from None
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise IntegrityError(f"store {path}: {error}; run `threefold doctor`, or restore an export") from None
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.IOError) as error:
        raise Unavailable(f"store {path} cannot be used: {error}; check the folder's rights and space") from None
    except apsw.Error as error:
        raise ThreefoldError(f"store {path}: {error}") from None


def fetch(db: apsw.Connection, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """All rows of a statement."""
    return db.execute(sql, tuple(values)).fetchall()


def one(db: apsw.Connection, sql: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
    """The first row of a statement, or None."""
    return db.execute(sql, tuple(values)).fetchone()


def scalar(db: apsw.Connection, sql: str, values: Sequence[Any] = ()) -> Any:
    """The first column of the first row of a statement that always has one."""
    return db.execute(sql, tuple(values)).fetchall()[0][0]


@contextmanager
def transaction(db: apsw.Connection) -> Iterator[None]:
    """A write transaction: the lock is taken at once; undone unless the block ends well."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _write_ahead(db: apsw.Connection) -> None:
    """Keep a write-ahead log. SQLite does not wait by itself where several processes make one store at once."""
    ends = time.monotonic() + BUSY_MILLISECONDS / 1000
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL").fetchall()
        except apsw.BusyError:
            if time.monotonic() > ends:
                raise
            time.sleep(0.002)
        else:
            return


def connect(path: Path, durable: bool = True) -> apsw.Connection:
    """Open the file, making it if needed, with the pragmas that every connection has.

    Write-ahead log; with `durable` every commit is synced to the disk before it returns. What is deleted is
    overwritten with zeros.
    """
    db = apsw.Connection(str(path))
    db.set_busy_timeout(BUSY_MILLISECONDS)
    _write_ahead(db)
    db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
    db.execute("PRAGMA secure_delete = ON").fetchall()
    db.execute("PRAGMA temp_store = MEMORY")
    db.execute(f"PRAGMA cache_size = {CACHE_KIB}")
    db.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}").fetchall()
    db.execute(f"PRAGMA journal_size_limit = {LOG_LIMIT_BYTES}").fetchall()
    return db


class Readers:
    """A pool of reading connections. Each use sees one snapshot of the store."""

    def __init__(self, path: Path) -> None:
        self._path, self._pid = path, os.getpid()
        self._idle: list[apsw.Connection] = []
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def snapshot(self) -> Iterator[apsw.Connection]:
        """A connection inside a read transaction, given back at the end."""
        self.check_usable()
        with driver_errors(self._path):
            with self._lock:
                db = self._idle.pop() if self._idle else None
            db = db or connect(self._path)
            try:
                db.execute("BEGIN")
                try:
                    yield db
                finally:
                    db.execute("ROLLBACK")
            finally:
                self._give_back(db)

    def _give_back(self, db: apsw.Connection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < MAX_IDLE:
                self._idle.append(db)
                return
        db.close()

    def check_usable(self) -> None:
        """Refuse use after `close` and in a forked child, where SQLite's locks would not hold."""
        if self._closed:
            raise Unavailable(f"store {self._path} is closed; open it again")
        if os.getpid() != self._pid:
            raise Unavailable(f"store {self._path} was opened before a fork; open it again in the child process")

    def close(self) -> None:
        """Close idle connections; those in use are closed as they come back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        if os.getpid() == self._pid:
            for db in idle:
                db.close()

"""Group commit: callers that write at the same time share one transaction and one sync of the disk."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar, cast

import apsw

from threefold.backends.sqlite.connection import connect, driver_errors, transaction
from threefold.errors import ThreefoldError, Unavailable

T = TypeVar("T")
MAX_GROUP = 128


class _Ticket(Generic[T]):
    """One caller's work and, once `done`, its result or error."""

    __slots__ = ("done", "error", "job", "result")

    def __init__(self, job: Callable[[apsw.Connection], T]) -> None:
        self.job, self.done = job, False
        self.result: T | None = None
        self.error: ThreefoldError | None = None


class _Undone(Exception):
    """SQLite undid the whole transaction because of one job."""

    def __init__(self, ticket: _Ticket[object]) -> None:
        super().__init__()
        self.ticket = ticket


class Writer:
    """The one writing connection of this process.

    Whoever gets the lock leads: it takes everything that waits, runs each job in a savepoint of one
    `BEGIN IMMEDIATE` transaction and commits once. The others find their result when they get the lock. A job that
    raises a Threefold error is undone alone.
    """

    def __init__(self, path: Path, durable: bool) -> None:
        self._path, self._pid = path, os.getpid()
        self._lock = threading.Lock()
        self._waiting: deque[_Ticket[object]] = deque()
        with driver_errors(path):
            self._db: apsw.Connection | None = connect(path, durable)

    def run(self, job: Callable[[apsw.Connection], T]) -> T:
        """Run `job` in a transaction; it returned means committed and durable.

        Raises:
            whatever the job raises, or Unavailable where the store is closed, busy or full; then nothing is left of it.
        """
        self._refuse_fork()
        ticket = _Ticket(job)
        self._waiting.append(cast("_Ticket[object]", ticket))
        try:
            with self._lock:
                while not ticket.done:
                    self._lead(ticket)
        finally:
            if not ticket.done:  # interrupted: what its caller does not wait for shall not be done later
                with suppress(ValueError):
                    self._waiting.remove(cast("_Ticket[object]", ticket))
        if ticket.error is not None:
            raise ticket.error
        return cast(T, ticket.result)

    @property
    def forked(self) -> bool:
        """Whether this process is a child of the one that opened the store."""
        return os.getpid() != self._pid

    def _refuse_fork(self) -> None:
        if self.forked:
            raise Unavailable(f"store {self._path} was opened before a fork; open it again in the child process")

    def _lead(self, own: object) -> None:
        group = [self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_GROUP))]
        # After a defect or an interrupt in the leader nothing was committed: the others are simply tried again.
        again = [ticket for ticket in group if ticket is not own]
        try:
            with driver_errors(self._path):
                self._transaction(group)
            again = []
        except _Undone as undone:
            # One job made SQLite undo them all: it failed, the others are tried again without it.
            again = [ticket for ticket in group if ticket is not undone.ticket]
        except ThreefoldError as error:
            again = []
            for ticket in group:
                ticket.error = error
        finally:
            self._waiting.extendleft(reversed(again))
        for ticket in group:
            ticket.done = ticket not in again

    def _transaction(self, group: list[_Ticket[object]]) -> None:
        db = self._connection()
        with transaction(db):
            for ticket in group:
                db.execute("SAVEPOINT job")
                ticket.error = None
                try:
                    with driver_errors(self._path):
                        ticket.result = ticket.job(db)
                except ThreefoldError as error:
                    ticket.error = error
                    if not db.in_transaction:  # as when the disk is full
                        raise _Undone(ticket) from None
                    db.execute("ROLLBACK TO job")
                db.execute("RELEASE job")

    def outside(self, job: Callable[[apsw.Connection], T]) -> T:
        """Run `job` on the writing connection without a transaction: checkpoints and the like."""
        self._refuse_fork()
        with self._lock, driver_errors(self._path):
            return job(self._connection())

    def _connection(self) -> apsw.Connection:
        if self._db is None:
            raise Unavailable(f"store {self._path} is closed; open it again")
        return self._db

    def close(self) -> None:
        """Wait for the running group, then close; the log is folded into the file where no one else reads."""
        with self._lock:
            db, self._db = self._db, None
        if db is not None:
            db.close()

"""Group commit: callers that write at the same time share one transaction and one sync of the disk."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import apsw

from threefold.backends.sqlite.connection import connect, driver_errors, transaction
from threefold.errors import ThreefoldError, Unavailable

T = TypeVar("T")
MAX_GROUP = 128


class _Ticket(Generic[T]):
    """One caller's work and, once `done`, its result or error.

    `turn` is locked until the caller is to go on: because the work is done, or to lead.
    """

    __slots__ = ("done", "error", "job", "result", "turn")

    def __init__(self, job: Callable[[apsw.Connection], T]) -> None:
        self.job, self.done = job, False
        self.result: T | None = None
        self.error: ThreefoldError | None = None
        self.turn = threading.Lock()
        self.turn.acquire()


class _Undone(Exception):
    """SQLite undid the whole transaction because of one job."""

    def __init__(self, ticket: _Ticket[object]) -> None:
        super().__init__()
        self.ticket = ticket


class Writer:
    """The one writing connection of this process.

    A caller that comes while nobody writes leads: it takes everything that waits, runs each job in a savepoint of one
    `BEGIN IMMEDIATE` transaction and commits once; then the first of those who came meanwhile leads. So a caller that
    is alone waits for no other thread, and of many each is woken once. A job that raises a Threefold error is undone
    alone.
    """

    def __init__(self, path: Path, durable: bool) -> None:
        self._path, self._pid = path, os.getpid()
        self._using = threading.Lock()  # of the connection
        self._queueing = threading.Lock()  # of the two below
        self._waiting: dict[_Ticket[Any], None] = {}  # in order of arrival; who is being done is still in it
        self._leader: _Ticket[Any] | None = None
        with driver_errors(path):
            self._db: apsw.Connection | None = connect(path, durable)

    def run(self, job: Callable[[apsw.Connection], T]) -> T:
        """Run `job` in a transaction; it returned means committed and durable.

        Raises:
            whatever the job raises, or Unavailable where the store is closed, busy or full; then nothing is left of it.
        """
        self._refuse_fork()
        ticket = _Ticket(job)
        try:
            if not self._leads(ticket):
                ticket.turn.acquire()
            while not ticket.done:
                with self._using:
                    self._lead(ticket)
        finally:
            if self._leader is ticket or not ticket.done:
                self._leave(ticket)
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

    def _leads(self, ticket: _Ticket[T]) -> bool:
        """Queue the ticket; whether it is to lead, since nobody does."""
        with self._queueing:
            self._waiting[ticket] = None
            if self._leader is None:
                self._leader = ticket
            return self._leader is ticket

    def _leave(self, ticket: _Ticket[T]) -> None:
        """Let the next one lead. What an interrupted caller does not wait for shall not be done later."""
        with self._queueing:
            self._waiting.pop(ticket, None)
            if self._leader is ticket:
                self._leader = next(iter(self._waiting), None)
                if self._leader is not None:
                    self._leader.turn.release()

    def _lead(self, own: _Ticket[T]) -> None:
        with self._queueing:
            group = list(islice(self._waiting, MAX_GROUP))
        try:
            with driver_errors(self._path):
                self._transaction(group)
            done = group
        except _Undone as undone:
            # One job made SQLite undo them all: it failed, the others are tried again without it.
            done = [undone.ticket]
        except ThreefoldError as error:
            for ticket in group:
                ticket.error = error
            done = group
        # After a defect or an interrupt nothing was committed: all are still in the queue, and the next one leads.
        with self._queueing:
            for ticket in done:
                self._waiting.pop(ticket, None)
                ticket.done = True
                if ticket is not own:
                    ticket.turn.release()

    def _transaction(self, group: list[_Ticket[Any]]) -> None:
        db = self._connection()
        for ticket in group:
            ticket.error = None  # of a try that was undone
        with transaction(db):
            if len(group) == 1:  # what fails alone is undone with the transaction
                group[0].result = group[0].job(db)
                return
            for ticket in group:
                self._in_savepoint(db, ticket)

    def _in_savepoint(self, db: apsw.Connection, ticket: _Ticket[Any]) -> None:
        db.execute("SAVEPOINT job")
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
        with self._using, driver_errors(self._path):
            return job(self._connection())

    def _connection(self) -> apsw.Connection:
        if self._db is None:
            raise Unavailable(f"store {self._path} is closed; open it again")
        return self._db

    def close(self) -> None:
        """Wait for the running group, then close; the log is folded into the file where no one else reads."""
        with self._using:
            db, self._db = self._db, None
        if db is not None:
            db.close()

"""Connections to PostgreSQL: the pool, transactions that speak for one owner, retries, and driver errors made ours."""

from __future__ import annotations

import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar
from uuid import UUID

import psycopg
from psycopg import errors
from psycopg.adapt import AdaptersMap
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.numeric import Int8Dumper
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from threefold.errors import IntegrityError, ThreefoldError, Unavailable

T = TypeVar("T")
Db: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"
Params: TypeAlias = Sequence[Any] | Mapping[str, Any]
MAX_CONNECTIONS = 16
CONNECT_SECONDS = 5
LOCK_TIMEOUT, LANE_SECONDS = "30s", 30.0
# How long a call goes on trying while the server is away, and the longest pause between two tries.
RETRY_SECONDS, RETRY_PAUSE = 10.0, 1.0
# Plans are made once for each connection, in the order in which a statement joins its tables (before the first ANALYZE
# the planner knows no better), and never compiled: that takes longer than what these statements do.
_PLANNER = (
    "set_config('plan_cache_mode', 'force_generic_plan', true)",
    "set_config('join_collapse_limit', '1', true)",
    "set_config('jit', 'off', true)",
)
# A transaction that deletes bytes elsewhere must keep its locks until it is through. The second came with 17.
_LASTING = (
    "set_config('idle_in_transaction_session_timeout', '0', true)",
    "CASE WHEN current_setting('transaction_timeout', true) IS NOT NULL "
    "THEN set_config('transaction_timeout', '0', true) END",
)
# A connection whose other end is gone without a word is given up after seconds, not hours; what the URL says wins.
_ALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 15_000}
# Writers of one owner wait for each other here and not in the server, where each would hold a connection.
_LANES = 1024
# The server went away or could not be reached: what class 08, a shutdown, or no state at all says.
_LOST = re.compile("08...|57P0[1-3]")
# Two transactions stood in each other's way; one was undone.
_COLLISIONS = ("40001", "40P01")

_adapters = AdaptersMap(psycopg.adapters)
# psycopg sends a small number as int2, and an index on a wider column is then not used.
_adapters.register_dumper(int, Int8Dumper)


def without_secrets(url: str) -> str:
    """The URL as it may be shown: without password and parameters."""
    return re.sub(r"(://[^/@:]*):[^@]*@", r"\1@", url).partition("?")[0]


def fetch(db: Db, statement: str, values: Params = ()) -> list[tuple[Any, ...]]:
    """All rows of a statement."""
    return db.execute(statement, values).fetchall()


def one(db: Db, statement: str, values: Params = ()) -> tuple[Any, ...] | None:
    """The first row of a statement, or None."""
    return db.execute(statement, values).fetchone()


def run(db: Db, statement: str, values: Params = ()) -> psycopg.Cursor[tuple[Any, ...]]:
    """Send a statement; in a pipeline its result is waited for only when it is asked for."""
    return db.execute(statement, values)


def change(db: Db, statement: str, values: Params = ()) -> psycopg.Cursor[tuple[Any, ...]]:
    """Send an INSERT, UPDATE or DELETE without RETURNING; `touched` tells how many rows it met.

    In a pipeline a statement without rows does not say so before the pipeline ends.
    """
    return run(db, f"WITH touched AS ({statement} RETURNING 1) SELECT count(*) FROM touched", values)


def touched(cursor: psycopg.Cursor[tuple[Any, ...]]) -> int:
    """How many rows a `change` met."""
    return int(cursor.fetchall()[0][0])


@contextmanager
def planned_anew(db: Db) -> Iterator[None]:
    """Statements inside are planned for the values at hand.

    Elsewhere a plan is made once for each connection, since planning costs more than what most statements do. But
    whether an index pays may depend on the owner: one has ten rows, another a million. And with a plan made before,
    PostgreSQL 18 passes over rows of a partitioned table that another transaction changed while it waited for them:
    rows that are changed without the owner's lock, those of the queue, are deleted with a plan made anew.
    """
    run(db, "SELECT set_config('plan_cache_mode', 'force_custom_plan', true)")
    yield
    run(db, "SELECT set_config('plan_cache_mode', 'force_generic_plan', true)")


class _Lost(Unavailable):
    """The connection broke; the same call may succeed on another one."""


class Database:
    """A pool of connections to one database, opened as they are needed; safe from many threads.

    Raises:
        Unavailable: the server cannot be reached or refuses the login.
    """

    def __init__(self, url: str, durable: bool = True, connections: int = MAX_CONNECTIONS) -> None:
        self.shown = without_secrets(url)
        self._url, self._durable, self._pid = url, durable, os.getpid()
        self._alive: dict[str, Any] = {
            name: value for name, value in _ALIVE.items() if name not in conninfo_to_dict(url)
        }
        self._lanes = [threading.Lock() for _ in range(_LANES)]
        self._pool = ConnectionPool(
            url,
            min_size=0,
            max_size=connections,
            open=False,
            timeout=RETRY_SECONDS,
            reconnect_timeout=RETRY_SECONDS,
            kwargs={
                "autocommit": True,
                "context": _adapters,
                "connect_timeout": CONNECT_SECONDS,
                "prepare_threshold": 0,
                **self._alive,
            },
            name="threefold",
        )
        self._closed = False

    @contextmanager
    def alone(self) -> Iterator[Db]:
        """A connection of its own outside the pool, without a transaction; nothing is tried again."""
        self._check_usable()
        with (
            self._driver_errors(),
            psycopg.connect(
                self._url, autocommit=True, context=_adapters, connect_timeout=CONNECT_SECONDS, **self._alive
            ) as connection,
        ):
            yield connection

    def write(self, owner: UUID | None, job: Callable[[Db], T]) -> T:
        """Run `job` in a transaction that speaks for `owner`, or for the operator; tried again after a collision.

        It returned means committed. `job` may run several times and must leave nothing but in the database.

        Raises:
            whatever the job raises, and then nothing is left of it; or Unavailable where the server stays away or busy,
                which says so where the answer to the COMMIT was lost and nobody knows.
        """
        return self._run(owner, job, read_only=False)

    def read(self, owner: UUID | None, job: Callable[[Db], T]) -> T:
        """Run `job` on one snapshot, read only; otherwise as `write`."""
        return self._run(owner, job, read_only=True)

    def _run(self, owner: UUID | None, job: Callable[[Db], T], read_only: bool) -> T:
        self._check_usable()
        self._pool.open()
        if owner is None or read_only:
            return self._try(owner, job, read_only)
        lane = self._lanes[owner.int % _LANES]
        if not lane.acquire(timeout=LANE_SECONDS):
            raise Unavailable(f"store {self.shown}: another writer of this user is at work; try again")
        try:
            return self._try(owner, job, read_only)
        finally:
            lane.release()

    def _try(self, owner: UUID | None, job: Callable[[Db], T], read_only: bool) -> T:
        """Once, and again for a while where the connection breaks."""
        deadline, pause = time.monotonic() + RETRY_SECONDS, 0.02
        done = False

        def noted(db: Db) -> T:
            nonlocal done
            done = False
            result = job(db)
            done = True
            return result

        while True:
            try:
                with self._driver_errors():
                    return self._transaction(owner, noted, read_only)
            except _Lost as error:
                if self._closed or time.monotonic() + pause > deadline:
                    unknown = "; it may have been done all the same: do it again, with the same ids" if done else ""
                    raise Unavailable(f"{error}{'' if read_only else unknown}") from None
                self._pool.check()  # the others broke with the same server
            # Not in step with those it collided with.
            time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311
            pause = min(2 * pause, RETRY_PAUSE)

    def _transaction(self, owner: UUID | None, job: Callable[[Db], T], read_only: bool) -> T:
        with self._pool.connection() as db:
            level = psycopg.IsolationLevel.REPEATABLE_READ if read_only else psycopg.IsolationLevel.READ_COMMITTED
            if (db.isolation_level, db.read_only) != (level, read_only):
                db.isolation_level, db.read_only = level, read_only
            with db.pipeline(), db.transaction():
                self._speak_for(db, owner, read_only)
                return job(db)

    def _speak_for(self, db: Db, owner: UUID | None, read_only: bool) -> None:
        """Tell row-level security who asks; in this transaction only, so that a pooler may stand between."""
        settings = [
            "set_config('threefold.owner', %s, true)",
            "set_config('threefold.operator', %s, true)",
            *_PLANNER,
        ]
        if not read_only:
            settings += [f"set_config('lock_timeout', '{LOCK_TIMEOUT}', true)", *_LASTING]
        if not read_only and not self._durable:
            settings.append("set_config('synchronous_commit', 'off', true)")
        run(db, f"SELECT {', '.join(settings)}", ("" if owner is None else str(owner), "on" if owner is None else ""))

    @contextmanager
    def _driver_errors(self) -> Iterator[None]:
        try:
            yield
        except (PoolTimeout, PoolClosed):
            raise Unavailable(f"store {self.shown}: no connection to be had; is the server up?") from None
        except errors.DiskFull:
            raise Unavailable(f"store {self.shown}: the server's disk is full; nothing of this call was kept") from None
        except errors.LockNotAvailable:
            raise Unavailable(f"store {self.shown}: another writer of this user is at work; try again") from None
        except errors.InsufficientPrivilege as error:
            raise Unavailable(f"store {self.shown}: {_line(error)}; give the role this right") from None
        except (errors.DataCorrupted, errors.IndexCorrupted) as error:
            raise IntegrityError(f"store {self.shown}: {_line(error)}; restore a backup") from None
        except psycopg.Error as error:
            if error.sqlstate in _COLLISIONS:
                raise _Lost(f"store {self.shown}: too many writers stand in each other's way; try again") from None
            if isinstance(error, psycopg.OperationalError) and (
                error.sqlstate is None or _LOST.fullmatch(error.sqlstate)
            ):
                raise _Lost(f"store {self.shown} cannot be reached: {_line(error)}; is the server up?") from None
            if isinstance(error, psycopg.OperationalError):
                raise Unavailable(f"store {self.shown}: {_line(error)}") from None
            raise ThreefoldError(f"store {self.shown}: {_line(error)}") from None

    def _check_usable(self) -> None:
        """Refuse use after `close`, and in a forked child, which would speak on its parent's connections."""
        if self._closed:
            raise Unavailable(f"store {self.shown} is closed; open it again")
        if self.forked:
            raise Unavailable(f"store {self.shown} was opened before a fork; open it again in the child process")

    @property
    def forked(self) -> bool:
        """Whether this process is a child of the one that opened the store."""
        return os.getpid() != self._pid

    def close(self) -> None:
        """Close idle connections; those in use are closed as they come back."""
        self._closed = True
        if not self.forked:
            self._pool.close()


def _line(error: psycopg.Error) -> str:
    return " ".join(str(error).split("\n")[0].split())

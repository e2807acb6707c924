"""Rewriting tables after a removal, since PostgreSQL keeps what was removed in unused places of its files.

`VACUUM FULL` writes a table and its indexes anew and deletes the old files. It locks the table meanwhile, so after a
purge it is done for the owner's partition alone, and only where that is small; `scrub` does it for everything, at a
moment that the operator chooses. The write-ahead log and backups are the server's: they keep what their settings say.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from uuid import UUID

import psycopg
from psycopg import errors

from threefold.backends.postgres.connection import Database, Db, fetch, run

# Rewritten within about a second.
SMALL_BYTES = 64 * 2**20
# How long open transactions are waited for, over all tables.
_PATIENCE, _PAUSE = 2.0, 0.1
_LOCK_TIMEOUT = "2s"
_SHARED = ("meta", "migrations")
_STILL_SEEN = re.compile(r"\d+")
_IN_USE = "a transaction that is still open sees what was removed: end it and run `threefold scrub`"


def scrub_owners(database: Database, owners: Sequence[UUID]) -> tuple[str, ...]:
    """Rewrite the partitions of the owners where they are small; says in a sentence what is left to do."""
    with database.alone() as db:
        tables = sorted({table for owner in owners for table in _tables_of(db, owner)})
        size = sum(_size(db, table) for table in tables)
        if size > SMALL_BYTES:
            return (
                f"{size // 2**20:,} MiB of tables hold removed bytes in unused places: run `threefold scrub`, "
                "which locks each while it is rewritten",
            )
        return _rewrite(db, tables)


def scrub(database: Database) -> tuple[str, ...]:
    """Rewrite every table, one after the other; says in a sentence what is left to do."""
    with database.alone() as db:
        return _rewrite(db, [table for base in _bases(db) for table in _parts(db, base)])


def _bases(db: Db) -> list[str]:
    found = fetch(
        db,
        """SELECT relname FROM pg_class WHERE relnamespace = 'threefold'::regnamespace AND relkind IN ('r', 'p')
           AND NOT relispartition AND relname <> ALL(%s) ORDER BY relname""",
        (list(_SHARED),),
    )
    return [name for (name,) in found]


def _parts(db: Db, base: str) -> list[str]:
    """The partitions of a table, or the table itself where it has none."""
    found = fetch(
        db,
        """SELECT c.relname FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
           WHERE i.inhparent = %s::regclass ORDER BY c.oid""",
        (f"threefold.{base}",),
    )
    return [name for (name,) in found] or [base]


def _tables_of(db: Db, owner: UUID) -> Iterator[str]:
    """Every table in which rows of the owner lie: of each partitioned one, its partition."""
    for base in _bases(db):
        parts = _parts(db, base)
        if parts == [base]:
            yield base
        else:
            found = fetch(
                db,
                """SELECT r FROM generate_series(0, %(n)s - 1) AS r
                   WHERE satisfies_hash_partition(%(base)s::regclass, %(n)s::integer, r::integer, %(owner)s::uuid)""",
                {"base": f"threefold.{base}", "n": len(parts), "owner": owner},
            )
            yield f"{base}_{found[0][0]}"


def _size(db: Db, table: str) -> int:
    return int(fetch(db, "SELECT pg_total_relation_size(%s::regclass)", (f"threefold.{table}",))[0][0])


def _rewrite(db: Db, tables: Sequence[str]) -> tuple[str, ...]:
    run(db, f"SET lock_timeout = '{_LOCK_TIMEOUT}'")
    deadline = time.monotonic() + _PATIENCE
    left = [sentence for table in tables if (sentence := _rewrite_one(db, table, deadline))]
    return tuple(dict.fromkeys(left))


def _rewrite_one(db: Db, table: str, deadline: float) -> str | None:
    """Write a table anew until no version of a removed row is left in it."""
    still_seen: list[int] = []

    def heard(notice: psycopg.errors.Diagnostic) -> None:
        number = _STILL_SEEN.match(notice.message_detail or "")
        if number is not None:
            still_seen.append(int(number[0]))

    db.add_notice_handler(heard)
    try:
        while True:
            still_seen.clear()
            run(db, f"VACUUM (FULL, VERBOSE) threefold.{table}")
            if not any(still_seen):
                return None
            if time.monotonic() > deadline:
                return _IN_USE
            time.sleep(_PAUSE)
    except errors.LockNotAvailable:
        return f"table {table} is in use: run `threefold scrub`"
    finally:
        db.remove_notice_handler(heard)

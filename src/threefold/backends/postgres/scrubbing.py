"""Rewriting tables after a removal, since PostgreSQL keeps what was removed in unused places of its files.

`VACUUM FULL` writes a table and its indexes anew and deletes the old files. It locks the table meanwhile, so after a
purge it is done for the owner's partition alone, and only where that is small; `scrub` does it for everything, at a
moment that the operator chooses. The write-ahead log and backups are the server's: they keep what their settings say.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
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


# Tables that hold rows of owners, each with its size: whole ones, and of partitioned ones the parts. Those that hold
# nothing are left out, and where owners are given, parts in which none of them lies.
_TABLES = """
    WITH parts AS (
        SELECT c.oid, c.relname, p.oid AS parent, count(*) OVER (PARTITION BY p.oid)::integer AS modulus,
               substring(c.relname FROM '[0-9]+$')::integer AS remainder
        FROM pg_class AS c JOIN pg_inherits AS i ON i.inhrelid = c.oid JOIN pg_class AS p ON p.oid = i.inhparent
        WHERE c.relnamespace = 'threefold'::regnamespace AND c.relkind = 'r'
    ), held AS (
        SELECT oid, relname FROM parts WHERE %(owners)s::uuid[] IS NULL OR EXISTS (
            SELECT 1 FROM unnest(%(owners)s::uuid[]) AS o (owner)
            WHERE satisfies_hash_partition(parent, modulus, remainder, o.owner))
        UNION ALL SELECT oid, relname FROM pg_class
        WHERE relnamespace = 'threefold'::regnamespace AND relkind = 'r' AND NOT relispartition
          AND relname <> ALL(%(shared)s)
    )
    SELECT relname, pg_total_relation_size(oid) FROM held WHERE pg_relation_size(oid) > 0 ORDER BY relname
"""


def scrub_owners(database: Database, owners: Sequence[UUID]) -> tuple[str, ...]:
    """Rewrite the partitions of the owners where they are small; says in a sentence what is left to do."""
    if not owners:
        return ()
    with database.alone() as db:
        tables = fetch(db, _TABLES, {"owners": list(owners), "shared": list(_SHARED)})
        size = sum(size for _, size in tables)
        if size > SMALL_BYTES:
            return (
                f"{size // 2**20:,} MiB of tables hold removed bytes in unused places: run `threefold scrub`, "
                "which locks each while it is rewritten",
            )
        return _rewrite(db, [name for name, _ in tables])


def scrub(database: Database) -> tuple[str, ...]:
    """Rewrite every table, one after the other; says in a sentence what is left to do."""
    with database.alone() as db:
        return _rewrite(db, [name for name, _ in fetch(db, _TABLES, {"owners": None, "shared": list(_SHARED)})])


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

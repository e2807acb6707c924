"""The schema of a database: made where there is none, brought up to date only when asked, refused where it is newer."""

from __future__ import annotations

from threefold.backends.migrations import Migration, Schema, load, pending
from threefold.backends.postgres.connection import Database, Db, fetch, one, run
from threefold.errors import Conflict, Unavailable
from threefold.text.terms import ANALYZER

DEFAULT_PARTITIONS = 16
# Two processes may open a new store at once: the second waits here. Any number that nothing else uses will do.
_LOCK = 4_863_201_775
_PARTITIONED = " PARTITION BY HASH (owner)"


def known_migrations() -> tuple[Migration, ...]:
    """The migrations of this program, in order."""
    return load("threefold.backends.postgres")


def applied(db: Db) -> dict[int, str]:
    """Number → digest of the migrations that were applied; empty where there is no schema."""
    there = one(db, "SELECT to_regclass('threefold.migrations') IS NOT NULL")
    return dict(fetch(db, "SELECT number, digest FROM threefold.migrations")) if there and there[0] else {}


def open_schema(database: Database, partitions: int) -> None:
    """Make the schema of a new store; check that of an old one.

    Raises:
        Conflict: a newer program made it, or an older one did and it is to be migrated first.
    """
    with database.alone() as db:
        there = applied(db)
        lacking = pending(known_migrations(), there, database.shown)
    if not there:
        migrate(database, partitions)
    elif lacking:
        raise Conflict(
            f"store {database.shown} has schema {max(there)}, this program needs {lacking[-1].number}: "
            "run `threefold migrate`"
        )


def migrate(database: Database, partitions: int, dry_run: bool = False) -> Schema:
    """Apply what is pending in one transaction, so that the schema is whole or as before; `dry_run` only looks.

    Raises:
        Conflict: a newer program made the schema, or one of its migrations was another.
    """
    known = known_migrations()
    with database.alone() as db, db.transaction():
        run(db, "SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        there = applied(db)
        lacking = pending(known, there, database.shown)
        if not dry_run and lacking:
            _check_extension(db, database.shown)
            for migration in lacking:
                _apply(db, migration, partitions)
    return Schema(max(there, default=0) if dry_run else known[-1].number, lacking)


def _check_extension(db: Db, shown: str) -> None:
    found = one(
        db,
        """SELECT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'vector')
               OR (EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = 'vector')
                   AND has_database_privilege(current_database(), 'CREATE'))""",
    )
    if not (found and found[0]):
        raise Unavailable(
            f"store {shown}: the database lacks the extension pgvector; let an administrator install it and run "
            "CREATE EXTENSION vector there"
        )


def _apply(db: Db, migration: Migration, partitions: int) -> None:
    run(db, "CREATE SCHEMA IF NOT EXISTS threefold")
    run(
        db,
        """CREATE TABLE IF NOT EXISTS threefold.migrations (
               number integer PRIMARY KEY, name text NOT NULL, digest text NOT NULL,
               applied timestamptz NOT NULL DEFAULT now())""",
    )
    run(db, "SELECT set_config('threefold.partitions', %s, true)", (str(partitions),))
    run(db, "SELECT set_config('threefold.operator', 'on', true)")
    text = migration.sql if partitions else migration.sql.replace(_PARTITIONED, "")
    db.execute(text, prepare=False)
    run(
        db,
        "INSERT INTO threefold.migrations (number, name, digest) VALUES (%s, %s, %s)",
        (migration.number, migration.name, migration.digest),
    )
    run(db, "INSERT INTO threefold.meta (key, value) VALUES ('analyzer', %s) ON CONFLICT DO NOTHING", (ANALYZER,))

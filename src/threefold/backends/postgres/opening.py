"""From a URL to a store in PostgreSQL."""

from __future__ import annotations

import re

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from threefold.backends.migrations import Schema
from threefold.backends.postgres.blobs import PostgresBlobs
from threefold.backends.postgres.connection import Database, without_secrets
from threefold.backends.postgres.schema import DEFAULT_PARTITIONS, migrate
from threefold.backends.postgres.store import PostgresStore
from threefold.errors import InvalidInput
from threefold.ports import Blobs

# Connections for blobs that are kept in the database itself.
BLOB_CONNECTIONS = 8
MAX_PARTITIONS = 1024
_PARTITIONS = re.compile(r"(?P<mark>[?&])partitions=(?P<chosen>[^&]*)(?P<more>&?)")


def open_postgres(url: str, blobs: Blobs | None = None, durable: bool = True) -> tuple[PostgresStore, Blobs]:
    """Open the store behind a libpq URL, making its schema in a new database.

    `partitions=` in the URL says into how many parts a new store's tables are made (16; 0 for none).

    Raises:
        InvalidInput: the URL is malformed. Unavailable: the server cannot be reached. Conflict: see `PostgresStore`.
    """
    address, partitions = split_partitions(url)
    check_url(address)
    database = Database(address, durable)
    if blobs is not None:
        return PostgresStore(database, blobs, partitions), blobs
    beside = Database(address, durable, BLOB_CONNECTIONS)
    own = PostgresBlobs(beside)
    return PostgresStore(database, own, partitions, beside), own


def migrate_postgres(url: str, dry_run: bool = False) -> Schema:
    """Bring the schema behind a URL up to date, or with `dry_run` only say what it lacks.

    Raises:
        InvalidInput: the URL is malformed. Unavailable: the server cannot be reached. Conflict: it is too new.
    """
    address, partitions = split_partitions(url)
    check_url(address)
    return migrate(Database(address), partitions, dry_run)


def check_url(url: str) -> None:
    """Look whether libpq can read the URL. What it says itself is not passed on, since it repeats passwords.

    Raises:
        InvalidInput: it cannot.
    """
    try:
        ports = str(conninfo_to_dict(url).get("port") or "").split(",")
    except ProgrammingError:
        ports = ["malformed"]
    if not all(port.isascii() and port.isdigit() for port in ports if port):
        raise InvalidInput(
            f"store {without_secrets(url)}: the URL is malformed; write postgresql://user:password@host:port/database "
            "with parameters that libpq knows, and special characters percent-encoded"
        )


def split_partitions(url: str) -> tuple[str, int]:
    """The URL without our own parameter, and its value.

    Raises:
        InvalidInput: it is no whole number from 0 to 1024.
    """
    found = _PARTITIONS.search(url)
    if found is None:
        return url, DEFAULT_PARTITIONS
    chosen = found["chosen"]
    if not (chosen.isascii() and chosen.isdigit() and int(chosen) <= MAX_PARTITIONS):
        raise InvalidInput(f"partitions={chosen} in the store's URL must be a whole number from 0 to {MAX_PARTITIONS}")
    return url[: found.start()] + (found["mark"] if found["more"] else "") + url[found.end() :], int(chosen)

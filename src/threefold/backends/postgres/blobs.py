"""Blobs inside the database, where no other place is given: any process that reaches the store reaches the bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from datetime import datetime
from functools import partial
from uuid import UUID

from threefold.backends.postgres.connection import Database, change, fetch, one, run, touched
from threefold.backends.postgres.keys import owner_key
from threefold.errors import IntegrityError, NotFound
from threefold.model.scope import Scope
from threefold.model.times import from_micros, now, to_micros


class PostgresBlobs:
    """`Blobs` in a table. On connections of their own: a commit asks for blobs while it holds one of the store's."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def place(self) -> str:
        """See `Blobs.place`."""
        return f"{self._database.shown} (in the database)"

    def key(self, scope: Scope) -> str:
        """See `Blobs.key`."""
        return owner_key(scope).hex

    def put(self, scope: Scope, data: bytes) -> str:
        """See `Blobs.put`. Bytes that are there already are made young, not sent again."""
        digest, owner = hashlib.sha256(data).hexdigest(), owner_key(scope)
        mine = {"owner": owner, "digest": digest, "at": to_micros(now())}
        refresh = "UPDATE threefold.blobs SET at = %(at)s WHERE owner = %(owner)s AND digest = %(digest)s"
        if not self._database.write(owner, lambda db: touched(change(db, refresh, mine))):
            insert = """INSERT INTO threefold.blobs (owner, digest, at, data)
                VALUES (%(owner)s, %(digest)s, %(at)s, %(data)s)
                ON CONFLICT (owner, digest) DO UPDATE SET at = excluded.at"""
            self._database.write(owner, lambda db: run(db, insert, {**mine, "data": data}))
        return digest

    def get(self, scope: Scope, digest: str) -> bytes:
        """See `Blobs.get`."""
        owner = owner_key(scope)
        found = self._database.read(
            owner,
            lambda db: one(db, "SELECT data FROM threefold.blobs WHERE owner = %s AND digest = %s", (owner, digest)),
        )
        if found is None:
            raise NotFound(f"no bytes with SHA-256 {digest}")
        data = bytes(found[0])
        if hashlib.sha256(data).hexdigest() != digest:
            raise IntegrityError(f"blob {digest} was changed or damaged in the database; restore it from an export")
        return data

    def has(self, scope: Scope, digest: str) -> bool:
        """See `Blobs.has`."""
        owner = owner_key(scope)
        found = self._database.read(
            owner,
            lambda db: one(db, "SELECT 1 FROM threefold.blobs WHERE owner = %s AND digest = %s", (owner, digest)),
        )
        return found is not None

    def link(self, scope: Scope, digest: str, seconds: int) -> str | None:  # noqa: ARG002 - nothing to link to
        """See `Blobs.link`."""
        return None

    def delete(self, scope: Scope, digest: str) -> bool:
        """See `Blobs.delete`."""
        owner = owner_key(scope)
        return bool(
            self._database.write(
                owner,
                lambda db: touched(
                    change(db, "DELETE FROM threefold.blobs WHERE owner = %s AND digest = %s", (owner, digest))
                ),
            )
        )

    def sweep(self, scope: Scope, keep: Collection[str]) -> int:
        """See `Blobs.sweep`."""
        owner = owner_key(scope)
        return self._database.write(
            owner,
            lambda db: touched(
                change(
                    db,
                    "DELETE FROM threefold.blobs WHERE owner = %s AND digest <> ALL(%s::text[])",
                    (owner, sorted(keep)),
                )
            ),
        )

    def digests(self, scope: Scope) -> Iterator[tuple[str, datetime]]:
        """See `Blobs.digests`."""
        owner = owner_key(scope)
        found = self._database.read(
            owner,
            lambda db: fetch(db, "SELECT digest, at FROM threefold.blobs WHERE owner = %s ORDER BY digest", (owner,)),
        )
        return iter([(digest, from_micros(at)) for digest, at in found])

    def stale(self, before: datetime) -> Iterator[tuple[str, str]]:
        """See `Blobs.stale`. In pages, by owner and digest."""
        last = (UUID(int=0), "")
        statement = """SELECT owner, digest FROM threefold.blobs WHERE at < %s AND (owner, digest) > (%s, %s)
                       ORDER BY owner, digest LIMIT 1000"""
        while page := self._database.read(None, partial(fetch, statement=statement, values=(to_micros(before), *last))):
            yield from ((owner.hex, digest) for owner, digest in page)
            last = page[-1]

    def discard(self, owner: str, names: Collection[str], before: datetime) -> int:
        """See `Blobs.discard`."""
        key = UUID(hex=owner)
        statement = "DELETE FROM threefold.blobs WHERE owner = %s AND digest = ANY(%s) AND at < %s"
        values = (key, sorted(names), to_micros(before))
        return self._database.write(key, lambda db: touched(change(db, statement, values)))

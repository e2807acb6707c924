"""An owner in a transaction that writes: locked, so that its writes are serial, with its counters at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from threefold.backends.postgres.connection import Db, fetch, one, run
from threefold.backends.postgres.keys import owner_key
from threefold.model.scope import Scope


@dataclass
class Owner:
    """Counters of a locked owner; `save` writes them back. `expires` is no later than the first end of a turn."""

    key: UUID
    scope: Scope
    last_number: int
    rows: int
    words: int
    expires: int | None

    def number(self) -> int:
        """The next number of this owner."""
        self.last_number += 1
        return self.last_number

    def expect(self, expires: int | None) -> None:
        """Note the end of a turn's time to live."""
        if expires is not None:
            self.expires = expires if self.expires is None else min(self.expires, expires)

    def save(self, db: Db) -> None:
        """Write the counters back."""
        run(
            db,
            "UPDATE threefold.owners SET last_number = %s, rows = %s, words = %s, expires = %s WHERE owner = %s",
            (self.last_number, self.rows, self.words, self.expires, self.key),
        )


# PostgreSQL 18 locks a row of a partitioned table that changed while it waited, but a cached plan then does not return
# it. So what is locked is read by another statement, and a lock that returned nothing is asked for once more: where it
# is held already, it returns at once, and where the owner was made in the meantime, it is taken.
LOCK = "SELECT owner FROM threefold.owners WHERE owner = %s FOR UPDATE"
_LOCK_MANY = "SELECT owner FROM threefold.owners WHERE owner = ANY(%s) ORDER BY owner FOR UPDATE"
_READ = "SELECT last_number, rows, words, expires FROM threefold.owners WHERE owner = %s"


def lock_owner(db: Db, scope: Scope) -> Owner | None:
    """Lock the owner until the transaction ends; None where nothing was ever recorded for it."""
    key = owner_key(scope)
    while True:
        lock = run(db, LOCK, (key,))
        found = one(db, _READ, (key,))
        if found is None:
            return None
        if lock.fetchone() is not None:
            return Owner(key, scope.owner, *found)


def lock_owners(db: Db, owners: Sequence[UUID]) -> set[UUID]:
    """Lock several owners, in order of their keys, until the transaction ends; returns those that are there."""
    run(db, _LOCK_MANY, (sorted(owners),))
    return {owner for (owner,) in fetch(db, _LOCK_MANY, (sorted(owners),))}


def make_owner(db: Db, scope: Scope) -> Owner:
    """As `lock_owner`, making the owner where it is missing; that is undone with the transaction.

    Another transaction may make it at the same time: then this waits for that one.
    """
    while (owner := lock_owner(db, scope)) is None:
        run(
            db,
            "INSERT INTO threefold.owners (owner, tenant, name, realm) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
            (owner_key(scope), *scope.key),
        )
    return owner

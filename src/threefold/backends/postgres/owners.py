"""An owner in a transaction that writes: locked, so that its writes are serial, with its counters at hand."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from threefold.backends.postgres.connection import Db, one, run
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


# Locking and reading are two statements: PostgreSQL 18 locks a row of a partitioned table that changed while it waited,
# but a cached plan then does not return it.
LOCK = "SELECT 1 FROM threefold.owners WHERE owner = %s FOR UPDATE"
_READ = "SELECT last_number, rows, words, expires FROM threefold.owners WHERE owner = %s"


def lock_owner(db: Db, scope: Scope) -> Owner | None:
    """Lock the owner until the transaction ends; None where nothing was ever recorded for it."""
    key = owner_key(scope)
    run(db, LOCK, (key,))
    found = one(db, _READ, (key,))
    return None if found is None else Owner(key, scope.owner, *found)


def make_owner(db: Db, scope: Scope) -> None:
    """Make the owner where it is missing, and lock it; it is undone with the transaction.

    Another transaction may make it at the same time: then this waits for that one.
    """
    key = owner_key(scope)
    run(
        db,
        "INSERT INTO threefold.owners (owner, tenant, name) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
        (key, scope.tenant, scope.user),
    )
    run(db, LOCK, (key,))

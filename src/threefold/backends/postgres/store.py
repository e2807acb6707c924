"""The PostgreSQL back end: one database for any number of stateless processes. Wiring of the rooms beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import UUID

from threefold.backends.postgres import (
    catalog,
    collecting,
    commits,
    indexing,
    moving,
    reads,
    removal,
    schema,
    scrubbing,
    search,
    upkeep,
)
from threefold.backends.postgres.connection import Database, Db, fetch, one, run
from threefold.backends.postgres.keys import owner_key
from threefold.backends.postgres.owners import lock_owner
from threefold.errors import Unavailable
from threefold.model.candidates import Candidates
from threefold.model.commit import Commit, Outcome
from threefold.model.moving import MovedTurn, TurnKey
from threefold.model.query import Query
from threefold.model.record import CatalogEntry, Conversation, StoredTurn, TurnRecord
from threefold.model.retention import Gone, Receipt, Target
from threefold.model.rows import RowKey, StoredRow
from threefold.model.scope import Scope
from threefold.model.times import to_micros
from threefold.ports import Blobs, CatalogQuery, PendingRow, StoreState
from threefold.text.terms import ANALYZER

if TYPE_CHECKING:
    import numpy as np

# Owners that one look for expired turns takes up.
_SWEPT = 100


class PostgresStore:
    """`Store` and `Upkeep` over one PostgreSQL database. Safe from many threads and processes.

    The writes of one owner are serial (its row in `owners` is locked), those of different owners are parallel. With
    `durable` (the default) an acknowledged commit survives a crash of the server; without, the last moments may go.
    `beside` is closed with the store.

    Raises:
        Unavailable: the server cannot be reached. Conflict: the schema is newer, or is to be migrated first.
    """

    def __init__(
        self,
        database: Database,
        blobs: Blobs,
        partitions: int = schema.DEFAULT_PARTITIONS,
        beside: Database | None = None,
    ) -> None:
        self._database, self._blobs, self._beside = database, blobs, beside
        with ExitStack() as undo:
            undo.callback(self.close)
            schema.open_schema(database, partitions)
            undo.pop_all()

    def commit(self, commit: Commit) -> tuple[Outcome, ...]:
        """See `Store.commit`."""
        tries = count()
        return self._database.write(
            owner_key(commit.scope), lambda db: commits.apply(db, commit, self._blobs, again=next(tries) > 0)
        )

    def candidates(self, query: Query) -> Candidates:
        """See `Store.candidates`."""
        return self._database.read(owner_key(query.scope), lambda db: search.candidates(db, query))

    def rows(
        self, scope: Scope, keys: Sequence[RowKey], now: datetime, around: int = 0, whole: bool = True
    ) -> tuple[StoredRow, ...]:
        """See `Store.rows`."""
        return self._database.read(owner_key(scope), lambda db: reads.rows(db, scope, keys, now, around, whole))

    def turn(self, scope: Scope, conversation: str, turn: str, now: datetime) -> StoredTurn | Gone | None:
        """See `Store.turn`."""
        return self._database.read(owner_key(scope), lambda db: reads.turn(db, scope, conversation, turn, now))

    def records(
        self, scope: Scope, keys: Sequence[tuple[str, str]], now: datetime, rows: bool = True
    ) -> tuple[TurnRecord, ...]:
        """See `Store.records`."""
        return self._database.read(owner_key(scope), lambda db: reads.records(db, scope, keys, now, rows))

    def replays(
        self, scope: Scope, keys: Sequence[tuple[str, str]], now: datetime
    ) -> Mapping[tuple[str, str], Mapping[str, Any]]:
        """See `Store.replays`."""
        return self._database.read(owner_key(scope), lambda db: reads.replays(db, scope, keys, now))

    def catalog(self, scope: Scope, query: CatalogQuery) -> tuple[CatalogEntry, ...]:
        """See `Store.catalog`."""
        return self._database.read(owner_key(scope), lambda db: catalog.catalog(db, scope, query))

    def conversations(
        self, scope: Scope, now: datetime, limit: int, after: tuple[datetime, str] | None = None
    ) -> tuple[Conversation, ...]:
        """See `Store.conversations`."""
        return self._database.read(owner_key(scope), lambda db: catalog.conversations(db, scope, now, limit, after))

    def purge(self, scope: Scope, target: Target) -> Receipt:
        """See `Store.purge`. Rewrites the owners' part of the tables, where the removed bytes still stand."""
        owners = self._aimed(scope, target)
        keys = [owner_key(owner) for owner in owners]
        gone, repeated = Counter[str](), False
        for owner in owners:
            counts, again = self._purge_one(owner, Target() if target.tenant else target)
            gone, repeated = gone + counts, repeated or again
        leftovers: tuple[str, ...] = ()
        if repeated:
            leftovers += ("the connection broke and it was done again: the counts may be too low",)
        try:
            gone["blobs"] += self._delete_doomed_blobs(keys)
            self._delete_doomed_blobs()  # what fuller editions of others' turns left is not of this receipt
        except Unavailable as error:
            leftovers += (f"bytes of files, which the next sweep removes: {error}",)
        touched = keys if repeated or any(gone.values()) else []
        return Receipt(target.kind, gone, (*leftovers, *scrubbing.scrub_owners(self._database, touched)))

    def _purge_one(self, scope: Scope, target: Target) -> tuple[Counter[str], bool]:
        """Purge within one owner; what went, and whether it was tried more than once."""
        tries = count()

        def job(db: Db) -> Counter[str]:
            next(tries)
            return removal.purge(db, scope, target, self._blobs)

        return self._database.write(owner_key(scope), job), next(tries) > 1

    def _aimed(self, scope: Scope, target: Target) -> list[Scope]:
        """The owners whom a purge may touch: all of a tenant, a user in every realm, or the one that is named."""
        if not target.tenant and (target.conversation is not None or scope.app is not None):
            return [scope]
        statement = """SELECT tenant, name, realm FROM threefold.owners
                       WHERE tenant = %s AND (%s::text IS NULL OR name = %s)"""
        user = None if target.tenant else scope.user
        found = self._database.read(None, lambda db: fetch(db, statement, (scope.tenant, user, user)))
        owners = {key: Scope.of(*key) for key in found}
        return list(owners.values() if target.tenant else {scope.key: scope, **owners}.values())

    def _delete_doomed_blobs(self, owners: Sequence[UUID] | None = None) -> int:
        gone = 0
        job = partial(collecting.delete_doomed, blobs=self._blobs, owners=owners)
        while deleted := self._database.write(None, job):
            gone += deleted
        return gone

    def claim(self, limit: int, now: datetime, lease_seconds: float) -> tuple[PendingRow, ...]:
        """See `Upkeep.claim`."""
        return self._database.write(None, lambda db: upkeep.claim(db, limit, now, lease_seconds))

    def put_vectors(self, model: str, done: Sequence[tuple[PendingRow, np.ndarray]]) -> int:
        """See `Upkeep.put_vectors`."""
        return self._database.write(None, lambda db: upkeep.put_vectors(db, model, done))

    def embedding_failed(self, rows: Sequence[PendingRow], why: str, retry_at: datetime) -> None:
        """See `Upkeep.embedding_failed`."""
        self._database.write(None, lambda db: upkeep.embedding_failed(db, rows, why, retry_at))

    def reset_vectors(self) -> int:
        """See `Upkeep.reset_vectors`."""
        return self._database.write(None, upkeep.reset_vectors)

    def expire(self, now: datetime, limit: int = 1000) -> int:
        """See `Upkeep.expire`. Owner by owner, each in its own transaction."""
        gone, moment = 0, to_micros(now)
        statement = "SELECT tenant, name, realm FROM threefold.owners WHERE expires <= %s ORDER BY expires LIMIT %s"
        while gone < limit and (due := self._database.read(None, lambda db: fetch(db, statement, (moment, _SWEPT)))):
            for key in due:
                scope = Scope.of(*key)
                job = partial(_expire, scope=scope, now=moment, limit=limit - gone)
                gone += self._database.write(owner_key(scope), job)
                if gone >= limit:
                    break
        self._delete_doomed_blobs()
        return gone

    def blob_refs(self) -> Iterator[tuple[Scope, str]]:
        """See `Upkeep.blob_refs`."""
        statement = """SELECT o.tenant, o.name, o.realm, f.digest FROM threefold.files AS f
                       JOIN threefold.owners AS o ON o.owner = f.owner"""
        found = self._database.read(None, lambda db: fetch(db, statement))
        return iter([(Scope.of(*key), digest) for *key, digest in found])

    def collect(self, scope: Scope, digests: Collection[str], before: datetime) -> int:
        """See `Upkeep.collect`."""
        return self._database.write(
            owner_key(scope), lambda db: collecting.collect(db, scope, digests, before, self._blobs)
        )

    def collect_strays(self, found: Mapping[str, Collection[str]], before: datetime) -> int:
        """See `Upkeep.collect_strays`."""
        return self._database.write(None, lambda db: collecting.collect_strays(db, found, before, self._blobs))

    def scopes(self) -> Iterator[Scope]:
        """See `Upkeep.scopes`."""
        statement = "SELECT tenant, name, realm FROM threefold.owners ORDER BY tenant, name, realm"
        found = self._database.read(None, lambda db: fetch(db, statement))
        return iter([Scope.of(*key) for key in found])

    def labelled(
        self, realm: str, label: str, now: datetime, before: datetime | None, limit: int
    ) -> tuple[tuple[Scope, str, str], ...]:
        """See `Upkeep.labelled`."""
        return self._database.read(None, lambda db: catalog.having_label(db, realm, label, now, before, limit))

    def state(self, now: datetime, check: bool = False) -> StoreState:
        """See `Upkeep.state`."""
        return self._database.read(None, lambda db: upkeep.state(db, now, check))

    def reindex(self) -> int:
        """See `Upkeep.reindex`. Owner by owner, each in its own transaction."""
        indexed = 0
        for scope in self.scopes():
            indexed += self._database.write(owner_key(scope), partial(_reindex, scope=scope))
        statement = """INSERT INTO threefold.meta (key, value) VALUES ('analyzer', %s)
                       ON CONFLICT (key) DO UPDATE SET value = excluded.value"""
        self._database.write(None, lambda db: run(db, statement, (ANALYZER,)))
        return indexed

    def turn_keys(self, scope: Scope, after: int = 0, limit: int = 1000) -> tuple[TurnKey, ...]:
        """See `Upkeep.turn_keys`."""
        return self._database.read(owner_key(scope), lambda db: moving.turn_keys(db, scope, after, limit))

    def moved(self, scope: Scope, keys: Sequence[TurnKey]) -> tuple[MovedTurn, ...]:
        """See `Upkeep.moved`."""
        return self._database.read(owner_key(scope), lambda db: moving.moved(db, scope, keys))

    def receive(self, scope: Scope, turns: Sequence[MovedTurn], model: str | None) -> int:
        """See `Upkeep.receive`."""
        return self._database.write(owner_key(scope), lambda db: moving.receive(db, scope, turns, model))

    def tombstones(self, scope: Scope) -> Mapping[bytes, Gone]:
        """See `Upkeep.tombstones`."""
        return self._database.read(owner_key(scope), lambda db: moving.tombstones(db, scope))

    def bury(self, scope: Scope, tombstones: Mapping[bytes, Gone]) -> None:
        """See `Upkeep.bury`."""
        self._database.write(owner_key(scope), lambda db: moving.bury(db, scope, tombstones))

    def identity(self) -> str:
        """See `Upkeep.identity`. Given when it is first asked for; after that nothing is written, as on a replica."""
        found = self._database.read(None, lambda db: one(db, "SELECT value FROM threefold.meta WHERE key = 'store'"))
        return self._database.write(None, upkeep.identity) if found is None else str(found[0])

    def scrub(self) -> tuple[str, ...]:
        """See `Upkeep.scrub`."""
        return scrubbing.scrub(self._database)

    def close(self) -> None:
        """See `Upkeep.close`."""
        self._database.close()
        if self._beside is not None:
            self._beside.close()


def _expire(db: Db, scope: Scope, now: int, limit: int) -> int:
    owner = lock_owner(db, scope)
    return 0 if owner is None else removal.expire(db, owner, now, limit)


def _reindex(db: Db, scope: Scope) -> int:
    owner = lock_owner(db, scope)
    return 0 if owner is None else indexing.reindex(db, owner.key)

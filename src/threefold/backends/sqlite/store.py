"""The SQLite back end: one file beside a folder of blobs. Wiring of the rooms beside it.

What a search needs is loaded with this file, every other room by the first call that needs it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from threefold.backends.sqlite import rows, schema, search
from threefold.backends.sqlite.connection import Readers, fetch, one
from threefold.backends.sqlite.writer import Writer
from threefold.errors import Unavailable
from threefold.model.scope import Scope
from threefold.model.times import to_micros

if TYPE_CHECKING:
    import numpy as np

    from threefold.model.candidates import Candidates
    from threefold.model.commit import Commit, Outcome
    from threefold.model.moving import MovedTurn, TurnKey
    from threefold.model.query import Query
    from threefold.model.record import CatalogEntry, Conversation, StoredTurn, TurnRecord
    from threefold.model.retention import Gone, Receipt, Target
    from threefold.model.rows import RowKey, StoredRow
    from threefold.ports import Blobs, CatalogQuery, PendingRow, StoreState

_SCRUB_TRIES, _SCRUB_PAUSE = 50, 0.1


class SqliteStore:
    """`Store` and `Upkeep` over one SQLite file in write-ahead mode. Safe from many threads and processes.

    With `durable` (the default) an acknowledged commit also survives the loss of power; without, that of the process.

    Raises:
        Unavailable: the folder cannot be used. Conflict: a newer program wrote the file.
    """

    def __init__(self, folder: Path, blobs: Blobs, durable: bool = True, file_name: str = "record.db") -> None:
        self.path = folder / file_name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Unavailable(
                f"store {folder} cannot be made: {error.strerror}; give a folder you may write to"
            ) from None
        self._blobs = blobs
        self._writer = Writer(self.path, durable)
        self._readers = Readers(self.path)
        self._caches = search.Caches()
        with ExitStack() as undo:
            undo.callback(self.close)
            with self._readers.snapshot() as db:
                current = schema.is_current(db)
            if not current:
                self._writer.run(lambda db: schema.migrate(db, self.path))
            undo.pop_all()

    def commit(self, commit: Commit) -> tuple[Outcome, ...]:
        """See `Store.commit`."""
        from threefold.backends.sqlite import commits

        return self._writer.run(lambda db: commits.apply(db, commit, self._blobs))

    def candidates(self, query: Query) -> Candidates:
        """See `Store.candidates`."""
        with self._readers.snapshot() as db:
            return search.candidates(db, query, self._caches)

    def rows(
        self, scope: Scope, keys: Sequence[RowKey], now: datetime, around: int = 0, whole: bool = True
    ) -> tuple[StoredRow, ...]:
        """See `Store.rows`."""
        with self._readers.snapshot() as db:
            return rows.rows(db, scope, keys, now, around, whole)

    def turn(self, scope: Scope, conversation: str, turn: str, now: datetime) -> StoredTurn | Gone | None:
        """See `Store.turn`."""
        from threefold.backends.sqlite import reads

        with self._readers.snapshot() as db:
            return reads.turn(db, scope, conversation, turn, now)

    def records(
        self, scope: Scope, keys: Sequence[tuple[str, str]], now: datetime, rows: bool = True
    ) -> tuple[TurnRecord, ...]:
        """See `Store.records`."""
        from threefold.backends.sqlite import reads

        with self._readers.snapshot() as db:
            return reads.records(db, scope, keys, now, rows)

    def replays(
        self, scope: Scope, keys: Sequence[tuple[str, str]], now: datetime
    ) -> Mapping[tuple[str, str], Mapping[str, Any]]:
        """See `Store.replays`."""
        from threefold.backends.sqlite import reads

        with self._readers.snapshot() as db:
            return reads.replays(db, scope, keys, now)

    def catalog(self, scope: Scope, query: CatalogQuery) -> tuple[CatalogEntry, ...]:
        """See `Store.catalog`."""
        from threefold.backends.sqlite import reads

        with self._readers.snapshot() as db:
            return reads.catalog(db, scope, query)

    def conversations(
        self, scope: Scope, now: datetime, limit: int, after: tuple[datetime, str] | None = None
    ) -> tuple[Conversation, ...]:
        """See `Store.conversations`."""
        from threefold.backends.sqlite import reads

        with self._readers.snapshot() as db:
            return reads.conversations(db, scope, now, limit, after)

    def purge(self, scope: Scope, target: Target) -> Receipt:
        """See `Store.purge`. Also empties the write-ahead log, where the removed words may still stand."""
        from threefold.backends.sqlite import removal
        from threefold.model.retention import Receipt

        gone = self._writer.run(lambda db: removal.purge(db, scope, target, self._blobs))
        deleted, leftovers = 0, list[str]()
        try:
            deleted = self._delete_doomed_blobs()
        except Unavailable as error:
            leftovers.append(f"bytes of files, which the next sweep removes: {error}")
        gone["blobs"] += deleted
        self._caches.clear()
        busy = self.scrub()
        return Receipt(target.kind, {"log emptied": int(not busy), **gone}, (*leftovers, *busy))

    def identity(self) -> str:
        """See `Upkeep.identity`. Given when it is first asked for; after that nothing is written."""
        from threefold.backends.sqlite import upkeep

        with self._readers.snapshot() as db:
            found = one(db, "SELECT value FROM meta WHERE key = 'store'")
        return self._writer.run(upkeep.identity) if found is None else str(found[0])

    def _delete_doomed_blobs(self) -> int:
        from threefold.backends.sqlite import removal

        with self._readers.snapshot() as db:
            committed = removal.doomed_blobs(db)
        return self._writer.run(lambda db: removal.delete_doomed_blobs(db, self._blobs, committed)) if committed else 0

    def scrub(self) -> tuple[str, ...]:
        """See `Upkeep.scrub`."""
        return () if self._scrub(_SCRUB_TRIES) else ("the write-ahead log is being read by another process",)

    def _scrub(self, tries: int) -> bool:
        """Remove what is left in index, log and file of what was removed; False where a reader kept the log busy."""
        from threefold.backends.sqlite import scrubbing

        for left in reversed(range(tries)):
            if self._writer.outside(lambda db: scrubbing.scrub(db, self.path)):
                return True
            if left:
                time.sleep(_SCRUB_PAUSE)
        return False

    def claim(self, limit: int, now: datetime, lease_seconds: float) -> tuple[PendingRow, ...]:
        """See `Upkeep.claim`."""
        from threefold.backends.sqlite import upkeep

        with self._readers.snapshot() as db:
            waiting = one(db, "SELECT 1 FROM waiting WHERE due <= ? LIMIT 1", (to_micros(now),))
        return self._writer.run(lambda db: upkeep.claim(db, limit, now, lease_seconds)) if waiting else ()

    def put_vectors(self, model: str, done: Sequence[tuple[PendingRow, np.ndarray]]) -> int:
        """See `Upkeep.put_vectors`."""
        from threefold.backends.sqlite import upkeep

        return self._writer.run(lambda db: upkeep.put_vectors(db, model, done))

    def embedding_failed(self, rows: Sequence[PendingRow], why: str, retry_at: datetime) -> None:
        """See `Upkeep.embedding_failed`."""
        from threefold.backends.sqlite import upkeep

        self._writer.run(lambda db: upkeep.embedding_failed(db, rows, why, retry_at))

    def reset_vectors(self) -> int:
        """See `Upkeep.reset_vectors`."""
        from threefold.backends.sqlite import upkeep

        return self._writer.run(upkeep.reset_vectors)

    def expire(self, now: datetime, limit: int = 1000) -> int:
        """See `Upkeep.expire`."""
        from threefold.backends.sqlite import removal, scrubbing

        with self._readers.snapshot() as db:
            over = removal.expired_turns(db, to_micros(now), 1)
            doomed = one(db, "SELECT 1 FROM doomed LIMIT 1")
            scrub_due = scrubbing.due(db)
        gone = self._writer.run(lambda db: removal.expire(db, to_micros(now), limit)) if over else 0
        if over or doomed:
            self._delete_doomed_blobs()
            self._caches.clear()
        if over or scrub_due:
            self._scrub(tries=1)
        return gone

    def blob_refs(self) -> Iterator[tuple[Scope, str]]:
        """See `Upkeep.blob_refs`."""
        with self._readers.snapshot() as db:
            found = fetch(
                db,
                """SELECT o.tenant, o.user, o.realm, f.digest FROM files AS f
                           JOIN owners AS o ON o.id = f.owner""",
            )
        return iter([(Scope.of(*key), digest) for *key, digest in found])

    def collect(self, scope: Scope, digests: Collection[str], before: datetime) -> int:
        """See `Upkeep.collect`. Looks first without the lock, so that a store without leftovers is never held up."""
        from threefold.backends.sqlite import removal

        with self._readers.snapshot() as db:
            loose = removal.unreferenced(db, scope, digests)
        return self._writer.run(lambda db: removal.collect(db, scope, loose, before, self._blobs)) if loose else 0

    def collect_strays(self, found: Mapping[str, Collection[str]], before: datetime) -> int:
        """See `Upkeep.collect_strays`."""
        from threefold.backends.sqlite import removal

        return self._writer.run(lambda db: removal.collect_strays(db, found, before, self._blobs))

    def scopes(self) -> Iterator[Scope]:
        """See `Upkeep.scopes`."""
        with self._readers.snapshot() as db:
            found = fetch(db, "SELECT tenant, user, realm FROM owners ORDER BY id")
        return iter([Scope.of(*key) for key in found])

    def labelled(
        self, realm: str, label: str, now: datetime, before: datetime | None, limit: int
    ) -> tuple[tuple[Scope, str, str], ...]:
        """See `Upkeep.labelled`."""
        from threefold.backends.sqlite import reads

        with self._readers.snapshot() as db:
            return reads.labelled(db, realm, label, now, before, limit)

    def state(self, now: datetime, check: bool = False) -> StoreState:
        """See `Upkeep.state`."""
        from threefold.backends.sqlite import upkeep

        with self._readers.snapshot() as db:
            return upkeep.state(db, now, check)

    def reindex(self) -> int:
        """See `Upkeep.reindex`."""
        from threefold.backends.sqlite import indexing

        return self._writer.run(indexing.reindex)

    def turn_keys(self, scope: Scope, after: int = 0, limit: int = 1000) -> tuple[TurnKey, ...]:
        """See `Upkeep.turn_keys`."""
        from threefold.backends.sqlite import moving

        with self._readers.snapshot() as db:
            return moving.turn_keys(db, scope, after, limit)

    def moved(self, scope: Scope, keys: Sequence[TurnKey]) -> tuple[MovedTurn, ...]:
        """See `Upkeep.moved`."""
        from threefold.backends.sqlite import moving

        with self._readers.snapshot() as db:
            return moving.moved(db, scope, keys)

    def receive(self, scope: Scope, turns: Sequence[MovedTurn], model: str | None) -> int:
        """See `Upkeep.receive`."""
        from threefold.backends.sqlite import moving

        return self._writer.run(lambda db: moving.receive(db, scope, turns, model))

    def tombstones(self, scope: Scope) -> Mapping[bytes, Gone]:
        """See `Upkeep.tombstones`."""
        from threefold.backends.sqlite import moving

        with self._readers.snapshot() as db:
            return moving.tombstones(db, scope)

    def bury(self, scope: Scope, tombstones: Mapping[bytes, Gone]) -> None:
        """See `Upkeep.bury`."""
        from threefold.backends.sqlite import moving

        if tombstones:
            self._writer.run(lambda db: moving.bury(db, scope, tombstones))

    def close(self) -> None:
        """See `Upkeep.close`. In a forked child nothing is closed: locks may be held by threads it does not have."""
        if self._writer.forked:
            return
        self._readers.close()
        self._writer.close()
        self._caches.clear()

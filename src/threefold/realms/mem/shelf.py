"""Memories in the store: read by id, changed only as they were seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from threefold.errors import Conflict, NotFound
from threefold.model.commit import Commit, RecordTurn
from threefold.model.memory import Memory
from threefold.model.scope import Scope
from threefold.ports import CatalogQuery
from threefold.realms.mem import places
from threefold.realms.mem.keeping import TURN, Kept, from_record, memory_of, to_record
from threefold.realms.wiring import Ports

_TRIES: Final = 5
Labels = tuple[tuple[str, ...], ...]


class Shelf:
    """The memories that one scope may see, wherever they lie."""

    def __init__(self, scope: Scope, ports: Ports) -> None:
        self._scope, self._ports = scope, ports

    def place(self, record: str) -> Scope:
        """Where the memory with this id lies."""
        return places.place_of(self._scope, places.of_id(record))

    def read(self, ids: Iterable[str]) -> Mapping[str, Kept]:
        """Those of the memories that are there, with their revisions."""
        store, now = self._ports.store, self._ports.clock()
        records = (each for where, keys in self._by_place(ids) for each in store.records(where, keys, now, rows=False))
        return {record.conversation: from_record(record) for record in records}

    def memories(self, ids: Iterable[str]) -> Mapping[str, Memory]:
        """Those of the memories that are there."""
        store, now = self._ports.store, self._ports.clock()
        replays = (each for where, keys in self._by_place(ids) for each in store.replays(where, keys, now).items())
        return {id_: memory_of(id_, replay) for (id_, _), replay in replays}

    def _by_place(self, ids: Iterable[str]) -> Iterable[tuple[Scope, list[tuple[str, str]]]]:
        """Where the memories lie, and how they are asked for there."""
        found: dict[Scope, list[tuple[str, str]]] = {}
        for id_ in ids:
            found.setdefault(self.place(id_), []).append((id_, TURN))
        return found.items()

    def one(self, record: str) -> Kept:
        """A memory that must be there.

        Raises:
            NotFound: it is not.
        """
        kept = self.read([record]).get(record)
        if kept is None:
            raise NotFound(f"memory {record!r}: no such memory, or its time is over")
        return kept

    def newest(self, where: Scope, labels: Labels, limit: int, after: tuple[datetime, str] | None = None) -> list[str]:
        """Ids of memories in one place that have the labels, those last touched first."""
        cursor = None if after is None else (*after, TURN)
        query = CatalogQuery(
            self._ports.clock(), newest_first=True, limit=limit, after=cursor, labels=labels, bare=True
        )
        return [entry.conversation for entry in self._ports.store.catalog(where, query)]

    def change(self, record: str, change: Callable[[Kept], Kept], revision: int | None = None) -> Memory:
        """Change a memory as it stands; where it is changed meanwhile, as it stands then.

        Raises:
            NotFound: it is not there. Conflict: it is not at the `revision` that was asked for.
        """
        for _ in range(_TRIES):
            before = self.one(record)
            if revision is not None and before.record.revision != revision:
                raise Conflict(
                    f"memory {record!r} is at revision {before.record.revision}, not {revision}; read it and try again"
                )
            after = change(before)
            if after is before or self.put([(after, before.digest)]):
                return after.record
        raise Conflict(f"memory {record!r} is being changed by many at once; try again")

    def put(self, changes: Sequence[tuple[Kept, str]]) -> bool:
        """Keep memories in place of what had these digests, all or none; False where one was changed meanwhile."""
        place = self.place(changes[0][0].record.id)
        writes = tuple(RecordTurn(to_record(kept), replaces=digest) for kept, digest in changes)
        try:
            self._ports.store.commit(Commit(place, writes))
        except Conflict:
            return False
        self._ports.committed()
        return True

"""Documents in the store: read by id, listed, changed only as they were seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from threefold.errors import BytesGone, Conflict, Forbidden
from threefold.model.commit import Commit, Outcome, RecordTurn
from threefold.model.document import Document
from threefold.model.record import FileEntry, StoredTurn, TurnRecord
from threefold.model.retention import Gone
from threefold.model.rows import RowKey, StoredRow
from threefold.model.scope import Scope
from threefold.ports import CatalogQuery
from threefold.realms.doc import places
from threefold.realms.doc.keeping import TEXT, TURN, Draft, from_record
from threefold.realms.places import Place
from threefold.realms.wiring import Ports

_TRIES: Final = 3
_PAGE: Final = 500
Labels = tuple[tuple[str, ...], ...]
Cursor = tuple[datetime, str]


@dataclass(frozen=True, slots=True, eq=False)
class Shelf:
    """The documents of one place."""

    ports: Ports
    where: Scope

    @classmethod
    def at(cls, scope: Scope, ports: Ports, place: Place) -> Shelf:
        """The shelf of a place, as it is seen from a user's scope."""
        return cls(ports, places.place_of(scope, place))

    def record(self, id_: str) -> TurnRecord | None:
        """A document with its chunks, where it is there; another app's is not."""
        found = self.stored(id_)
        return found.record if isinstance(found, StoredTurn) else None

    def stored(self, id_: str) -> StoredTurn | Gone | None:
        """A document with its chunks, or why it is gone; None where there never was one."""
        try:
            return self.ports.store.turn(self.where, id_, TURN, self.ports.clock())
        except Forbidden:
            return None

    def light(self, id_: str) -> TurnRecord | None:
        """A document without its chunks, where it is there; another app's is not."""
        try:
            found = self.ports.store.records(self.where, [(id_, TURN)], self.ports.clock(), rows=False)
        except Forbidden:
            return None
        return found[0] if found else None

    def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """Those of the documents that are there."""
        keys = [(id_, TURN) for id_ in ids]
        found = self.ports.store.records(self.where, keys, self.ports.clock(), rows=False)
        return {record.conversation: from_record(record) for record in found}

    def rows(self, keys: Sequence[RowKey]) -> dict[RowKey, StoredRow]:
        """The chunks with these keys that are there."""
        found = self.ports.store.rows(self.where, keys, self.ports.clock(), whole=False) if keys else ()
        return {row.key: row for row in found}

    def page(self, limit: int, after: Cursor | None = None, labels: Labels = ()) -> list[Document]:
        """Documents that have the labels, those last changed first."""
        cursor = None if after is None else (*after, TURN)
        query = CatalogQuery(self.ports.clock(), newest_first=True, limit=limit, after=cursor, labels=labels)
        ids = [entry.conversation for entry in self.ports.store.catalog(self.where, query)]
        found = self.documents(ids)
        return [found[id_] for id_ in ids if id_ in found]

    def all(self, labels: Labels = ()) -> Iterator[Document]:
        """Every document that has the labels."""
        after = None
        while page := self.page(_PAGE, after, labels):
            yield from page
            after = (page[-1].updated, page[-1].id)

    def put(self, draft: Draft, record: TurnRecord, replaces: str) -> Outcome | None:
        """Keep a document in place of what had this digest (empty: of nothing); None where it was changed meanwhile."""
        for last in (*[False] * (_TRIES - 1), True):
            for data, _ in draft.files.values():
                self.ports.blobs.put(self.where, data)
            try:
                (outcome,) = self.ports.store.commit(Commit(self.where, (RecordTurn(record, replaces),)))
            except Conflict:
                return None
            except BytesGone:
                if last:
                    raise
            else:
                if outcome != "unchanged":
                    self.ports.committed()
                return outcome
        return None

    def text(self, record: TurnRecord) -> str:
        """The text of a document, as its chunks are cut from it."""
        return self.ports.blobs.get(self.where, file_of(record, TEXT).digest).decode()


def file_of(record: TurnRecord, path: str) -> FileEntry:
    """The file of a document that is called so; where there is none, the one that there is."""
    return next((file for file in record.files if file.path == path), record.files[0])

"""Following a reference to a document or a chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from threefold.errors import Expired, InvalidInput, NotFound, Purged
from threefold.model.record import StoredTurn, TurnRecord
from threefold.model.ref import ObjectRef, parse_ref
from threefold.model.resolved import Resolved, Shown, cut
from threefold.model.rows import RowKey
from threefold.model.scope import Scope
from threefold.realms.doc import places
from threefold.realms.doc.keeping import ORIGINAL, from_record, passage_of
from threefold.realms.doc.shelf import Shelf, file_of
from threefold.realms.places import SEEN_FROM, Place
from threefold.realms.wiring import Ports


def referred(scope: Scope, ports: Ports, place: Place, ref: str) -> tuple[ObjectRef, Shelf, TurnRecord]:
    """The reference, and the document that it names with its shelf.

    Raises:
        InvalidInput: it is no reference to a document. NotFound (Expired, Purged): it is not there (any more).
    """
    parsed = parse_ref(ref)
    if not isinstance(parsed, ObjectRef) or parsed.namespace != "doc":
        raise InvalidInput(f"reference {ref!r} names no document; give one that begins with doc:")
    where = places.of_id(parsed.id)
    if where not in SEEN_FROM[place]:
        raise NotFound(f"{ref}: no such document")
    shelf = Shelf.at(scope, ports, where)
    found = shelf.stored(parsed.id)
    if found == "expired":
        raise Expired(f"{ref}: its time to live is over")
    if found == "purged":
        raise Purged(f"{ref}: it was removed")
    if not isinstance(found, StoredTurn):
        raise NotFound(f"{ref}: no such document")
    return parsed, shelf, found.record


def resolved(ref: ObjectRef, record: TurnRecord) -> Resolved:
    """What a reference names: `document`, whose file is what was given where that is kept, or `chunk`.

    Raises:
        NotFound: the document has no such chunk (any more).
    """
    document = from_record(record)
    if ref.fragment is None:
        file = file_of(record, ORIGINAL)
        return Resolved(str(ref), "document", document.as_json(), None, file, document.title, document.updated)
    row = next((row for row in record.rows if row.path == ref.fragment), None)
    if row is None:
        raise NotFound(f"{ref}: the document has no such chunk; it may have changed: see {document.ref}")
    passage = passage_of(document.id, row)
    value = {**passage.as_json(), "document": document.id, "source": document.source, "title": document.title}
    above = " › ".join((document.title or document.source, *passage.headings))
    return Resolved(str(ref), "chunk", value, passage.text, None, above, document.updated)


def show(scope: Scope, ports: Ports, place: Place, refs: Sequence[ObjectRef], size: int) -> Mapping[str, Shown]:
    """What references name, by reference. Of a document that is not looked into only its beginning is read."""
    by_document: dict[str, list[ObjectRef]] = {}
    for ref in refs:
        by_document.setdefault(ref.id, []).append(ref)
    shown: dict[str, Shown] = {}
    for named in by_document.values():
        chunks = [ref for ref in named if ref.fragment is not None]
        try:
            shelf, record = _read(scope, ports, place, named[0], whole=bool(chunks))
        except NotFound as error:
            shown |= {str(ref): Shown.missing(str(ref), error) for ref in named}
            continue
        for ref in named:
            try:
                found = resolved(ref, record).shown(size)
            except NotFound as error:
                found = Shown.missing(str(ref), error)
            if ref.fragment is None:
                found = replace(found, text=cut(_beginning(shelf, record), size))
            shown[str(ref)] = found
    return shown


def _read(scope: Scope, ports: Ports, place: Place, ref: ObjectRef, whole: bool) -> tuple[Shelf, TurnRecord]:
    """A document, with its chunks where it is read `whole`; why it is not there is told of it either way."""
    where = places.of_id(ref.id)
    if not whole and where in SEEN_FROM[place]:
        shelf = Shelf.at(scope, ports, where)
        record = shelf.light(ref.id)
        if record is not None:
            return shelf, record
    _, shelf, record = referred(scope, ports, place, str(ref))
    return shelf, record


def _beginning(shelf: Shelf, record: TurnRecord) -> str:
    if record.rows:
        return record.rows[0].text
    key = RowKey(record.conversation, record.turn, 0)
    first = shelf.rows([key]).get(key)
    return "" if first is None else first.row.text

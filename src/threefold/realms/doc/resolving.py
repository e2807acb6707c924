"""Following a reference to a document or a chunk."""

from __future__ import annotations

from threefold.errors import Expired, InvalidInput, NotFound, Purged
from threefold.model.record import StoredTurn, TurnRecord
from threefold.model.ref import ObjectRef, parse_ref
from threefold.model.resolved import Resolved
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
        return Resolved(str(ref), "document", document.as_json(), None, file_of(record, ORIGINAL))
    row = next((row for row in record.rows if row.path == ref.fragment), None)
    if row is None:
        raise NotFound(f"{ref}: the document has no such chunk; it may have changed: see {document.ref}")
    passage = passage_of(document.id, row)
    value = {**passage.as_json(), "document": document.id, "source": document.source, "title": document.title}
    return Resolved(str(ref), "chunk", value, passage.text)

"""Where documents lie, and what they are called. Pure."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from threefold.errors import NotFound
from threefold.model.scope import Scope
from threefold.realms import places
from threefold.realms.places import Place

REALM: Final = "doc"
_OWN: Final = "doc_"


def place_of(scope: Scope, place: Place) -> Scope:
    """A place as it is seen from a user's scope."""
    return places.place_of(scope, REALM, place)


def of_id(id_: str) -> Place:
    """Where a document with this id lies.

    Raises:
        NotFound: no document has such an id.
    """
    place = places.of_id(id_, _OWN)
    if place is None:
        raise not_there(id_)
    return place


def is_id(text: str) -> bool:
    """Whether this may be the id of a document, and not a source."""
    return places.of_id(text, _OWN) is not None and len(text) == len(_OWN) + 20


def document_id(place: Place, source: str, app: str | None) -> str:
    """The id of the document that a source is in a place: the same whenever it is taken in."""
    whose = app if place == "own" else None
    return places.prefix(place, _OWN) + blake2b(f"{source}\0{whose or ''}".encode(), digest_size=10).hexdigest()


def not_there(id_: str) -> NotFound:
    """What is said where there is no such document."""
    return NotFound(f"document {id_!r}: no such document; list() names them by id and source")

"""A few texts of a store, to see what kind of text it holds."""

from __future__ import annotations

from datetime import datetime
from itertools import islice

from threefold.model.rows import RowKey
from threefold.model.scope import Scope
from threefold.ports import Backend, CatalogQuery

_OWNERS = 20
_CONVERSATIONS = 10


def sample_texts(backend: Backend, now: datetime, count: int) -> list[str]:
    """Up to `count` texts with a letter in them, from the last turns of some owners."""
    owners = list(islice(backend.scopes(), _OWNERS))
    found: list[str] = []
    for scope in owners:
        found += _of_owner(backend, scope, now, max(1, count // len(owners)))
    return found[:count]


def _of_owner(backend: Backend, scope: Scope, now: datetime, count: int) -> list[str]:
    found: list[str] = []
    for conversation in backend.conversations(scope, now, _CONVERSATIONS):
        page = backend.catalog(scope, CatalogQuery(now, conversation.id, newest_first=True))
        keys = [RowKey(entry.conversation, entry.turn, 0) for entry in page]
        said = (stored.row.spoken for stored in backend.rows(scope, keys, now))
        found += [text for text in said if any(map(str.isalpha, text))]
        if len(found) >= count:
            break
    return found[:count]

"""How names become the small integers of this file, and what an index term looks like.

Every statement names the owner. Where a narrower key stands beside it, it is written `+owner`: a plus takes the
condition from SQLite's planner, which has no statistics here and would go through all that the owner has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import apsw

from threefold.backends.sqlite.connection import one
from threefold.model.scope import Scope

# The key of a scope as a condition.
WHOSE = "tenant = ? AND user = ? AND realm = ?"


class Owner(NamedTuple):
    """An owner's number and counters: of rows and their words, and of changes that caches must know of."""

    id: int
    rows: int
    words: int
    vectors: int
    replaced: int
    rewritten: int
    changes: int


def read_owner(db: apsw.Connection, scope: Scope) -> Owner | None:
    """The owner with its counters, or None where nothing was ever recorded for it."""
    sql = f"SELECT {', '.join(Owner._fields)} FROM owners WHERE {WHOSE}"
    found = one(db, sql, scope.key)
    return None if found is None else Owner(*found)


def find_owner(db: apsw.Connection, scope: Scope) -> int | None:
    """The owner's number, or None where nothing was ever recorded for it."""
    found = one(db, f"SELECT id FROM owners WHERE {WHOSE}", scope.key)
    return None if found is None else int(found[0])


def make_owner(db: apsw.Connection, scope: Scope) -> int:
    """The owner's number, given one now if it is new."""
    owner = find_owner(db, scope)
    if owner is None:
        db.execute("INSERT INTO owners (tenant, user, realm) VALUES (?, ?, ?)", scope.key)
        owner = db.last_insert_rowid()
    return owner


def term_key(owner: int, term: str) -> str:
    """A term of the full-text index: it begins with the owner's number, so no other owner's rows are ever counted."""
    return f"{owner}:{term}"


def term_text(owner: int, terms: Sequence[str]) -> str:
    """What is indexed of a row: its terms with the owner's number, joined by blanks."""
    return f"{owner}:" + f" {owner}:".join(terms) if terms else ""


def marks(count: int) -> str:
    """`?, ?, …` for an IN list."""
    return ", ".join("?" * count)

"""Numbered migrations of a schema, the same for every engine: which there are, and which of them a store lacks.

An engine keeps a table of what was applied (number, name, digest) and runs what is pending in one transaction. A
migration that was released is never edited: its digest is pinned in a test and checked in every store.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from threefold.errors import Conflict, IntegrityError

_FILE = re.compile(r"(\d{4})_(\w+)\.sql")


class Migration(NamedTuple):
    """One step of a schema. `digest` is the SHA-256 of its SQL in hex, with line ends as `\\n`."""

    number: int
    name: str
    sql: str
    digest: str

    def __str__(self) -> str:
        """As its file is called: `0001_record`."""
        return f"{self.number:04}_{self.name}"


class Schema(NamedTuple):
    """Where a store stands: the number of its schema and the migrations that it lacks or, once migrated, lacked."""

    number: int
    migrations: tuple[Migration, ...] = ()


def load(package: str) -> tuple[Migration, ...]:
    """The migrations in `<package>/migrations/NNNN_name.sql`, in order.

    Raises:
        IntegrityError: their numbers are not 1, 2, 3, … without gaps.
    """
    spec = find_spec(package)
    folders = spec.submodule_search_locations if spec is not None else None
    files = {file.name: file for folder in folders or () for file in (Path(folder) / "migrations").iterdir()}
    found = []
    for name in sorted(files):
        parts = _FILE.fullmatch(name)
        if parts is not None:
            sql = files[name].read_text("utf-8")  # which gives every line end as \n
            found.append(Migration(int(parts[1]), parts[2], sql, hashlib.sha256(sql.encode()).hexdigest()))
    if not found or [migration.number for migration in found] != list(range(1, len(found) + 1)):
        raise IntegrityError(f"the migrations of {package} have a gap or a number twice; install threefold anew")
    return tuple(found)


def pending(known: Sequence[Migration], applied: Mapping[int, str], where: str) -> tuple[Migration, ...]:
    """Those of `known` that are not among `applied` (number → digest), in order; `where` names the store in errors.

    Raises:
        Conflict: a newer program made the schema, or one of `applied` was another migration of the same number.
    """
    newest = max(applied, default=0)
    if newest > len(known):
        raise Conflict(f"store {where} has schema {newest}, this program knows up to {len(known)}; update threefold")
    for migration in known:
        if applied.get(migration.number, migration.digest) != migration.digest:
            raise Conflict(
                f"store {where}: migration {migration} was applied with other content than this program has; "
                "use the threefold that made the store, or export from it and restore into a new one"
            )
    return tuple(migration for migration in known if migration.number not in applied)

"""The operator's side: the queue of rows that wait for vectors, rebuilding, looking for damage."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import apsw

from threefold.backends.sqlite.connection import fetch, one, scalar
from threefold.backends.sqlite.indexing import indexed_rows
from threefold.backends.sqlite.keys import find_owner
from threefold.errors import Conflict
from threefold.model.codec import compact_json
from threefold.model.rows import RowKey
from threefold.model.scope import Scope
from threefold.model.times import to_micros
from threefold.ports import PendingRow, StoreState
from threefold.text.terms import ANALYZER

if TYPE_CHECKING:
    import numpy as np

_COUNTED = ("owners", "conversations", "turns", "rows", "files", "feedback", "vocabulary", "vectors")


def claim(db: apsw.Connection, limit: int, now: datetime, lease_seconds: float) -> tuple[PendingRow, ...]:
    """Take the next rows that are due; until the lease ends no other worker sees them."""
    until = to_micros(now + timedelta(seconds=lease_seconds))
    numbers = [
        n for (n,) in fetch(db, "SELECT row FROM waiting WHERE due <= ? ORDER BY row LIMIT ?", (to_micros(now), limit))
    ]
    wanted = json.dumps(numbers)
    db.execute("UPDATE waiting SET due = ? WHERE row IN (SELECT value FROM json_each(?))", (until, wanted))
    claimed = fetch(
        db,
        """SELECT o.tenant, o.user, o.realm, w.row, c.name, t.name, r.seq, r.author, r.text, w.attempts
           FROM json_each(?) AS wanted CROSS JOIN waiting AS w ON w.row = wanted.value
           CROSS JOIN rows AS r ON r.id = w.row AND +r.owner = w.owner CROSS JOIN owners AS o ON o.id = r.owner
           CROSS JOIN turns AS t ON t.id = r.turn CROSS JOIN conversations AS c ON c.id = r.conversation""",
        (wanted,),
    )
    scopes = {key: Scope.of(*key) for key in {row[:3] for row in claimed}}
    return tuple(
        PendingRow(scopes[row[:3]], RowKey(conversation, turn, seq), _spoken(author, text), attempts, number)
        for row in claimed
        for number, conversation, turn, seq, author, text, attempts in [row[3:]]
    )


def _places(db: apsw.Connection, rows: Sequence[PendingRow]) -> dict[int, tuple[int, int]]:
    """Index in `rows` → (owner, row) of those that still wait with the text that was claimed."""
    found: dict[int, tuple[int, int]] = {}
    of_owner: dict[Scope, dict[int, int]] = {}
    for index, row in enumerate(rows):
        of_owner.setdefault(row.scope, {})[row.number] = index
    for scope, mine in of_owner.items():
        owner = find_owner(db, scope)
        waiting = fetch(
            db,
            """SELECT r.id, r.author, r.text FROM json_each(?) AS wanted CROSS JOIN waiting AS w ON w.row = wanted.value
               CROSS JOIN rows AS r ON r.id = w.row WHERE +r.owner = ?""",
            (compact_json(list(mine)), owner),
        )
        for number, author, text in waiting:
            # A number is given again once its row is gone: it is the same row where it has the same text.
            if owner is not None and _spoken(author, text) == rows[mine[number]].text:
                found[mine[number]] = (owner, number)
    return found


def _spoken(author: str | None, text: str) -> str:
    return f"{author}: {text}" if author else text


def agree_on_model(db: apsw.Connection, model: str, dimensions: int) -> None:
    """Note by which model the vectors are, or refuse another than that of the vectors that are there."""
    stored = dict(fetch(db, "SELECT key, value FROM meta WHERE key IN ('embedder', 'dimensions')"))
    if not stored:
        db.execute("INSERT INTO meta (key, value) VALUES ('embedder', ?), ('dimensions', ?)", (model, dimensions))
    elif stored != {"embedder": model, "dimensions": dimensions}:
        raise Conflict(
            f"the store holds vectors of {stored['embedder']!r} ({stored['dimensions']} dimensions), not of {model!r} "
            f"({dimensions}); run `threefold reembed` to change the model"
        )


def put_vectors(db: apsw.Connection, model: str, done: Sequence[tuple[PendingRow, np.ndarray]]) -> int:
    """Store vectors as float16 and take their rows from the queue; rows that are gone meanwhile are left out."""
    if not done:
        return 0
    agree_on_model(db, model, int(done[0][1].shape[0]))
    places = _places(db, [row for row, _ in done])
    return store_vectors(db, [(place, done[index][1]) for index, place in places.items()])


def store_vectors(db: apsw.Connection, vectors: Sequence[tuple[tuple[int, int], np.ndarray]]) -> int:
    """Store vectors as float16 under (owner, row) and take the rows from the queue; returns how many rows."""
    if not vectors:
        return 0
    import numpy as np

    packed = np.asarray([vector for _, vector in vectors], dtype="<f2")
    places = {place for place, _ in vectors}
    last = {
        owner: scalar(db, "SELECT coalesce(max(row), 0) FROM vectors WHERE owner = ?", (owner,))
        for owner in {owner for owner, _ in places}
    }
    db.executemany(
        "INSERT OR REPLACE INTO vectors (owner, row, embedding) VALUES (?, ?, ?)",
        [(*place, vector.data) for (place, _), vector in zip(vectors, packed, strict=True)],
    )
    db.executemany("DELETE FROM waiting WHERE +owner = ? AND row = ?", places)
    db.executemany("UPDATE owners SET vectors = vectors + 1 WHERE id = ?", [(owner,) for owner in last])
    # A cache reads on behind the last it has; what lies before that is marked.
    db.executemany(
        "UPDATE rows SET vector_change = (SELECT vectors FROM owners WHERE id = ?1) WHERE +owner = ?1 AND id = ?2",
        [(owner, row) for owner, row in places if row <= last[owner]],
    )
    return len(places)


def embedding_failed(db: apsw.Connection, rows: Sequence[PendingRow], why: str, retry_at: datetime) -> None:
    """Note why, and when to try again."""
    db.executemany(
        "UPDATE waiting SET attempts = attempts + 1, error = ?, due = ? WHERE owner = ? AND row = ?",
        [(why[:500], to_micros(retry_at), *place) for place in _places(db, rows).values()],
    )


def reset_vectors(db: apsw.Connection) -> int:
    """Drop every vector and queue every row."""
    db.execute("DELETE FROM vectors")
    db.execute("DELETE FROM waiting")
    db.execute("DELETE FROM meta WHERE key IN ('embedder', 'dimensions')")
    db.execute("INSERT INTO waiting (row, owner) SELECT id, owner FROM rows")
    waiting = db.changes()
    db.execute("UPDATE owners SET vectors = vectors + 1, replaced = replaced + 1")
    return waiting


def identity(db: apsw.Connection) -> str:
    """The store's name, given now if it has none."""
    db.execute("INSERT OR IGNORE INTO meta (key, value) VALUES ('store', ?)", (os.urandom(16).hex(),))
    return str(scalar(db, "SELECT value FROM meta WHERE key = 'store'"))


def state(db: apsw.Connection, now: datetime, check: bool) -> StoreState:
    """Counts, the embedder, the queue, and what is wrong."""
    counts = {table: int(scalar(db, f"SELECT count(*) FROM {table}")) for table in _COUNTED}
    meta = dict(fetch(db, "SELECT key, value FROM meta"))
    ((pending, failed),) = fetch(db, "SELECT count(*), count(error) FROM waiting")
    last = one(db, "SELECT error FROM waiting WHERE error IS NOT NULL ORDER BY due DESC LIMIT 1")
    return StoreState(
        counts=counts,
        embedder=meta.get("embedder"),
        dimensions=meta.get("dimensions"),
        pending=pending,
        failed=failed,
        last_failure=None if last is None else last[0],
        problems=tuple(_problems(db, now, counts, meta, check)),
    )


def _problems(
    db: apsw.Connection, now: datetime, counts: dict[str, int], meta: dict[str, object], check: bool
) -> list[str]:
    found = []
    if meta.get("analyzer") != ANALYZER:
        found.append(
            f"the index was made by analyzer {meta.get('analyzer')}, not {ANALYZER}: run `threefold doctor --repair`"
        )
    indexed = indexed_rows(db)
    if indexed != counts["rows"]:
        found.append(f"{counts['rows']} rows but {indexed} in the full-text index: run `threefold doctor --repair`")
    miscounted = (
        scalar(
            db,
            """SELECT count(*) FROM owners WHERE (rows, words) IS NOT
           (SELECT count(*), coalesce(sum(word_count), 0) FROM rows WHERE owner = owners.id)""",
        )
        if check
        else 0
    )
    if miscounted:
        found.append(f"{miscounted} owners miscount their rows: run `threefold doctor --repair`")
    overdue = scalar(db, "SELECT count(*) FROM turns WHERE expires <= ?", (to_micros(now),))
    if overdue:
        found.append(f"{overdue} turns are past their time to live and wait for the next sweep")
    doomed = scalar(db, "SELECT count(*) FROM doomed")
    if doomed:
        found.append(f"{doomed} blobs of removed turns wait for deletion")
    if check:
        # A connection keeps the outline of the full-text index between queries; asked first, it takes the present one.
        one(db, "SELECT 1 FROM occurrences WHERE term = '0:' LIMIT 1")
        found += [f"database: {line}" for (line,) in fetch(db, "PRAGMA integrity_check(20)") if line != "ok"]
    return found

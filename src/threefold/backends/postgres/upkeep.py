"""The operator's side: the queue of rows that wait for vectors, over all owners; counts and problems."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from threefold.backends.postgres.connection import Db, change, fetch, one, planned_anew, run, touched
from threefold.backends.postgres.inserting import Inserts
from threefold.backends.postgres.keys import given, kept, owner_key, vector_text
from threefold.backends.postgres.owners import lock_owners
from threefold.errors import Conflict
from threefold.model.rows import RowKey
from threefold.model.scope import Scope
from threefold.model.times import to_micros
from threefold.ports import PendingRow, StoreState
from threefold.text.terms import ANALYZER

if TYPE_CHECKING:
    import numpy as np

_COUNTED = ("owners", "conversations", "turns", "rows", "files", "feedback", "vocabulary", "vectors")
_PLACE = tuple[UUID, int]


def claim(db: Db, limit: int, now: datetime, lease_seconds: float) -> tuple[PendingRow, ...]:
    """Take the next rows that are due; what another worker is taking at this moment is passed over."""
    with planned_anew(db):
        due = fetch(
            db,
            f"""SELECT owner, row, attempts FROM threefold.waiting WHERE due <= %s
                ORDER BY due, owner, row LIMIT {limit:d} FOR UPDATE SKIP LOCKED""",
            (to_micros(now),),
        )
    until = to_micros(now + timedelta(seconds=lease_seconds))
    # Owner by owner: for a list over all of them the planner reads the whole queue.
    for owner, rows in _by_owner([(owner, row) for owner, row, _ in due]).items():
        mine = (until, owner, rows)
        run(db, "UPDATE threefold.waiting SET due = %s WHERE owner = %s AND row = ANY(%s::integer[])", mine)
    # OFFSET 0, here and below, keeps each look-up one by its whole key: without statistics the planner takes an owner
    # to have one row, and joins by the owner alone.
    claimed = fetch(
        db,
        """SELECT o.tenant, o.name, o.realm, c.name, t.name, r.seq, r.author, r.text, w.attempts, w.row
           FROM unnest(%s::uuid[], %s::integer[], %s::integer[]) AS w (owner, row, attempts)
           CROSS JOIN LATERAL (SELECT * FROM threefold.owners AS o WHERE o.owner = w.owner OFFSET 0) AS o
           CROSS JOIN LATERAL (
               SELECT * FROM threefold.rows AS r WHERE r.owner = w.owner AND r.number = w.row OFFSET 0) AS r
           CROSS JOIN LATERAL (
               SELECT * FROM threefold.turns AS t WHERE t.owner = w.owner AND t.number = r.turn OFFSET 0) AS t
           CROSS JOIN LATERAL (
               SELECT * FROM threefold.conversations AS c WHERE c.owner = w.owner AND c.number = r.conversation OFFSET 0
           ) AS c
           ORDER BY w.owner, w.row""",
        tuple(map(list, zip(*due, strict=True))) if due else ([], [], []),
    )
    return tuple(
        PendingRow(Scope.of(tenant, user, realm), RowKey(conversation, turn, seq), _spoken(author, text), *rest)
        for tenant, user, realm, conversation, turn, seq, author, text, *rest in claimed
    )


def _by_owner(places: Iterable[_PLACE]) -> dict[UUID, list[int]]:
    found: dict[UUID, list[int]] = defaultdict(list)
    for owner, row in places:
        found[owner].append(row)
    return found


def _spoken(author: str | None, text: str) -> str:
    return f"{given(author)}: {given(text)}" if author else given(text)


def _still_waiting(db: Db, rows: Sequence[PendingRow]) -> dict[int, _PLACE]:
    """Index into `rows` → (owner, row), of those that still wait with the text that was claimed.

    Locks the owners, in order of their keys, so that nothing of theirs changes before the transaction ends.
    """
    locked = lock_owners(db, list({owner_key(row.scope) for row in rows}))
    found = fetch(
        db,
        """SELECT a.i, a.owner, r.number, r.author, r.text
           FROM unnest(%s::integer[], %s::uuid[], %s::integer[]) AS a (i, owner, row)
           CROSS JOIN LATERAL (SELECT r.number, r.author, r.text FROM threefold.rows AS r
               WHERE r.owner = a.owner AND r.number = a.row OFFSET 0) AS r
           CROSS JOIN LATERAL (SELECT 1 FROM threefold.waiting AS w
               WHERE w.owner = a.owner AND w.row = r.number OFFSET 0) AS w""",
        (
            list(range(len(rows))),
            [owner_key(row.scope) for row in rows],
            [row.number for row in rows],
        ),
    )
    # An edition gives the number of a row that is gone to another: it is the same row where it has the same text.
    return {
        i: (owner, number)
        for i, owner, number, author, text in found
        if owner in locked and _spoken(author, text) == rows[i].text
    }


def put_vectors(db: Db, model: str, done: Sequence[tuple[PendingRow, np.ndarray]]) -> int:
    """Store vectors in half precision and take their rows from the queue; rows that are gone are left out."""
    if not done:
        return 0
    check_model(db, model, int(done[0][1].shape[0]))
    places = _still_waiting(db, [row for row, _ in done])
    by_owner: dict[UUID, dict[int, str]] = defaultdict(dict)
    for i, (owner, number) in places.items():
        by_owner[owner][number] = vector_text(done[i][1])
    for owner, vectors in by_owner.items():
        inserts = Inserts(owner)
        for number, vector in vectors.items():
            inserts.add("vectors", number, vector)
        inserts.flush(db)
        # Owner by owner: for a list over all of them the planner reads the whole queue.
        with planned_anew(db):
            run(
                db,
                "DELETE FROM threefold.waiting WHERE owner = %s AND row = ANY(%s::integer[])",
                (owner, list(vectors)),
            )
    return sum(map(len, by_owner.values()))


def check_model(db: Db, model: str, dimensions: int) -> None:
    """Hold the store to one model, until the transaction ends; the first one that comes names it.

    Raises:
        Conflict: the store holds vectors of another one.
    """
    asked = {"embedder": model, "dimensions": str(dimensions)}
    run(
        db,
        "INSERT INTO threefold.meta (key, value) VALUES ('embedder', %(embedder)s), ('dimensions', %(dimensions)s) "
        "ON CONFLICT (key) DO NOTHING",
        asked,
    )
    stored = dict(
        fetch(
            db, "SELECT key, value FROM threefold.meta WHERE key IN ('dimensions', 'embedder') ORDER BY key FOR SHARE"
        )
    )
    if stored != asked:
        raise Conflict(
            f"the store holds vectors of {stored['embedder']!r} ({stored['dimensions']} dimensions), not of {model!r} "
            f"({dimensions}); run `threefold reembed` to change the model"
        )


def embedding_failed(db: Db, rows: Sequence[PendingRow], why: str, retry_at: datetime) -> None:
    """Note why, and when to try again."""
    for owner, numbers in _by_owner(_still_waiting(db, rows).values()).items():
        with planned_anew(db):
            run(
                db,
                """UPDATE threefold.waiting SET attempts = attempts + 1, error = %s, due = %s
                   WHERE owner = %s AND row = ANY(%s::integer[])""",
                (kept(why[:500]), to_micros(retry_at), owner, numbers),
            )


def reset_vectors(db: Db) -> int:
    """Drop every vector and queue every row."""
    run(db, "DELETE FROM threefold.meta WHERE key IN ('embedder', 'dimensions')")
    # No writer may add a row that is then neither embedded nor queued.
    run(db, "SELECT 1 FROM threefold.owners ORDER BY owner FOR UPDATE")
    run(db, "DELETE FROM threefold.vectors")
    run(db, "DELETE FROM threefold.waiting")
    # An owner that is new since queues its rows itself.
    queue = "INSERT INTO threefold.waiting (owner, row) SELECT owner, number FROM threefold.rows ON CONFLICT DO NOTHING"
    return touched(change(db, queue))


def identity(db: Db) -> str:
    """The store's name, given now if it has none."""
    run(db, "INSERT INTO threefold.meta (key, value) VALUES ('store', %s) ON CONFLICT DO NOTHING", (uuid4().hex,))
    return str(fetch(db, "SELECT value FROM threefold.meta WHERE key = 'store'")[0][0])


def state(db: Db, now: datetime, check: bool) -> StoreState:
    """Counts, the embedder, the queue, and what is wrong."""
    counts = {table: int(fetch(db, f"SELECT count(*) FROM threefold.{table}")[0][0]) for table in _COUNTED}
    meta = dict(fetch(db, "SELECT key, value FROM threefold.meta"))
    ((pending, failed),) = fetch(db, "SELECT count(*), count(error) FROM threefold.waiting")
    last = one(db, "SELECT error FROM threefold.waiting WHERE error IS NOT NULL ORDER BY due DESC LIMIT 1")
    return StoreState(
        counts=counts,
        embedder=meta.get("embedder"),
        dimensions=int(meta["dimensions"]) if "dimensions" in meta else None,
        pending=pending,
        failed=failed,
        last_failure=None if last is None else given(last[0]),
        problems=tuple(_problems(db, now, counts, meta) + (_inconsistent(db) if check else [])),
    )


def _problems(db: Db, now: datetime, counts: dict[str, int], meta: dict[str, str]) -> list[str]:
    found = []
    if meta.get("analyzer") != ANALYZER:
        found.append(
            f"the index was made by analyzer {meta.get('analyzer')}, not {ANALYZER}: run `threefold doctor --repair`"
        )
    ((indexed,),) = fetch(db, "SELECT count(*) FROM threefold.words")
    if indexed != counts["rows"]:
        found.append(f"{counts['rows']} rows but {indexed} in the full-text index: run `threefold doctor --repair`")
    ((overdue,),) = fetch(db, "SELECT count(*) FROM threefold.turns WHERE expires <= %s", (to_micros(now),))
    if overdue:
        found.append(f"{overdue} turns are past their time to live and wait for the next sweep")
    ((doomed,),) = fetch(db, "SELECT count(*) FROM threefold.doomed")
    if doomed:
        found.append(f"{doomed} blobs of removed turns wait for deletion")
    ((exempt,),) = fetch(db, "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user")
    if exempt:
        found.append("the database role is not bound by row-level security: log in as an ordinary one")
    return found


def _inconsistent(db: Db) -> list[str]:
    """What does not fit together, asked of the database itself."""
    questions = {
        "turns without their conversation": """threefold.turns AS t WHERE NOT EXISTS (
            SELECT 1 FROM threefold.conversations AS c WHERE c.owner = t.owner AND c.number = t.conversation)""",
        "rows without their turn": """threefold.rows AS r WHERE NOT EXISTS (
            SELECT 1 FROM threefold.turns AS t WHERE t.owner = r.owner AND t.number = r.turn)""",
        "index entries without their row": """threefold.words AS w WHERE NOT EXISTS (
            SELECT 1 FROM threefold.rows AS r WHERE r.owner = w.owner AND r.number = w.row)""",
        "vectors without their row": """threefold.vectors AS v WHERE NOT EXISTS (
            SELECT 1 FROM threefold.rows AS r WHERE r.owner = v.owner AND r.number = v.row)""",
        "rows neither embedded nor waiting": """threefold.rows AS r WHERE NOT EXISTS (
            SELECT 1 FROM threefold.vectors AS v WHERE v.owner = r.owner AND v.row = r.number) AND NOT EXISTS (
            SELECT 1 FROM threefold.waiting AS w WHERE w.owner = r.owner AND w.row = r.number)""",
        "rows that wait but are not there": """threefold.waiting AS w WHERE NOT EXISTS (
            SELECT 1 FROM threefold.rows AS r WHERE r.owner = w.owner AND r.number = w.row)""",
        "conversations that miscount their turns": """threefold.conversations AS c WHERE c.turns <> (
            SELECT count(*) FROM threefold.turns AS t WHERE t.owner = c.owner AND t.conversation = c.number)""",
        "owners that miscount their rows": """threefold.owners AS o WHERE (o.rows, o.words) <> (
            SELECT count(*), coalesce(sum(w.length), 0) FROM threefold.words AS w WHERE w.owner = o.owner)""",
    }
    found = []
    for what, source in questions.items():
        ((count,),) = fetch(db, f"SELECT count(*) FROM {source}")
        if count:
            found.append(f"{count} {what}: run `threefold doctor --repair`, or restore a backup")
    return found

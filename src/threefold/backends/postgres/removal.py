"""Removing: rows with everything derived from them, purges with their receipts, what is past its time to live."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from uuid import UUID

from threefold.backends.postgres.connection import Db, change, fetch, one, planned_anew, run, touched
from threefold.backends.postgres.indexing import forget_words
from threefold.backends.postgres.keys import given, kept
from threefold.backends.postgres.owners import Owner, lock_owner, make_owner
from threefold.errors import Forbidden
from threefold.model.retention import Gone, Target, tombstone
from threefold.model.scope import Scope
from threefold.model.titles import one_line
from threefold.ports import Blobs

_CHUNK = 500
_OWNED = (
    "words", "vocabulary", "vectors", "waiting", "rows", "feedback", "labels", "turns", "conversations", "tombstones",
)  # fmt: skip


def remove_turns(db: Db, owner: Owner, turns: Sequence[int]) -> Counter[str]:
    """Remove turns of a locked owner from every table; returns how many entries went from each store.

    Conversations keep standing, with their count lowered; blobs that nothing refers to any more are marked as doomed.
    The owner's counters are changed, not saved.
    """
    gone: Counter[str] = Counter()
    for start in range(0, len(turns), _CHUNK):
        gone += _remove_chunk(db, owner, list(turns[start : start + _CHUNK]))
    return gone


def clear_turn(db: Db, owner: Owner, turn: int, lost: Sequence[int]) -> None:
    """Remove a turn as far as another edition is put in anew, under the same numbers.

    Feedback stays, and so do words, vectors and places in the queue of all rows but those `lost`.
    """
    _remove_chunk(db, owner, [turn], lost)


def _remove_chunk(db: Db, owner: Owner, turns: list[int], lost: Sequence[int] | None = None) -> Counter[str]:
    mine: dict[str, object] = {"owner": owner.key, "turns": turns}
    numbers = "SELECT number FROM threefold.rows WHERE owner = %(owner)s AND turn = ANY(%(turns)s::integer[])"
    mine["lost"] = [number for (number,) in fetch(db, numbers, mine)] if lost is None else list(lost)
    indexed = run(
        db,
        """WITH gone AS (DELETE FROM threefold.words WHERE owner = %(owner)s AND row = ANY(%(lost)s::integer[])
               RETURNING length, terms)
           SELECT count(*), coalesce(sum(length), 0),
                  ARRAY(SELECT DISTINCT unnest(terms) FROM gone) FROM gone""",
        mine,
    )
    with planned_anew(db):
        derived = {
            store: change(
                db,
                f"DELETE FROM threefold.{table} WHERE owner = %(owner)s AND row = ANY(%(lost)s::integer[])",
                mine,
            )
            for table, store in (("vectors", "vectors"), ("waiting", "queue"))
        }
    held = {
        table: change(
            db,
            f"DELETE FROM threefold.{table} WHERE owner = %(owner)s AND turn = ANY(%(turns)s::integer[])",
            mine,
        )
        for table in ("rows", "labels", *(("feedback",) if lost is None else ()))
    }
    files = run(
        db,
        """DELETE FROM threefold.files WHERE owner = %(owner)s AND turn = ANY(%(turns)s::integer[])
           RETURNING digest""",
        mine,
    )
    removed = run(
        db,
        """WITH gone AS (DELETE FROM threefold.turns WHERE owner = %(owner)s AND number = ANY(%(turns)s::integer[])
               RETURNING conversation),
           fewer AS (UPDATE threefold.conversations AS c SET turns = c.turns - g.n
               FROM (SELECT conversation, count(*) AS n FROM gone GROUP BY conversation) AS g
               WHERE c.owner = %(owner)s AND c.number = g.conversation)
           SELECT count(*) FROM gone""",
        mine,
    )
    (indexed_rows, words, keys), (turn_count,) = indexed.fetchall()[0], removed.fetchall()[0]
    digests = files.fetchall()
    gone = Counter({"full text": indexed_rows, "turns": turn_count, "files": len(digests)})
    gone.update({name: touched(cursor) for name, cursor in (derived | held).items()})
    owner.rows -= gone["rows"]
    owner.words -= words
    if digests:
        _doom(db, owner, sorted({digest for (digest,) in digests}))
    gone["vocabulary"] = forget_words(db, owner.key, keys)
    return gone


def _doom(db: Db, owner: Owner, digests: list[str]) -> None:
    """Mark blobs for deletion that no turn of the owner refers to any more."""
    run(
        db,
        """INSERT INTO threefold.doomed (owner, digest, tenant, name, realm)
           SELECT %(owner)s, d.digest, %(tenant)s, %(name)s, %(realm)s FROM unnest(%(digests)s::text[]) AS d (digest)
           WHERE NOT EXISTS (SELECT 1 FROM threefold.files AS f WHERE f.owner = %(owner)s AND f.digest = d.digest)
           ON CONFLICT DO NOTHING""",
        {
            "owner": owner.key,
            "digests": digests,
            "tenant": owner.scope.tenant,
            "name": owner.scope.user,
            "realm": owner.scope.realm,
        },
    )


def purge(db: Db, scope: Scope, target: Target, blobs: Blobs) -> Counter[str]:
    """Remove what the target names of one owner; leaves tombstones of turns, none of a whole user."""
    owner = lock_owner(db, scope)
    if target.conversation is not None or scope.app is not None:
        return Counter() if owner is None else _purge_conversations(db, owner, scope, target)
    if owner is not None:
        return _purge_owner(db, scope, owner, blobs)
    # Its first commit may be on its way: the key is taken, so that the commit waits and then finds its bytes gone.
    made = make_owner(db, scope)
    gone = _purge_owner(db, scope, made, blobs)
    gone["owners"] = 0
    return gone


def _purge_owner(db: Db, scope: Scope, owner: Owner, blobs: Blobs) -> Counter[str]:
    gone: Counter[str] = Counter()
    digests = fetch(db, "DELETE FROM threefold.files WHERE owner = %s RETURNING digest", (owner.key,))
    _doom(db, owner, sorted({digest for (digest,) in digests}))
    for table in _OWNED:
        with planned_anew(db):
            emptied = change(db, f"DELETE FROM threefold.{table} WHERE owner = %s", (owner.key,))
        gone[_STORES.get(table, table)] = touched(emptied)
    gone["files"] = len(digests)
    # Also what a killed writer left before its commit.
    doomed = {digest for (digest,) in fetch(db, "SELECT digest FROM threefold.doomed WHERE owner = %s", (owner.key,))}
    gone["blobs"] += blobs.sweep(scope, doomed)
    gone["owners"] = touched(change(db, "DELETE FROM threefold.owners WHERE owner = %s", (owner.key,)))
    return gone


_STORES = {"words": "full text", "waiting": "queue"}


def _purge_conversations(db: Db, owner: Owner, scope: Scope, target: Target) -> Counter[str]:
    condition, value = (
        ("c.name = %(value)s", target.conversation)
        if target.conversation is not None
        else ("c.app = %(value)s", scope.app)
    )
    found = fetch(
        db,
        f"""SELECT c.number, c.name, c.app, t.number, t.name FROM threefold.conversations AS c
            LEFT JOIN threefold.turns AS t ON t.owner = %(owner)s AND t.conversation = c.number
                AND (%(turn)s::text IS NULL OR t.name = %(turn)s)
            WHERE c.owner = %(owner)s AND {condition}""",
        {"owner": owner.key, "value": value, "turn": target.turn},
    )
    if scope.app is not None:
        foreign = next((name for _, name, app, *_ in found if app != scope.app), None)
        if foreign is not None:
            raise Forbidden(f"conversation {foreign!r} belongs to another app")
    found = [entry for entry in found if entry[3] is not None]
    if not found:
        return Counter()
    gone = remove_turns(db, owner, [turn for _, _, _, turn, _ in found])
    bury(db, owner.key, [tombstone(name, turn) for _, name, _, _, turn in found], "purged")
    gone["conversations"] += settle_conversations(db, owner.key, sorted({c for c, *_ in found}))
    owner.save(db)
    return gone


def bury(db: Db, owner: UUID, hashes: Iterable[bytes], why: Gone) -> None:
    """Remember by hash that something was removed, and why."""
    run(
        db,
        """INSERT INTO threefold.tombstones (owner, hash, why) SELECT %s, h, %s FROM unnest(%s::bytea[]) AS u (h)
           ON CONFLICT (owner, hash) DO UPDATE SET why = excluded.why""",
        (owner, why, sorted(set(hashes))),
    )


def settle_conversations(db: Db, owner: UUID, conversations: Sequence[int]) -> int:
    """After turns went: drop empty conversations, set times and title of the others anew; returns how many went."""
    mine = {"owner": owner, "numbers": list(conversations)}
    gone = change(
        db,
        """DELETE FROM threefold.conversations WHERE owner = %(owner)s AND number = ANY(%(numbers)s::integer[])
           AND turns = 0""",
        mine,
    )
    # The title as if only the turns that are left had been recorded: the last given, else what was said first.
    left = fetch(
        db,
        """SELECT c.number,
               coalesce(
                   (SELECT t.title FROM threefold.turns AS t WHERE t.owner = %(owner)s AND t.conversation = c.number
                    AND t.title IS NOT NULL ORDER BY t.number DESC LIMIT 1),
                   (SELECT r.text FROM threefold.turns AS t LEFT JOIN threefold.rows AS r
                    ON r.owner = %(owner)s AND r.turn = t.number AND r.seq = 0
                    WHERE t.owner = %(owner)s AND t.conversation = c.number ORDER BY t.number LIMIT 1)), c.name
           FROM threefold.conversations AS c
           WHERE c.owner = %(owner)s AND c.number = ANY(%(numbers)s::integer[])""",
        mine,
    )
    for number, said, name in left:
        run(
            db,
            """UPDATE threefold.conversations AS c SET title = %(title)s, started = s.started,
                   last_activity = s.ended
               FROM (SELECT min(started) AS started, max(ended) AS ended FROM threefold.turns
                     WHERE owner = %(owner)s AND conversation = %(number)s) AS s
               WHERE c.owner = %(owner)s AND c.number = %(number)s""",
            {"owner": owner, "number": number, "title": kept(one_line(name if said is None else given(said)))},
        )
    return touched(gone)


def expire(db: Db, owner: Owner, now: int, limit: int) -> int:
    """Remove turns of a locked owner whose time to live is over, leaving tombstones that say so."""
    over = fetch(
        db,
        """SELECT t.number, t.conversation, c.name, t.name FROM threefold.turns AS t
           JOIN threefold.conversations AS c ON c.owner = %(owner)s AND c.number = t.conversation
           WHERE t.owner = %(owner)s AND t.expires <= %(now)s ORDER BY t.expires LIMIT %(limit)s""",
        {"owner": owner.key, "now": now, "limit": limit},
    )
    if over:
        remove_turns(db, owner, [row[0] for row in over])
        bury(db, owner.key, [tombstone(row[2], row[3]) for row in over], "expired")
        settle_conversations(db, owner.key, sorted({row[1] for row in over}))
    first = one(db, "SELECT min(expires) FROM threefold.turns WHERE owner = %s", (owner.key,))
    owner.expires = first[0] if first else None
    owner.save(db)
    return len(over)

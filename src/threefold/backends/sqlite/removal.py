"""Removing: rows with everything derived from them, and purges with their receipts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

import apsw

from threefold.backends.sqlite import scrubbing
from threefold.backends.sqlite.connection import fetch, one, scalar
from threefold.backends.sqlite.indexing import forget_words, renew_index, unindex_rows
from threefold.backends.sqlite.keys import WHOSE, find_owner, marks
from threefold.errors import Forbidden
from threefold.model.retention import Gone, Target, tombstone
from threefold.model.scope import Scope
from threefold.model.titles import one_line
from threefold.ports import Blobs

T = TypeVar("T")
_CHUNK = 500
# Later than anything was written.
_WHENEVER = datetime.max.replace(tzinfo=UTC)


def remove_turns(db: apsw.Connection, owner: int, turns: Sequence[int], whole_owner: bool = False) -> Counter[str]:
    """Remove turns of one owner from every table; returns how many entries went from each store.

    Conversations keep standing, with their count lowered; blobs that nothing refers to any more are marked as doomed.
    """
    renew_index(db)
    gone: Counter[str] = Counter()
    terms: set[str] = set()
    words = 0
    for chunk in _chunks(turns):
        held = f"WHERE +owner = ? AND turn IN ({marks(len(chunk))})"
        words += scalar(db, f"SELECT coalesce(sum(word_count), 0) FROM rows {held}", (owner, *chunk))
        rows = fetch(db, f"SELECT id, author, text FROM rows {held}", (owner, *chunk))
        gone += unindex_rows(db, owner, rows, terms)
        gone += doom_files(db, owner, chunk)
        for table in ("rows", "feedback", "labels"):
            db.execute(f"DELETE FROM {table} {held}", (owner, *chunk))
            gone[table] += db.changes()
        fewer = fetch(
            db,
            f"SELECT count(*), conversation FROM turns WHERE +owner = ? AND id IN ({marks(len(chunk))}) GROUP BY 2",
            (owner, *chunk),
        )
        db.executemany("UPDATE conversations SET turns = turns - ? WHERE id = ?", fewer)
        db.execute(f"DELETE FROM turns WHERE +owner = ? AND id IN ({marks(len(chunk))})", (owner, *chunk))
        gone["turns"] += db.changes()
    if whole_owner:
        db.execute("DELETE FROM vocabulary WHERE owner = ?", (owner,))
        gone["vocabulary"] += db.changes()
    else:
        gone["vocabulary"] += forget_words(db, owner, terms)
    db.execute(
        """UPDATE owners SET vectors = vectors + 1, replaced = replaced + 1, rewritten = rewritten + 1, rows = rows - ?,
                  words = words - ? WHERE id = ?""",
        (gone["rows"], words, owner),
    )
    scrubbing.note(db)
    return gone


def _chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), _CHUNK):
        yield items[start : start + _CHUNK]


def doom_files(db: apsw.Connection, owner: int, turns: Sequence[int]) -> Counter[str]:
    """Take their files from turns, and mark blobs that nothing refers to any more as doomed."""
    held = f"turn IN ({marks(len(turns))})"
    digests = fetch(db, f"SELECT DISTINCT digest FROM files WHERE owner = ? AND {held}", (owner, *turns))
    db.execute(f"DELETE FROM files WHERE owner = ? AND {held}", (owner, *turns))
    files = db.changes()
    for (digest,) in digests:
        db.execute(
            """INSERT OR IGNORE INTO doomed (tenant, user, realm, digest)
               SELECT tenant, user, realm, ?1 FROM owners
               WHERE id = ?2 AND NOT EXISTS (SELECT 1 FROM files WHERE owner = ?2 AND digest = ?1)""",
            (digest, owner),
        )
    return Counter({"files": files})


def purge(db: apsw.Connection, scope: Scope, target: Target, blobs: Blobs) -> Counter[str]:
    """Remove what the target names; leaves tombstones of turns and conversations, none of users and tenants."""
    if target.tenant:
        keys = fetch(db, "SELECT tenant, user, realm FROM owners WHERE tenant = ?", (scope.tenant,))
        return sum((_purge_owner(db, Scope.of(*key), blobs) for key in keys), Counter())
    if target.conversation is None and scope.app is None:
        realms = fetch(db, "SELECT realm FROM owners WHERE tenant = ? AND user = ?", (scope.tenant, scope.user))
        owners = [replace(scope, realm=realm) for realm in {scope.realm, *(realm for (realm,) in realms)}]
        return sum((_purge_owner(db, owner, blobs) for owner in owners), Counter())
    owner = find_owner(db, scope)
    return Counter() if owner is None else _purge_conversations(db, owner, scope, target)


def _purge_owner(db: apsw.Connection, scope: Scope, blobs: Blobs) -> Counter[str]:
    gone: Counter[str] = Counter()
    owner = find_owner(db, scope)
    if owner is not None:
        turns = [n for (n,) in fetch(db, "SELECT id FROM turns WHERE owner = ?", (owner,))]
        gone += remove_turns(db, owner, turns, whole_owner=True)
        for table in ("conversations", "tombstones"):
            db.execute(f"DELETE FROM {table} WHERE owner = ?", (owner,))
            gone[table] += db.changes()
        db.execute("DELETE FROM owners WHERE id = ?", (owner,))
        gone["owners"] += db.changes()
    # Also what a killed writer left before its commit.
    doomed = {digest for (digest,) in fetch(db, f"SELECT digest FROM doomed WHERE {WHOSE}", scope.key)}
    gone["blobs"] += blobs.sweep(scope, doomed)
    return gone


def _purge_conversations(db: apsw.Connection, owner: int, scope: Scope, target: Target) -> Counter[str]:
    gone: Counter[str] = Counter()
    condition, values = (
        ("name = ?", [target.conversation]) if target.conversation is not None else ("app = ?", [scope.app])
    )
    found = fetch(db, f"SELECT id, name, app FROM conversations WHERE owner = ? AND {condition}", (owner, *values))
    for number, name, app in found:
        if scope.app is not None and app != scope.app:
            raise Forbidden(f"conversation {name!r} belongs to another app")
        where, more = ("", ()) if target.turn is None else (" AND name = ?", (target.turn,))
        turns = fetch(
            db, f"SELECT id, name FROM turns WHERE +owner = ? AND conversation = ?{where}", (owner, number, *more)
        )
        if not turns:
            continue
        gone += remove_turns(db, owner, [turn for turn, _ in turns])
        bury(db, owner, [tombstone(name, turn) for _, turn in turns], "purged")
        gone += settle_conversation(db, owner, number)
    return gone


def bury(db: apsw.Connection, owner: int, hashes: Iterable[bytes], why: Gone) -> None:
    """Remember by hash that something was removed, and why."""
    db.executemany(
        "INSERT OR REPLACE INTO tombstones (owner, hash, why) VALUES (?, ?, ?)", [(owner, h, why) for h in hashes]
    )


def settle_conversation(db: apsw.Connection, owner: int, conversation: int) -> Counter[str]:
    """After turns went: drop the conversation if it is empty, else set its times and title anew."""
    db.execute("DELETE FROM conversations WHERE owner = ? AND id = ? AND turns = 0", (owner, conversation))
    if db.changes():
        return Counter({"conversations": 1})
    db.execute(
        """UPDATE conversations SET
               started = (SELECT min(started) FROM turns WHERE conversation = ?1),
               last_activity = (SELECT max(ended) FROM turns WHERE conversation = ?1)
           WHERE owner = ?2 AND id = ?1""",
        (conversation, owner),
    )
    title = _title(db, owner, conversation)
    db.execute("UPDATE conversations SET title = ? WHERE owner = ? AND id = ?", (title, owner, conversation))
    return Counter()


def _title(db: apsw.Connection, owner: int, conversation: int) -> str:
    """The title as if only the turns that are left had been recorded: the last given, else what was said first."""
    mine = "WHERE +t.owner = ? AND t.conversation = ?"
    found = one(
        db,
        f"SELECT t.title FROM turns AS t {mine} AND t.title IS NOT NULL ORDER BY t.id DESC LIMIT 1",
        (owner, conversation),
    ) or one(
        db,
        f"""SELECT coalesce(r.text, c.name) FROM turns AS t JOIN conversations AS c ON c.id = t.conversation
            LEFT JOIN rows AS r ON r.turn = t.id AND r.seq = 0 {mine} ORDER BY t.id LIMIT 1""",
        (owner, conversation),
    )
    return one_line(found[0]) if found else ""


def expired_turns(db: apsw.Connection, now: int, limit: int) -> list[tuple[int, int, int, str, str]]:
    """(owner, turn, conversation, conversation name, turn name) of turns whose time is over."""
    return fetch(
        db,
        """SELECT t.owner, t.id, t.conversation, c.name, t.name FROM turns AS t
           JOIN conversations AS c ON c.id = t.conversation AND c.owner = t.owner
           WHERE t.expires <= ? ORDER BY t.expires LIMIT ?""",
        (now, limit),
    )


def expire(db: apsw.Connection, now: int, limit: int) -> int:
    """Remove turns whose time to live is over, leaving tombstones that say so."""
    over = expired_turns(db, now, limit)
    for owner in {row[0] for row in over}:
        mine = [row for row in over if row[0] == owner]
        remove_turns(db, owner, [row[1] for row in mine])
        bury(db, owner, [tombstone(row[3], row[4]) for row in mine], "expired")
        for conversation in {row[2] for row in mine}:
            settle_conversation(db, owner, conversation)
    return len(over)


Doomed = tuple[str, str, str, str]


def doomed_blobs(db: apsw.Connection) -> set[Doomed]:
    """(tenant, user, realm, digest) of blobs whose last reference was removed."""
    return set(fetch(db, "SELECT tenant, user, realm, digest FROM doomed"))


def delete_doomed_blobs(db: apsw.Connection, blobs: Blobs, committed: set[Doomed]) -> int:
    """Delete the files of blobs that nothing refers to; under the write lock, so no commit can want them meanwhile.

    Only those in `committed`, read before: what a neighbour in the same group of writes put on the list may be undone.
    """
    doomed: dict[Scope, list[str]] = {}
    for *key, digest in sorted(committed & doomed_blobs(db)):
        doomed.setdefault(Scope.of(*key), []).append(digest)
    deleted = sum(blobs.discard(blobs.key(scope), digests, _WHENEVER) for scope, digests in doomed.items())
    db.executemany(f"DELETE FROM doomed WHERE {WHOSE} AND digest = ?", committed)
    return deleted


def unreferenced(db: apsw.Connection, scope: Scope, digests: Collection[str]) -> set[str]:
    """Those of `digests` that no turn of the owner refers to, and that no purge has on its list of what to delete."""
    loose, owner = set(digests), find_owner(db, scope)
    for chunk in _chunks(list(digests)):
        those = f"digest IN ({marks(len(chunk))})"
        loose -= {d for (d,) in fetch(db, f"SELECT digest FROM files WHERE owner = ? AND {those}", (owner, *chunk))}
        listed = fetch(db, f"SELECT digest FROM doomed WHERE {WHOSE} AND {those}", (*scope.key, *chunk))
        loose -= {digest for (digest,) in listed}
    return loose


def collect(db: apsw.Connection, scope: Scope, digests: Collection[str], before: datetime, blobs: Blobs) -> int:
    """Delete old blobs that nothing refers to; under the write lock, so no commit can want them meanwhile."""
    return blobs.discard(blobs.key(scope), unreferenced(db, scope, digests), before)


def collect_strays(db: apsw.Connection, found: Mapping[str, Collection[str]], before: datetime, blobs: Blobs) -> int:
    """As `collect`, for keys that are no owner's, nor that of a purge's list."""
    owners = fetch(db, "SELECT tenant, user, realm FROM owners UNION SELECT tenant, user, realm FROM doomed")
    known = {blobs.key(Scope.of(*key)) for key in owners}
    return sum(blobs.discard(key, found[key], before) for key in found.keys() - known)

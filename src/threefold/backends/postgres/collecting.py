"""Deleting blobs: those whose last turn was removed, and those that no turn ever came to refer to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

from threefold.backends.postgres.connection import Db, fetch, run
from threefold.backends.postgres.owners import lock_owner
from threefold.model.scope import Scope
from threefold.ports import Blobs

# Later than anything was written.
_WHENEVER = datetime.max.replace(tzinfo=UTC)
# Blobs that are deleted in one transaction.
_BATCH = 200


def delete_doomed(db: Db, blobs: Blobs, owners: Sequence[UUID] | None = None) -> int:
    """Delete blobs whose last turn was removed, of these owners or of all; returns how many entries were done.

    Their entries are locked meanwhile: a commit that wants one waits, and then sees that its bytes are gone.
    """
    doomed = fetch(
        db,
        f"""SELECT owner, digest, tenant, name, realm FROM threefold.doomed
            WHERE %(owners)s::uuid[] IS NULL OR owner = ANY(%(owners)s) ORDER BY owner, digest
            LIMIT {_BATCH:d} FOR UPDATE SKIP LOCKED""",
        {"owners": None if owners is None else list(owners)},
    )
    by_owner: dict[Scope, list[str]] = defaultdict(list)
    for _, digest, *key in doomed:
        by_owner[Scope.of(*key)].append(digest)
    for scope, digests in by_owner.items():
        blobs.discard(blobs.key(scope), digests, _WHENEVER)
    if doomed:
        run(
            db,
            """DELETE FROM threefold.doomed AS d USING unnest(%s::uuid[], %s::text[]) AS u (owner, digest)
               WHERE d.owner = u.owner AND d.digest = u.digest""",
            ([owner for owner, *_ in doomed], [digest for _, digest, *_ in doomed]),
        )
    return len(doomed)


def collect(db: Db, scope: Scope, digests: Collection[str], before: datetime, blobs: Blobs) -> int:
    """Delete old blobs of an owner that nothing refers to; with the owner locked, so no commit can want them."""
    owner = lock_owner(db, scope)
    if owner is None:
        return 0
    held = fetch(
        db,
        """SELECT digest FROM threefold.files WHERE owner = %(owner)s AND digest = ANY(%(digests)s)
           UNION SELECT digest FROM threefold.doomed WHERE owner = %(owner)s AND digest = ANY(%(digests)s)""",
        {"owner": owner.key, "digests": sorted(digests)},
    )
    return blobs.discard(blobs.key(scope), set(digests) - {digest for (digest,) in held}, before)


def collect_strays(db: Db, found: Mapping[str, Collection[str]], before: datetime, blobs: Blobs) -> int:
    """As `collect`, for keys that are no owner's, nor that of a purge's list.

    A key is taken while this lasts: the first commit of its owner waits, and then sees that its bytes are gone.
    """
    taken = fetch(
        db,
        """INSERT INTO threefold.owners (owner, tenant, name)
           SELECT u.owner, '', '' FROM unnest(%s::uuid[]) AS u (owner)
           WHERE NOT EXISTS (SELECT 1 FROM threefold.doomed AS d WHERE d.owner = u.owner) ORDER BY u.owner
           ON CONFLICT DO NOTHING RETURNING owner""",
        ([UUID(hex=key) for key in found],),
    )
    gone = sum(blobs.discard(owner.hex, found[owner.hex], before) for (owner,) in taken)
    run(db, "DELETE FROM threefold.owners WHERE owner = ANY(%s)", ([owner for (owner,) in taken],))
    return gone

"""Removing what killed writers left: blobs that were put for a turn whose commit never came.

A writer puts its bytes, which makes them young, and then commits, which looks for them once more. Only what is older
than a day by default is removed, and only while no commit can come between. So nothing in flight is lost, and where
clocks are wrong, a commit finds its bytes gone and puts them again.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import groupby, islice, takewhile

from threefold.errors import InvalidInput
from threefold.ports import Blobs, Upkeep

GRACE = timedelta(days=1)
# Blobs that are removed while writers wait.
_CHUNK = 200


def collect_blobs(
    upkeep: Upkeep,
    blobs: Blobs,
    now: datetime,
    grace: timedelta = GRACE,
    stopping: Callable[[], bool] = lambda: False,
) -> int:
    """Remove blobs that no turn refers to and that are older than `grace`; returns how many went.

    Ends early where `stopping` says so; the next call finds the rest.

    Raises:
        InvalidInput: `grace` is negative. Unavailable: the store or the place of blobs cannot be reached; call again.
    """
    before = _before(now, grace)
    scopes = {blobs.key(scope): scope for scope in upkeep.scopes()}
    strays, gone = dict[str, list[str]](), 0
    old = takewhile(lambda _: not stopping(), blobs.stale(before))
    for owner, found in groupby(old, key=lambda blob: blob[0]):
        names = (name for _, name in found)
        while chunk := list(islice(names, _CHUNK)):
            if owner in scopes:
                gone += upkeep.collect(scopes[owner], chunk, before)
                continue
            strays[owner] = chunk
            if sum(map(len, strays.values())) >= _CHUNK:
                gone += upkeep.collect_strays(strays, before)
                strays = {}
    return gone + (upkeep.collect_strays(strays, before) if strays else 0)


def count_unreferenced(upkeep: Upkeep, blobs: Blobs, now: datetime, grace: timedelta = GRACE) -> int:
    """How many blobs `collect_blobs` would remove."""
    held = {(blobs.key(scope), digest) for scope, digest in upkeep.blob_refs()}
    return sum(blob not in held for blob in blobs.stale(_before(now, grace)))


def _before(now: datetime, grace: timedelta) -> datetime:
    if not isinstance(grace, timedelta) or not timedelta(0) <= grace <= timedelta(36500):
        raise InvalidInput(f"grace {grace!r} must be a timedelta from nothing to a hundred years")
    return now - grace

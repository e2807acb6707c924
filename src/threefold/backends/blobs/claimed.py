"""A place of bytes that was named when the store was opened: held to the one store that first wrote there.

What no turn of a store refers to is collected after a day. Two stores at one place would take each other's bytes for
such leftovers, so the second one is refused before it writes or removes anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Protocol

from threefold.errors import Conflict
from threefold.model.scope import Scope
from threefold.ports import Blobs

# The name of the mark, beside the owners' folders.
MARK = "store"


class Place(Blobs, Protocol):
    """A kind of place that a store can mark as its own."""

    def mark(self, identity: str) -> str:
        """Leave the identity as the place's mark if there is none; returns the mark that is there."""
        ...


class ClaimedBlobs:
    """`Blobs` at a place whose mark is looked at before the first change."""

    def __init__(self, blobs: Place) -> None:
        self._blobs, self._ours = blobs, False
        self._identity = ""

    def hold_to(self, identity: str) -> None:
        """Say which store opened the place; the mark is looked at with the first change."""
        self._identity = identity

    def _claim(self) -> Place:
        if not self._ours:
            if self._blobs.mark(self._identity) != self._identity:
                raise Conflict(f"blobs {self.place} belong to another store; give this one a place of its own")
            self._ours = True
        return self._blobs

    @property
    def place(self) -> str:
        """See `Blobs.place`."""
        return self._blobs.place

    def key(self, scope: Scope) -> str:
        """See `Blobs.key`."""
        return self._blobs.key(scope)

    def put(self, scope: Scope, data: bytes) -> str:
        """See `Blobs.put`.

        Raises:
            Conflict: the place belongs to another store; so do all that change it.
        """
        return self._claim().put(scope, data)

    def get(self, scope: Scope, digest: str) -> bytes:
        """See `Blobs.get`."""
        return self._blobs.get(scope, digest)

    def has(self, scope: Scope, digest: str) -> bool:
        """See `Blobs.has`."""
        return self._blobs.has(scope, digest)

    def link(self, scope: Scope, digest: str, seconds: int) -> str | None:
        """See `Blobs.link`."""
        return self._blobs.link(scope, digest, seconds)

    def delete(self, scope: Scope, digest: str) -> bool:
        """See `Blobs.delete`."""
        return self._claim().delete(scope, digest)

    def sweep(self, scope: Scope, keep: Collection[str]) -> int:
        """See `Blobs.sweep`."""
        return self._claim().sweep(scope, keep)

    def digests(self, scope: Scope) -> Iterator[tuple[str, datetime]]:
        """See `Blobs.digests`."""
        return self._blobs.digests(scope)

    def stale(self, before: datetime) -> Iterator[tuple[str, str]]:
        """See `Blobs.stale`."""
        return self._blobs.stale(before)

    def discard(self, owner: str, names: Collection[str], before: datetime) -> int:
        """See `Blobs.discard`."""
        return self._claim().discard(owner, names, before)

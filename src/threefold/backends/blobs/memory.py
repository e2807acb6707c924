"""Blobs in memory: the plainest statement of the behaviour."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from datetime import datetime

from threefold.backends.blobs.keys import owner_key
from threefold.errors import IntegrityError, NotFound
from threefold.model.scope import Scope
from threefold.model.times import now


class MemoryBlobs:
    """`Blobs` in a dictionary; gone with the process."""

    place = "memory"

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], tuple[bytes, datetime]] = {}

    def key(self, scope: Scope) -> str:
        """See `Blobs.key`."""
        return owner_key(scope)

    def put(self, scope: Scope, data: bytes) -> str:
        """See `Blobs.put`."""
        digest = hashlib.sha256(data).hexdigest()
        self._kept[owner_key(scope), digest] = bytes(data), now()
        return digest

    def get(self, scope: Scope, digest: str) -> bytes:
        """See `Blobs.get`."""
        try:
            data, _ = self._kept[owner_key(scope), digest]
        except KeyError:
            raise NotFound(f"no bytes with SHA-256 {digest}") from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise IntegrityError(f"the bytes kept as {digest} are not those that were put")
        return data

    def has(self, scope: Scope, digest: str) -> bool:
        """See `Blobs.has`."""
        return (owner_key(scope), digest) in self._kept

    def link(self, scope: Scope, digest: str, seconds: int) -> str | None:  # noqa: ARG002 - nothing to link to
        """See `Blobs.link`."""
        return None

    def delete(self, scope: Scope, digest: str) -> bool:
        """See `Blobs.delete`."""
        return self._kept.pop((owner_key(scope), digest), None) is not None

    def sweep(self, scope: Scope, keep: Collection[str]) -> int:
        """See `Blobs.sweep`."""
        return sum(self.delete(scope, digest) for digest, _ in list(self.digests(scope)) if digest not in keep)

    def digests(self, scope: Scope) -> Iterator[tuple[str, datetime]]:
        """See `Blobs.digests`."""
        mine = owner_key(scope)
        for (owner, digest), (_, at) in list(self._kept.items()):
            if owner == mine:
                yield digest, at

    def stale(self, before: datetime) -> Iterator[tuple[str, str]]:
        """See `Blobs.stale`."""
        return iter(sorted(name for name, (_, at) in list(self._kept.items()) if at < before))

    def discard(self, owner: str, names: Collection[str], before: datetime) -> int:
        """See `Blobs.discard`."""
        old = set(self.stale(before)) & {(owner, name) for name in names}
        return sum(self._kept.pop(name, None) is not None for name in old)

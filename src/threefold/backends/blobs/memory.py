"""Blobs in memory: the plainest statement of the behaviour."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from datetime import datetime

from threefold.errors import IntegrityError, NotFound
from threefold.model.scope import Scope
from threefold.model.times import now


class MemoryBlobs:
    """`Blobs` in a dictionary; gone with the process."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, str], tuple[bytes, datetime]] = {}

    def put(self, scope: Scope, data: bytes) -> str:
        """See `Blobs.put`."""
        digest = hashlib.sha256(data).hexdigest()
        self._kept.setdefault((scope.tenant, scope.user, digest), (bytes(data), now()))
        return digest

    def get(self, scope: Scope, digest: str) -> bytes:
        """See `Blobs.get`."""
        try:
            data, _ = self._kept[scope.tenant, scope.user, digest]
        except KeyError:
            raise NotFound(f"no bytes with SHA-256 {digest}") from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise IntegrityError(f"the bytes kept as {digest} are not those that were put")
        return data

    def has(self, scope: Scope, digest: str) -> bool:
        """See `Blobs.has`."""
        return (scope.tenant, scope.user, digest) in self._kept

    def delete(self, scope: Scope, digest: str) -> bool:
        """See `Blobs.delete`."""
        return self._kept.pop((scope.tenant, scope.user, digest), None) is not None

    def sweep(self, scope: Scope, keep: Collection[str]) -> int:
        """See `Blobs.sweep`."""
        return sum(self.delete(scope, digest) for digest, _ in list(self.digests(scope)) if digest not in keep)

    def digests(self, scope: Scope) -> Iterator[tuple[str, datetime]]:
        """See `Blobs.digests`."""
        for (tenant, user, digest), (_, at) in list(self._kept.items()):
            if (tenant, user) == (scope.tenant, scope.user):
                yield digest, at

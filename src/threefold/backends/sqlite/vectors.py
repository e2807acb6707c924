"""Vectors: float16 in the file, float32 in a bounded cache, scanned exactly."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import apsw

from threefold.backends.sqlite.connection import fetch, scalar

if TYPE_CHECKING:
    import numpy as np

CACHE_BYTES = 256 * 2**20


@dataclass(frozen=True, slots=True)
class _Matrix:
    """One owner's vectors: `ids` int64 (n,) ascending, `vectors` float32 (n, dimensions)."""

    generation: int
    ids: np.ndarray
    vectors: np.ndarray

    @property
    def size(self) -> int:
        return int(self.vectors.nbytes + self.ids.nbytes)


class VectorCache:
    """The most recently used owners' vectors, at most `CACHE_BYTES` in all.

    Each entry is checked against the owner's change counter in the same snapshot, since other processes write too.
    """

    def __init__(self, max_bytes: int = CACHE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._held: OrderedDict[int, _Matrix] = OrderedDict()
        self._lock = threading.Lock()

    def nearest(
        self, db: apsw.Connection, owner: int, vector: np.ndarray, depth: int, allowed: list[int] | None
    ) -> list[tuple[int, float]]:
        """The `depth` rows of the owner with the highest positive inner product; only those in `allowed`, if given."""
        import numpy as np

        matrix = self._matrix(db, owner)
        if matrix.vectors.shape[0] == 0 or matrix.vectors.shape[1] != vector.shape[0]:
            return []
        scores = matrix.vectors @ vector
        if allowed is not None:
            scores = np.where(np.isin(matrix.ids, np.asarray(allowed, dtype=np.int64)), scores, -np.inf)
        # Of equal ones at the cut the first are taken, so that a longer list begins with the shorter one.
        least = np.partition(scores, -depth)[-depth] if len(scores) > depth else -np.inf
        top = np.flatnonzero((scores >= least) & (scores > 0))
        order = top[np.lexsort((matrix.ids[top], -scores[top]))][:depth]
        return list(zip(matrix.ids[order].tolist(), scores[order].tolist(), strict=True))

    def _matrix(self, db: apsw.Connection, owner: int) -> _Matrix:
        generation = scalar(db, "SELECT vectors FROM owners WHERE id = ?", (owner,))
        with self._lock:
            held = self._held.get(owner)
            if held is not None and held.generation == generation:
                self._held.move_to_end(owner)
                return held
        matrix = _load(db, owner, generation)
        with self._lock:
            self._held[owner] = matrix
            self._held.move_to_end(owner)
            while sum(m.size for m in self._held.values()) > self._max_bytes and len(self._held) > 1:
                self._held.popitem(last=False)
        return matrix

    def clear(self) -> None:
        """Forget everything that is held in memory."""
        with self._lock:
            self._held.clear()


def _load(db: apsw.Connection, owner: int, generation: int) -> _Matrix:
    import numpy as np

    found = fetch(db, "SELECT row, embedding FROM vectors WHERE owner = ? ORDER BY row", (owner,))
    ids = np.fromiter((row for row, _ in found), dtype=np.int64, count=len(found))
    packed = np.frombuffer(b"".join([embedding for _, embedding in found]), dtype="<f2")
    return _Matrix(generation, ids, packed.astype(np.float32).reshape(len(found), -1 if len(found) else 0))

"""Vectors: float16 in the file, float32 in a bounded cache, scanned exactly."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import apsw

from threefold.backends.sqlite.connection import fetch

if TYPE_CHECKING:
    import numpy as np

CACHE_BYTES = 256 * 2**20


# A cache that must grow makes room for this share more.
SPARE = 0.25


@dataclass(frozen=True, slots=True)
class _Matrix:
    """One owner's vectors: the first `count` of `all_ids` int64 (room,) and of `held` float32 (room, dimensions).

    Ids ascend. `changes` and `replaced` are the owner's counters when they were read.
    """

    changes: int
    replaced: int
    count: int
    all_ids: np.ndarray
    held: np.ndarray

    @property
    def ids(self) -> np.ndarray:
        return self.all_ids[: self.count]

    @property
    def vectors(self) -> np.ndarray:
        return self.held[: self.count]

    @property
    def size(self) -> int:
        return int(self.held.nbytes + self.all_ids.nbytes)


class VectorCache:
    """The most recently used owners' vectors, at most `CACHE_BYTES` in all.

    Each entry is checked against the owner's counters in the same snapshot, since other processes write too. What was
    only added to is read on from where it ended.
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
        ((changes, replaced),) = fetch(db, "SELECT vectors, replaced FROM owners WHERE id = ?", (owner,))
        with self._lock:
            held = self._held.get(owner)
        if held is not None and held.changes == changes:
            matrix = held
        elif held is not None and held.replaced == replaced and held.changes < changes and held.count:
            matrix = _grown(held, _load(db, owner, changes, replaced, int(held.ids[-1])))
        else:
            matrix = _load(db, owner, changes, replaced)
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


def _load(db: apsw.Connection, owner: int, changes: int, replaced: int, after: int = -1) -> _Matrix:
    import numpy as np

    sql = "SELECT row, embedding FROM vectors WHERE owner = ? AND row > ? ORDER BY row"
    found = fetch(db, sql, (owner, after))
    ids = np.fromiter((row for row, _ in found), dtype=np.int64, count=len(found))
    packed = np.frombuffer(b"".join([embedding for _, embedding in found]), dtype="<f2")
    vectors = packed.astype(np.float32).reshape(len(found), -1 if len(found) else 0)
    return _Matrix(changes, replaced, len(found), ids, vectors)


def _grown(held: _Matrix, new: _Matrix) -> _Matrix:
    """What is held and what came behind it.

    The room behind what is held is written without a lock: nobody reads there, and another that grows the same writes
    the same, since rows between are no addition (`replaced`).
    """
    import numpy as np

    total = held.count + new.count
    ids, vectors = held.all_ids, held.held
    if total > len(ids):
        room = int(total * (1.0 + SPARE))
        ids, vectors = np.empty(room, dtype=np.int64), np.empty((room, vectors.shape[1]), dtype=np.float32)
        ids[: held.count], vectors[: held.count] = held.ids, held.vectors
    if new.count:
        ids[held.count : total], vectors[held.count : total] = new.ids, new.vectors
    return _Matrix(new.changes, new.replaced, total, ids, vectors)

"""Vectors: float16 in the file, float32 in a bounded cache, scanned exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import apsw

from threefold.backends.sqlite.caching import Recent, extended
from threefold.backends.sqlite.connection import fetch
from threefold.backends.sqlite.keys import Owner

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Vectors = npt.NDArray[np.float32]

CACHE_BYTES: Final = 256 * 2**20


@dataclass(frozen=True, slots=True, eq=False)
class _Matrix:
    """One owner's vectors: the first `count` of `all_ids` int64 (room,) and of `held` float32 (room, dimensions).

    Ids ascend. `changes` and `replaced` are the owner's counters when they were read.
    """

    changes: int
    replaced: int
    count: int
    all_ids: Ints
    held: Vectors

    @property
    def ids(self) -> Ints:
        return self.all_ids[: self.count]

    @property
    def vectors(self) -> Vectors:
        return self.held[: self.count]

    @property
    def size(self) -> int:
        return int(self.held.nbytes + self.all_ids.nbytes)


class VectorCache:
    """The most recently used owners' vectors.

    Each entry is checked against the owner's counters in the same snapshot, since other processes write too. What was
    only added to is read on from where it ended.
    """

    def __init__(self, max_bytes: int = CACHE_BYTES) -> None:
        self._recent: Recent[int, _Matrix] = Recent(max_bytes)

    def scores(self, db: apsw.Connection, owner: Owner, vector: np.ndarray) -> tuple[Ints, Vectors]:
        """The numbers of the owner's rows that have a vector, ascending, and the inner products with this one."""
        import numpy as np

        matrix = self._matrix(db, owner)
        if matrix.vectors.shape[0] == 0 or matrix.vectors.shape[1] != vector.shape[0]:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        return matrix.ids, matrix.vectors @ vector

    def _matrix(self, db: apsw.Connection, owner: Owner) -> _Matrix:
        held = self._recent.get(owner.id)
        if held is not None and held.changes == owner.vectors:
            matrix = held
        elif held is not None and held.replaced == owner.replaced and held.changes < owner.vectors and held.count:
            matrix = _grown(held, _load(db, owner, int(held.ids[-1])))
        else:
            matrix = _load(db, owner)
        self._recent.put(owner.id, matrix)
        return matrix

    def clear(self) -> None:
        """Forget everything that is held in memory."""
        self._recent.clear()


def _load(db: apsw.Connection, owner: Owner, after: int = -1) -> _Matrix:
    import numpy as np

    sql = "SELECT row, embedding FROM vectors WHERE owner = ? AND row > ? ORDER BY row"
    found = fetch(db, sql, (owner.id, after))
    ids = np.fromiter((row for row, _ in found), dtype=np.int64, count=len(found))
    packed = np.frombuffer(b"".join([embedding for _, embedding in found]), dtype="<f2")
    vectors = packed.astype(np.float32).reshape(len(found), -1 if len(found) else 0)
    return _Matrix(owner.vectors, owner.replaced, len(found), ids, vectors)


def _grown(held: _Matrix, new: _Matrix) -> _Matrix:
    """What is held and what came behind it."""
    if not new.count:
        return _Matrix(new.changes, new.replaced, held.count, held.all_ids, held.held)
    ids = extended(held.all_ids, held.count, new.ids)
    vectors = extended(held.held, held.count, new.vectors)
    return _Matrix(new.changes, new.replaced, held.count + new.count, ids, vectors)

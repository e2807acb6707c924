"""Vectors: float16 in the file, float32 in a bounded cache, scanned exactly."""

from __future__ import annotations

from collections.abc import Sequence
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

    Ids ascend. `changes` and `replaced` are the owner's counters, of `vectors` and so named, when they were read.
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
    added to is read on from where it ended, and those that went or came before that are taken out or put in. A snapshot
    from before that reads for itself.
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
        if held is not None and held.changes > owner.vectors:
            return _load(db, owner)
        if held is None or held.replaced != owner.replaced or not held.count:
            held = _load(db, owner)
        elif held.changes != owner.vectors:
            held = _changed(db, owner, held)
            held = _grown(held, _load(db, owner, int(held.ids[-1]) if held.count else -1))
        self._recent.put(owner.id, held)
        return held

    def clear(self) -> None:
        """Forget everything that is held in memory."""
        self._recent.clear()


def _load(db: apsw.Connection, owner: Owner, after: int = -1) -> _Matrix:
    sql = "SELECT row, embedding FROM vectors WHERE owner = ? AND row > ? ORDER BY row"
    return _unpacked(owner, fetch(db, sql, (owner.id, after)))


def _unpacked(owner: Owner, found: Sequence[tuple[int, bytes]]) -> _Matrix:
    import numpy as np

    ids = np.fromiter((row for row, _ in found), dtype=np.int64, count=len(found))
    packed = np.frombuffer(b"".join([embedding for _, embedding in found]), dtype="<f2")
    vectors = packed.astype(np.float32).reshape(len(found), -1 if len(found) else 0)
    return _Matrix(owner.vectors, owner.replaced, len(found), ids, vectors)


def _changed(db: apsw.Connection, owner: Owner, held: _Matrix) -> _Matrix:
    """What is held up to the last that is not marked since, with the marked ones before that as they are now.

    A copy where there are any, also behind the end: others may be reading what is held, or growing it without them.
    """
    import numpy as np

    marked = fetch(
        db,
        """SELECT r.id, v.embedding FROM rows AS r INDEXED BY rows_with_other_vectors
           LEFT JOIN vectors AS v ON v.owner = r.owner AND v.row = r.id
           WHERE r.owner = ? AND r.vector_change > 0 AND r.vector_change > ? ORDER BY r.id""",
        (owner.id, held.changes),
    )
    if not marked:
        return held
    kept = np.isin(held.ids, [row for row, _ in marked], assume_unique=True, invert=True)
    ids, vectors = held.ids[kept], held.vectors[kept]
    last = ids[-1] if len(ids) else -1
    new = _unpacked(owner, [(row, embedding) for row, embedding in marked if embedding is not None and row <= last])
    if new.count:
        places = ids.searchsorted(new.ids)
        ids, vectors = np.insert(ids, places, new.ids), np.insert(vectors, places, new.vectors, axis=0)
    return _Matrix(new.changes, new.replaced, len(ids), ids, vectors)


def _grown(held: _Matrix, new: _Matrix) -> _Matrix:
    """What is held and what came behind it."""
    if not new.count:
        return _Matrix(new.changes, new.replaced, held.count, held.all_ids, held.held)
    ids = extended(held.all_ids, held.count, new.ids)
    vectors = extended(held.held, held.count, new.vectors)
    return _Matrix(new.changes, new.replaced, held.count + new.count, ids, vectors)

"""Which turns have a label, in a bounded cache: nearly all of an owner's may have one that a filter asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import apsw

from threefold.backends.sqlite.caching import Recent
from threefold.backends.sqlite.columns import Columns
from threefold.backends.sqlite.connection import fetch
from threefold.backends.sqlite.keys import Owner

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Bools = npt.NDArray[np.bool_]

CACHE_BYTES: Final = 16 * 2**20


class _Labelled(NamedTuple):
    """Places of turns in the owner's columns, as these were when they had so many turns."""

    rewritten: int
    turns: int
    places: Ints

    @property
    def size(self) -> int:
        return int(self.places.nbytes) + 100


class LabelCache:
    """Turns by owner and label; what was only added to is read on from where it ended."""

    def __init__(self, max_bytes: int = CACHE_BYTES) -> None:
        self._recent: Recent[tuple[int, str], _Labelled] = Recent(max_bytes)

    def rows(self, db: apsw.Connection, owner: Owner, columns: Columns, labels: Sequence[str]) -> Bools:
        """Which rows belong to a turn with one of the labels."""
        import numpy as np

        having = np.zeros(len(columns.turns), dtype=np.bool_)
        for label in labels:
            having[self._places(db, owner, columns, label)] = True
        found: Bools = having[columns.rows.turn]
        return found

    def _places(self, db: apsw.Connection, owner: Owner, columns: Columns, label: str) -> Ints:
        import numpy as np

        count, key = len(columns.turns), (owner.id, label)
        held = self._recent.get(key)
        if held is None or held.rewritten != columns.rewritten:
            held = _Labelled(columns.rewritten, 0, np.empty(0, dtype=np.int64))
        if held.turns > count:
            return held.places[held.places < count]
        if held.turns < count:
            after = int(columns.turns[held.turns - 1]) if held.turns else -1
            sql = "SELECT turn FROM labels WHERE owner = ? AND label = ? AND turn > ? ORDER BY turn"
            turns = np.array([turn for (turn,) in fetch(db, sql, (owner.id, label, after))], dtype=np.int64)
            # A turn without rows has no place.
            turns = turns[np.isin(turns, columns.turns[held.turns :], assume_unique=True)]
            held = _Labelled(columns.rewritten, count, np.append(held.places, columns.turns.searchsorted(turns)))
        self._recent.put(key, held)
        return held.places

    def clear(self) -> None:
        """Forget everything that is held in memory."""
        self._recent.clear()

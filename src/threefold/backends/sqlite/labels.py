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
    """Places of turns in the owner's columns, as these were with these counters and so many turns."""

    rewritten: int
    changes: int
    turns: int
    places: Ints

    @property
    def size(self) -> int:
        return int(self.places.nbytes) + 100


class LabelCache:
    """Turns by owner and label. Read on, read again and read by older snapshots as the columns are."""

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
        nothing = _Labelled(columns.rewritten, columns.changes, 0, np.empty(0, dtype=np.int64))
        held = self._recent.get(key) or nothing
        if held[:2] > nothing[:2]:
            return _read(db, owner, columns, label, nothing).places
        if held.rewritten != columns.rewritten:
            held = nothing
        if held.changes != columns.changes:
            held = _changed(db, owner, columns, label, held)
        if held.turns < count:
            held = _read(db, owner, columns, label, held)
        elif held.turns > count:
            return held.places[held.places < count]
        self._recent.put(key, held)
        return held.places

    def clear(self) -> None:
        """Forget everything that is held in memory."""
        self._recent.clear()


def _read(db: apsw.Connection, owner: Owner, columns: Columns, label: str, held: _Labelled) -> _Labelled:
    """What is held and the turns behind that."""
    import numpy as np

    after = int(columns.turns[held.turns - 1]) if held.turns else -1
    sql = "SELECT turn FROM labels WHERE owner = ? AND label = ? AND turn > ? ORDER BY turn"
    turns = np.array([turn for (turn,) in fetch(db, sql, (owner.id, label, after))], dtype=np.int64)
    # A turn without rows has no place.
    turns = turns[np.isin(turns, columns.turns[held.turns :], assume_unique=True)]
    places = np.append(held.places, columns.turns.searchsorted(turns))
    return held._replace(turns=len(columns.turns), places=places)


def _changed(db: apsw.Connection, owner: Owner, columns: Columns, label: str, held: _Labelled) -> _Labelled:
    """What is held, with the turns that were changed since as they are now."""
    import numpy as np

    last = int(columns.turns[held.turns - 1]) if held.turns else -1
    marked = fetch(
        db,
        """SELECT DISTINCT r.turn, l.turn FROM rows AS r INDEXED BY rows_changed
           LEFT JOIN labels AS l ON l.owner = r.owner AND l.label = ? AND l.turn = r.turn
           WHERE r.owner = ? AND r.change > 0 AND r.change > ? AND r.turn <= ?""",
        (label, owner.id, held.changes, last),
    )
    changed, labelled = (
        columns.turns.searchsorted([turn for turn in turns if turn is not None])
        for turns in (zip(*marked, strict=True) if marked else ((), ()))
    )
    kept = np.isin(held.places, changed, assume_unique=True, invert=True)
    return held._replace(changes=columns.changes, places=np.append(held.places[kept], labelled))

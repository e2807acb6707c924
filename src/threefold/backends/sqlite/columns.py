"""What ranking needs of each row, a column each, in a bounded cache: a search reads postings and vectors, no rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

import apsw

from threefold.backends.sqlite.caching import Recent, extended
from threefold.backends.sqlite.connection import fetch
from threefold.backends.sqlite.keys import Owner
from threefold.errors import IntegrityError
from threefold.model.candidates import CandidateRows
from threefold.model.kinds import ROLES

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

# Some 600,000 rows: 88 bytes each, and the name of every turn.
CACHE_BYTES: Final = 64 * 2**20
_NAME_BYTES: Final = 100
_NEVER: Final = 2**63 - 1
_ROLE = "CASE role " + " ".join(f"WHEN '{role}' THEN {code}" for code, role in enumerate(ROLES)) + " END"
# As `_Table` has them; the author, a text, is put in for the last one.
_COLUMNS = (
    "id", f"coalesce(expires, {_NEVER})", "conversation", "turn", "seq", "position", _ROLE, "at", "word_count", "0",
    "asks",
)  # fmt: skip
_CONVERSATION, _TURN, _AUTHOR = 2, 3, 9


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """One owner's rows in order of their numbers in the file, `ids`; `expires` in microseconds since 1970.

    `rows` has places instead of numbers and names: `conversations` maps the number of a conversation to its place, and
    `turns` has the number of the turn at each place, ascending. `table` is what all this is a view of, int64 of shape
    (columns, room); `rewritten` and `changes` are the owner's counters when it was read.
    """

    rewritten: int
    changes: int
    table: Ints
    ids: Ints
    expires: Ints
    rows: CandidateRows
    conversations: Mapping[int, int]
    turns: Ints

    @property
    def size(self) -> int:
        """In bytes."""
        return int(self.table.nbytes) + _NAME_BYTES * len(self.turns)

    def places(self, ids: Ints) -> Ints:
        """The places of rows with these numbers.

        Raises:
            IntegrityError: there are no such rows, though the index or the vectors have them.
        """
        import numpy as np

        places = self.ids.searchsorted(ids)
        if len(ids) and not (len(self.ids) and (self.ids[np.minimum(places, len(self.ids) - 1)] == ids).all()):
            raise IntegrityError("the index has rows that are not there; run `threefold doctor --repair`")
        return places


class ColumnCache:
    """The most recently used owners' columns.

    Each is checked against the owner's counters in the same snapshot, since other processes write too. What was added
    to is read on from where it ended, and rows that were changed in place are read again; a snapshot from before rows
    were added sees the beginning, one from before they were changed reads for itself.
    """

    def __init__(self, max_bytes: int = CACHE_BYTES) -> None:
        self._recent: Recent[int, Columns] = Recent(max_bytes)

    def of(self, db: apsw.Connection, owner: Owner) -> Columns:
        """The columns of all rows of the owner."""
        held = self._recent.get(owner.id)
        if held is not None and (held.rewritten, held.changes) > (owner.rewritten, owner.changes):
            return _read(db, owner, _nothing(owner))
        if held is None or held.rewritten != owner.rewritten:
            held = _nothing(owner)
        if held.changes != owner.changes:
            held = _changed(db, owner, held)
        if len(held.ids) < owner.rows:
            held = _read(db, owner, held)
        elif len(held.ids) > owner.rows:
            return _columns(held, held.table, owner.rows)
        self._recent.put(owner.id, held)
        return held

    def clear(self) -> None:
        """Forget everything that is held in memory."""
        self._recent.clear()


def _read(db: apsw.Connection, owner: Owner, held: Columns) -> Columns:
    """All rows of the owner; those that are `held` are not read again."""
    import numpy as np

    count = len(held.ids)
    after = int(held.ids[-1]) if count else -1
    # By the owner's index, which has it all: in order of the primary key, SQLite would go through everyone's rows.
    mine = "FROM rows INDEXED BY rows_of_owner WHERE owner = ? AND id > ?"
    new, authors = _found(db, mine, (owner.id, after), held)
    conversations = dict(held.conversations)
    unknown = [number for number in sorted(set(new[_CONVERSATION].tolist())) if number not in conversations]
    conversations.update({number: len(conversations) + place for place, number in enumerate(unknown)})
    new[_CONVERSATION] = [conversations[number] for number in new[_CONVERSATION].tolist()]
    turns = np.unique(new[_TURN])
    turns = turns[turns > (held.turns[-1] if len(held.turns) else -1)]  # an edition adds rows to a turn that is held
    numbers = np.append(held.turns, turns)
    new[_TURN] = numbers.searchsorted(new[_TURN])
    names = _names(db, "conversations", owner, unknown)
    turn_names = _names(db, "turns", owner, turns.tolist()) if count else _all_turn_names(db, owner, turns.tolist())
    more = Columns(
        owner.rewritten,
        owner.changes,
        held.table,
        held.ids,
        held.expires,
        replace(
            held.rows,
            conversations=[*held.rows.conversations, *names],
            turns=[*held.rows.turns, *turn_names],
            authors=authors,
        ),
        conversations,
        numbers,
    )
    return _columns(more, extended(held.table, count, new, axis=1), count + new.shape[1])


def _changed(db: apsw.Connection, owner: Owner, held: Columns) -> Columns:
    """What is held, with the rows that were changed since read again. A copy: others may be reading, or growing it."""
    count = len(held.ids)
    last = int(held.ids[-1]) if count else -1
    marked = "FROM rows INDEXED BY rows_changed WHERE owner = ? AND change > 0 AND change > ? AND id <= ?"
    new, authors = _found(db, marked, (owner.id, held.changes, last), held)
    places, table = held.places(new[0]), held.table[:, :count].copy()
    names = [_CONVERSATION, _TURN]
    new[names] = table[names][:, places]
    table[:, places] = new
    named = replace(held, changes=owner.changes, rows=replace(held.rows, authors=authors))
    return _columns(named, table, count)


def _found(db: apsw.Connection, which: str, values: Sequence[int], held: Columns) -> tuple[Ints, Sequence[str | None]]:
    """Rows as columns in order of their numbers, and the names of authors with those that are new.

    Conversations and turns are numbers still.
    """
    import numpy as np

    found = db.execute(f"SELECT {', '.join(_COLUMNS)} {which} ORDER BY id", values)
    new = np.fromiter(chain.from_iterable(found), dtype=np.int64).reshape(-1, len(_COLUMNS)).T
    authors = {author: place for place, author in enumerate(held.rows.authors)}
    for number, author in fetch(db, f"SELECT id, author {which} AND author IS NOT NULL ORDER BY id", values):
        new[_AUTHOR, new[0].searchsorted(number)] = authors.setdefault(author, len(authors))
    return new, list(authors)


def _nothing(owner: Owner) -> Columns:
    import numpy as np

    table, none = np.empty((len(_COLUMNS), 0), dtype=np.int64), np.empty(0, dtype=np.int64)
    rows = CandidateRows((), (), (None,), *[none] * 10)
    return Columns(owner.rewritten, owner.changes, table, none, none, rows, {}, none)


def _columns(named: Columns, table: Ints, count: int) -> Columns:
    """The first `count` rows of a table, with the names that are known."""
    import numpy as np

    ids, expires, *columns = table[:, :count]
    names = named.rows
    columns.append(np.broadcast_to(np.int64(0), count))  # nothing was asked yet
    rows = CandidateRows(names.conversations, names.turns, names.authors, *columns)
    return replace(named, table=table, ids=ids, expires=expires, rows=rows)


def _names(db: apsw.Connection, table: str, owner: Owner, numbers: Sequence[int]) -> Sequence[str]:
    """The names of these conversations or turns, in their order."""
    found = fetch(
        db,
        f"""SELECT n.id, n.name FROM json_each(?) AS wanted CROSS JOIN {table} AS n
            ON n.id = wanted.value AND +n.owner = ?""",
        (json.dumps(numbers), owner.id),
    )
    names = dict(found)
    return [names[number] for number in numbers]


def _all_turn_names(db: apsw.Connection, owner: Owner, numbers: Sequence[int]) -> Sequence[str]:
    """The same by the index of names: the table has the logs of turns in between."""
    sql = "SELECT t.id, t.name FROM conversations AS c CROSS JOIN turns AS t ON t.conversation = c.id WHERE c.owner = ?"
    names = dict(fetch(db, sql, (owner.id,)))
    return [names[number] for number in numbers]

"""A transaction that records turns of one owner: what it must know, what it collects, and how it is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from threefold.backends.editions import kept_rows
from threefold.backends.packing import pack, pack_log
from threefold.backends.postgres.connection import Db, fetch, run
from threefold.backends.postgres.indexing import index_row
from threefold.backends.postgres.inserting import Inserts
from threefold.backends.postgres.keys import given, kept, owner_key, vector_text
from threefold.backends.postgres.owners import LOCK, Owner, make_owner
from threefold.backends.postgres.removal import clear_turn, settle_conversations
from threefold.model.commit import Recorded
from threefold.model.record import TurnRecord
from threefold.model.retention import tombstone
from threefold.model.scope import Scope
from threefold.model.times import from_micros, to_micros
from threefold.model.titles import title_of

if TYPE_CHECKING:
    import numpy as np

NO_VECTORS: Mapping[int, np.ndarray] = MappingProxyType({})


@dataclass
class Parent:
    """A conversation as it will stand when the transaction is through."""

    number: int
    app: str | None
    title: str
    started: int
    last_activity: int
    turns: int
    positions: int


class _Place(NamedTuple):
    """The number of a turn; those of rows that say what one said, by their numbers in the turn; and those left over."""

    turn: int
    kept: Mapping[int, int] = MappingProxyType({})
    free: Sequence[int] = ()


@dataclass
class Work:
    """The locked owner, and what is known of the conversations and turns that are named; `finish` sends the rest."""

    db: Db
    owner: Owner
    inserts: Inserts
    buries: bool  # whether the owner has tombstones
    conversations: dict[str, Parent] = field(default_factory=dict)
    turns: dict[tuple[str, str], tuple[int, Recorded]] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)
    changed: set[int] = field(default_factory=set)
    unburied: list[bytes] = field(default_factory=list)

    def put(
        self,
        record: TurnRecord,
        made_by: str | None,
        position: int | None = None,
        vectors: Mapping[int, np.ndarray] = NO_VECTORS,
    ) -> int:
        """Insert a turn with its rows and files, or another edition in the place of one; returns its number.

        `made_by` is the app that makes the conversation where it is new, `position` that of the first row (None: the
        next). Rows that have no vector in `vectors`, by their number in the turn, wait for one. Another edition keeps
        feedback, and words and vectors, or places in the queue, of rows that say what one said, wherever that was.
        """
        started, ended = to_micros(record.log.started), to_micros(record.log.ended)
        parent = self.conversations.get(record.conversation)
        if parent is None:
            parent = Parent(self.owner.number(), made_by, title_of(record), started, ended, 0, 0)
            self.conversations[record.conversation] = parent
        place = self._place(record, parent)
        self._put_turn(record, parent.number, place.turn)
        first = parent.positions + 1 if position is None else position
        self._put_rows(record, parent.number, place, first, vectors)
        parent.positions = max(parent.positions, first + len(record.rows) - 1)
        parent.turns += 1
        if record.title:
            parent.title = title_of(record)
        parent.started, parent.last_activity = min(parent.started, started), max(parent.last_activity, ended)
        self.touched.add(record.conversation)
        self.unburied.append(tombstone(record.conversation, record.turn))
        return place.turn

    def _place(self, record: TurnRecord, parent: Parent) -> _Place:
        """Where the turn is put; what an older edition had there is removed."""
        stored = self.turns.get((record.conversation, record.turn))
        if stored is None:
            return _Place(self.owner.number())
        self.inserts.flush(self.db)
        found = fetch(
            self.db,
            "SELECT seq, number, author, text FROM threefold.rows WHERE owner = %s AND turn = %s",
            (self.owner.key, stored[0]),
        )
        numbers = {seq: number for seq, number, *_ in found}
        same = kept_rows({seq: (given(author), given(text)) for seq, _, author, text in found}, record.rows)
        stay = {now: numbers[then] for now, then in same.items()}
        place = _Place(stored[0], stay, sorted(set(numbers.values()) - set(stay.values())))
        clear_turn(self.db, self.owner, place.turn, place.free)
        parent.turns -= 1
        self.changed.add(parent.number)
        return place

    def _put_turn(self, record: TurnRecord, conversation: int, number: int) -> None:
        log = record.log
        expires = None if record.expires is None else to_micros(record.expires)
        self.owner.expect(expires)
        self.inserts.add(
            "turns",
            number,
            conversation,
            record.turn,
            record.state,
            log.status,
            to_micros(log.started),
            to_micros(log.ended),
            expires,
            record.agent,
            record.app,
            bytes.fromhex(record.digest),
            kept(record.head),
            pack_log(log, record.rows),
            pack(dict(record.replay)) if record.replay else None,
            kept(record.title or None),
        )
        for seq, file in enumerate(record.files):
            self.inserts.add("files", number, seq, kept(file.path), file.digest, file.size, kept(file.mime))
        for label in record.labels:
            self.inserts.add("labels", label, number)
        recorded = Recorded(record.state, record.digest, record.head, log.ended)
        self.turns[record.conversation, record.turn] = (number, recorded)

    def _put_rows(
        self, record: TurnRecord, conversation: int, place: _Place, first: int, vectors: Mapping[int, np.ndarray]
    ) -> None:
        expires = None if record.expires is None else to_micros(record.expires)
        own_batch, free = f"{record.turn}.batch", iter(place.free)
        for row in record.rows:
            number = place.kept.get(row.seq) or next(free, None) or self.owner.number()
            batch = None if row.batch == own_batch else row.batch or ""
            self.inserts.add(
                "rows", number, conversation, place.turn, row.seq, first + row.seq, row.role, row.event_type,
                kept(row.path), kept(batch), kept(row.author), to_micros(row.at), expires, len(row.terms),
                kept(row.text),
            )  # fmt: skip
            if row.seq in place.kept:
                continue
            index_row(self.inserts, self.owner.key, number, row.terms)
            self.owner.words += len(row.terms)
            if row.seq in vectors:
                self.inserts.add("vectors", number, vector_text(vectors[row.seq]))
            else:
                self.inserts.add("waiting", number)
        self.owner.rows += len(record.rows)

    def react(self, turn: int, origin: object, reaction: object, text: object, at: object) -> None:
        """Insert a reaction, as it is kept."""
        self.inserts.add("feedback", turn, self.owner.number(), origin, reaction, text, at)

    def finish(self) -> None:
        """Send what was collected, and the owner's counters; waits for nothing."""
        for name in self.touched:
            c = self.conversations[name]
            self.inserts.add(
                "conversations", c.number, name, kept(c.title), c.app, c.started, c.last_activity, c.turns, c.positions
            )
        self.inserts.flush(self.db)
        if self.buries and self.unburied:
            run(
                self.db,
                "DELETE FROM threefold.tombstones WHERE owner = %s AND hash = ANY(%s)",
                (self.owner.key, self.unburied),
            )
        if self.changed:
            settle_conversations(self.db, self.owner.key, sorted(self.changed))
        self.owner.save(self.db)


# The owner and what is known of the named conversations and turns: a row for each name, none for an unknown owner.
_LOOK = """
    SELECT o.last_number, o.rows, o.words, o.expires,
           EXISTS (SELECT 1 FROM threefold.tombstones WHERE owner = %(owner)s),
           n.conversation, n.turn, c.number, c.app, c.title, c.started, c.last_activity, c.turns, c.positions,
           t.number, t.state, t.digest, t.head, t.ended
    FROM threefold.owners AS o
    CROSS JOIN unnest(%(conversations)s::text[], %(turns)s::text[]) AS n (conversation, turn)
    LEFT JOIN LATERAL (
        SELECT * FROM threefold.conversations AS c WHERE c.owner = %(owner)s AND c.name = n.conversation OFFSET 0
    ) AS c ON true
    LEFT JOIN LATERAL (
        SELECT * FROM threefold.turns AS t
        WHERE t.owner = %(owner)s AND t.conversation = c.number AND t.name = n.turn OFFSET 0
    ) AS t ON true
    WHERE o.owner = %(owner)s
"""


def begin(db: Db, scope: Scope, named: Sequence[tuple[str, str]]) -> Work:
    """Lock the owner, made where it is missing, and look up the named conversations and turns; in one trip."""
    key = owner_key(scope)
    values = {"owner": key, "conversations": [name for name, _ in named], "turns": [turn for _, turn in named]}
    while True:
        lock = run(db, LOCK, (key,))
        found = fetch(db, _LOOK, values)
        if not found:
            make_owner(db, scope)
        elif lock.fetchone() is not None:
            break
    *counters, buries = found[0][:5]
    work = Work(db, Owner(key, scope.owner, *counters), Inserts(key), buries)
    for conversation, turn, *known in (row[5:] for row in found):
        number, app, title, *rest = known[:7]
        if number is not None:
            work.conversations[conversation] = Parent(number, app, given(title), *rest)
        number, state, digest, head, ended = known[7:]
        if number is not None:
            recorded = Recorded(state, digest.hex(), given(head), from_micros(ended))
            work.turns[conversation, turn] = (number, recorded)
    return work

"""What the memory back end holds of one owner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from threefold.backends.editions import kept_rows
from threefold.model.commit import Recorded
from threefold.model.record import Feedback, TurnRecord
from threefold.model.retention import Gone, tombstone
from threefold.model.rows import Row, RowKey
from threefold.model.titles import title_of
from threefold.ports import PendingRow

if TYPE_CHECKING:
    import numpy as np


@dataclass
class Kept:
    """A recorded turn with the position of its first row, its feedback, and its place in the order of arrival."""

    record: TurnRecord
    first_position: int
    feedback: list[Feedback] = field(default_factory=list)
    arrival: int = 0

    @property
    def key(self) -> tuple[str, str]:
        """Its conversation and id."""
        return self.record.conversation, self.record.turn

    @property
    def order(self) -> tuple[datetime, str, str]:
        """By what turns are sorted: start, conversation, id."""
        return self.record.log.started, self.record.conversation, self.record.turn

    @property
    def labels(self) -> frozenset[str]:
        """What it can be asked for by."""
        return frozenset(self.record.labels)

    @property
    def recorded(self) -> Recorded:
        """What decides about a second recording."""
        return Recorded(self.record.state, self.record.digest, self.record.head, self.record.log.ended)

    def live(self, now: datetime) -> bool:
        """Whether its time to live is not over."""
        return self.record.expires is None or self.record.expires > now


@dataclass
class KeptConversation:
    """A conversation: its title, its app, and how many rows it ever had."""

    title: str
    app: str | None
    positions: int = 0


@dataclass
class Waiting:
    """A row that waits for its vector: from when it may be claimed, how often it failed, and why."""

    due: datetime | None = None
    attempts: int = 0
    error: str | None = None


@dataclass
class Owned:
    """Everything of one owner; nothing is shared between owners."""

    conversations: dict[str, KeptConversation] = field(default_factory=dict)
    turns: dict[tuple[str, str], Kept] = field(default_factory=dict)
    vectors: dict[RowKey, np.ndarray] = field(default_factory=dict)
    waiting: dict[RowKey, Waiting] = field(default_factory=dict)
    gone: dict[bytes, Gone] = field(default_factory=dict)
    doomed: set[str] = field(default_factory=set)
    arrivals: int = 0

    def rows(self) -> Iterator[tuple[Kept, Row, RowKey]]:
        """Every content row with its turn and key."""
        for kept in self.turns.values():
            for row in kept.record.rows:
                yield kept, row, RowKey(kept.record.conversation, kept.record.turn, row.seq)

    def in_order(self, conversation: str) -> list[Kept]:
        """The turns of a conversation by their start."""
        return sorted((k for (c, _), k in self.turns.items() if c == conversation), key=lambda k: k.order)

    def copy(self) -> Owned:
        """A copy whose changes do not show here."""
        return Owned(
            {name: replace(parent) for name, parent in self.conversations.items()},
            {key: replace(kept, feedback=list(kept.feedback)) for key, kept in self.turns.items()},
            dict(self.vectors),
            {key: replace(waiting) for key, waiting in self.waiting.items()},
            dict(self.gone),
            set(self.doomed),
            self.arrivals,
        )

    def put(self, record: TurnRecord, made_by: str | None, position: int | None = None) -> None:
        """Put a turn in as the last that arrived, or another edition in the place of one; its rows wait for vectors.

        `made_by` is the app that makes the conversation where it is new, `position` that of the first row (None: the
        next). Another edition keeps feedback, and the vectors, or places in the queue, of rows that say what one said,
        wherever in the turn that was.
        """
        key = (record.conversation, record.turn)
        parent = self.conversations.setdefault(record.conversation, KeptConversation(title_of(record), made_by))
        if position is None:
            position = parent.positions + 1
            parent.positions += len(record.rows)
        waiting = {RowKey(*key, row.seq): Waiting() for row in record.rows}
        old = self.turns.get(key)
        if old is None:
            self.arrivals += 1
            self.turns[key] = Kept(record, position, [], self.arrivals)
            if record.title:
                parent.title = title_of(record)
        else:
            self.turns[key] = replace(old, record=record, first_position=position)
            self.doomed.update(file.digest for file in old.record.files)
            before = {row.seq: (row.author, row.text) for row in old.record.rows}
            places = [RowKey(*key, seq) for seq in before]
            vectors = {place.seq: self.vectors.pop(place) for place in places if place in self.vectors}
            queue = {place.seq: self.waiting.pop(place) for place in places if place in self.waiting}
            for now, then in kept_rows(before, record.rows).items():
                place = RowKey(*key, now)
                if then in queue:
                    waiting[place] = queue[then]
                else:
                    self.vectors[place] = vectors[then]
                    del waiting[place]
            self.settle()
        self.waiting.update(waiting)
        self.gone.pop(tombstone(*key), None)

    def remove(self, keys: Iterable[tuple[str, str]]) -> dict[str, int]:
        """Take turns out of everything but their conversations (see `settle`); returns what went from each store."""
        stores = dict.fromkeys(("turns", "rows", "files", "blobs", "vectors"), 0)
        for key in keys:
            kept = self.turns.pop(key)
            stores["turns"] += 1
            stores["rows"] += len(kept.record.rows)
            stores["files"] += len(kept.record.files)
            for row in kept.record.rows:
                self.waiting.pop(RowKey(*key, row.seq), None)
                stores["vectors"] += self.vectors.pop(RowKey(*key, row.seq), None) is not None
            self.doomed.update(file.digest for file in kept.record.files)
        return stores

    def bury(self, keys: Iterable[tuple[str, str]], why: Gone) -> None:
        """Remember that turns were removed, and why."""
        self.gone.update({tombstone(*key): why for key in keys})

    def settle(self) -> None:
        """After turns went: drop empty conversations, name the others as if only their turns had been recorded."""
        left: dict[str, list[TurnRecord]] = {}
        for (conversation, _), kept in self.turns.items():
            left.setdefault(conversation, []).append(kept.record)
        self.conversations = {name: parent for name, parent in self.conversations.items() if name in left}
        for name, records in left.items():
            given = [record for record in records if record.title]
            self.conversations[name].title = title_of(given[-1] if given else records[0])

    def place_of(self, row: PendingRow) -> RowKey | None:
        """Where a row waits with the text that was claimed: its turn may have been recorded anew since."""
        name = (row.key.conversation, row.key.turn)
        rows = self.turns[name].record.rows if name in self.turns else ()
        places = [RowKey(*name, each.seq) for each in rows if each.spoken == row.text]
        waiting = [place for place in places if place in self.waiting]
        return row.key if row.key in waiting else next(iter(waiting), None)


def without_rows(record: TurnRecord) -> TurnRecord:
    """The record as it is read without its rows: what a row says is not in the log either."""
    said = {row.path: row.text for row in record.rows}
    blocks = tuple(
        replace(block, text=None) if block.text is not None and block.text == said.get(block.path) else block
        for block in record.log.blocks
    )
    return replace(record, log=replace(record.log, blocks=blocks), rows=())

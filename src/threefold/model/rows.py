"""Content rows: what of a turn can be searched, as it is kept and as it comes back."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple


class RowKey(NamedTuple):
    """The natural key of a content row within its owner: conversation, turn, and number within the turn."""

    conversation: str
    turn: str
    seq: int


class Row(NamedTuple):
    """One searchable text of a turn.

    `terms` are what lexical search sees (`threefold.text.terms.index_terms`) of the author's name and the text;
    a row that comes back from a store has none.
    """

    seq: int
    role: str
    event_type: str
    path: str
    text: str
    at: datetime
    batch: str | None = None
    author: str | None = None
    terms: tuple[str, ...] = ()

    @property
    def spoken(self) -> str:
        """The text with its speaker's name in front, where one is known: what is embedded."""
        return f"{self.author}: {self.text}" if self.author else self.text


class StoredRow(NamedTuple):
    """A content row as it comes back, with its place: `position` counts the rows of its conversation in order."""

    key: RowKey
    row: Row
    position: int
    agent: str | None = None

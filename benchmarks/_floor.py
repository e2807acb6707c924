"""The floor of retrieval: plain SQLite full text (porter, English stop words out of the question, OR, BM25)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import apsw
from _dataset import Entry, item_of
from _metrics import distinct

# The usual English function words; they are dropped from questions only.
_STOP_WORDS = frozenset(
    """
    a about above after again against all am an and any are as at be because been before being below between both but by
    can could did do does doing down during each few for from further had has have having he her here hers him his how i
    if in into is it its just me more most my no nor not now of off on once only or other our out over own same she
    should so some such than that the their them then there these they this those through to too under until up very was
    we were what when where which while who whom why will with would you your
    """.split()  # noqa: SIM905
)


def match(question: str, prefix: str = "") -> str:
    """The question as an FTS5 expression: its distinct words without stop words, joined by OR."""
    words = distinct(re.findall(r"\w+", question.lower()))
    kept = [word for word in words if word not in _STOP_WORDS] or words
    return " OR ".join(f'"{prefix}{word}"' for word in kept)


def rows_of(entry: Entry) -> Iterator[tuple[str, str]]:
    """(role, text) of the rows that the product makes of a turn of these sets, the speaker in front."""
    for s in entry.turn.submissions:
        yield "user", f"{s.author}\n{s.text}" if s.author else s.text
    done = entry.turn.completion
    if done is not None:
        yield "assistant", f"{done.author}\n{done.text}" if done.author else done.text


class FullText:
    """One user's rows; `find` ranks items of a unit by their best row, sessions as one text each."""

    def __init__(self, entries: Iterable[Entry], units: Iterable[str]) -> None:
        self._db = apsw.Connection(":memory:")
        self._items: dict[str, list[str]] = {}
        kept = list(entries)
        for unit in units:
            table = f'"{unit}"'
            self._db.execute(f"CREATE VIRTUAL TABLE {table} USING fts5 (text, tokenize = 'porter unicode61')")
            texts = list(self._texts(kept, unit))
            self._items[unit] = [item for item, _ in texts]
            with self._db:
                self._db.executemany(
                    f"INSERT INTO {table} (rowid, text) VALUES (?, ?)", ((i, text) for i, (_, text) in enumerate(texts))
                )

    @staticmethod
    def _texts(entries: Iterable[Entry], unit: str) -> Iterator[tuple[str, str]]:
        if unit != "session":
            for entry in entries:
                for role, text in rows_of(entry):
                    yield item_of(unit, entry, role), text
            return
        sessions: dict[str, list[str]] = {}
        for entry in entries:
            sessions.setdefault(entry.turn.conversation, []).extend(text for _, text in rows_of(entry))
        names = {entry.turn.conversation: entry.session for entry in entries}
        for conversation, texts in sessions.items():
            yield names[conversation], "\n".join(texts)

    def find(self, unit: str, question: str, limit: int) -> list[str]:
        """The best `limit` items of the unit, best first."""
        expression = match(question)
        if not expression:
            return []
        table = f'"{unit}"'
        found = self._db.execute(
            f"SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rank LIMIT ?", (expression, 10 * limit)
        )
        return distinct(self._items[unit][row] for (row,) in found)[:limit]

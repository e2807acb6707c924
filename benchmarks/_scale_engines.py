"""What an engine under measurement is, and the embedded one with its floors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

from _floor import match
from _scale_data import MadeUp, User
from _searching import words_of
from _texts import messages_of

import threefold
from threefold.backends.opening import open_backend
from threefold.backends.sqlite.connection import connect, fetch
from threefold.backends.sqlite.keys import term_text
from threefold.model.scope import Scope
from threefold.model.turn import Turn
from threefold.ports import Backend
from threefold.text.terms import index_terms

DEPTH = 200
Ask = Callable[[str], object]
Write = Callable[[], object]


class Engine(Protocol):
    """One engine under measurement: the product's store, and beside it what the floors need."""

    name: str
    store: str
    db: threefold.Threefold
    backend: Backend

    def feed(self, scope: Scope, turns: Sequence[Turn]) -> None:
        """Tell the floor of searching what was loaded, where it cannot read the product's tables."""

    def settle(self) -> None:
        """What the engine does by itself in quiet moments after many writes, now."""

    def size(self) -> dict[str, Any]:
        """`rows`, `text_bytes`, and `bytes` on disk of the record with every index, without logs."""
        ...

    def bare_search(self, user: User) -> Ask:
        """The parts of a search alone."""
        ...

    def bare_load(self, scope: Scope) -> Write | None:
        """Writes what the product has of an owner as fast as the driver can; None where there is no place for it."""
        ...

    def bare_write(self, scope: Scope, conversation: str, turn: str) -> Write | None:
        """Writes what the product wrote for a turn, with the driver alone, in one transaction as durable."""
        ...

    def close(self) -> None:
        """Release everything."""


def opened(store: str, model: MadeUp | None) -> threefold.Threefold:
    """As a service would: durable; but nothing expires, and no thread runs beside what is measured."""
    return threefold.open(store, embedder=model, ttl=None, durable=True, background=False)


class Sqlite:
    """The embedded engine. Floors: full text and an exact scan as in latency.py; bare inserts into the same tables."""

    name = "sqlite"

    def __init__(self, folder: Path, model: MadeUp) -> None:
        self.store, self._model = str(folder / "store"), model
        self.db = opened(self.store, model)
        self.backend, _ = open_backend(self.store)
        opened(str(folder / "floor"), None).close()
        self._read = connect(folder / "store" / "record.db")
        self._bare = connect(folder / "floor" / "record.db")
        self._words = connect(folder / "words.db", durable=False)
        self._words.execute("CREATE VIRTUAL TABLE words USING fts5 (text, content = '', tokenize = 'porter unicode61')")
        self._prefixes: dict[Scope, str] = {}
        self._rows = 0

    def feed(self, scope: Scope, turns: Sequence[Turn]) -> None:
        """See `Engine.feed`."""
        prefix = self._prefixes.setdefault(scope, f"{len(self._prefixes)}x")
        with self._words:
            for text in (text for turn in turns for text in messages_of(turn)):
                self._rows += 1
                scoped = " ".join([prefix + word for word in words_of(text)])
                self._words.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (self._rows, scoped))

    def settle(self) -> None:
        """See `Engine.settle`: the log goes into the file."""
        with closing(connect(Path(self.store) / "record.db")) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def size(self) -> dict[str, Any]:
        """See `Engine.size`."""
        ((rows, text),) = fetch(self._read, "SELECT count(*), sum(octet_length(text)) FROM rows")
        return {"rows": rows, "text_bytes": text, "bytes": (Path(self.store) / "record.db").stat().st_size}

    def bare_search(self, user: User) -> Ask:
        """See `Engine.bare_search`."""
        prefix = self._prefixes[user.scope]
        sql = "SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?"

        def ask(question: str) -> None:
            scores = user.vectors @ self._model.embed([question])[0]
            scores.argpartition(-min(DEPTH, len(scores)))[-DEPTH:].tolist()
            self._words.execute(sql, (match(question, prefix), DEPTH)).fetchall()

        return ask

    def bare_load(self, scope: Scope) -> Write:
        """See `Engine.bare_load`: one transaction, each statement prepared once."""
        (owner,) = self._owner(scope)
        mine = "WHERE owner = ?"
        return self._inserts(
            owner, {name: fetch(self._read, f"SELECT * FROM {name} {mine}", (owner,)) for name in _ALL}
        )

    def bare_write(self, scope: Scope, conversation: str, turn: str) -> Write:
        """See `Engine.bare_write`."""
        (owner,) = self._owner(scope)
        sql = """SELECT t.id, c.id FROM turns AS t JOIN conversations AS c ON c.id = t.conversation
                 WHERE c.owner = ? AND c.name = ? AND t.name = ?"""
        ((number, parent),) = fetch(self._read, sql, (owner, conversation, turn))
        where = {"turns": ("id", number), "conversations": ("id", parent), "rows": ("turn", number)}
        found = {
            name: fetch(self._read, f"SELECT * FROM {name} WHERE owner = ? AND {column} = ?", (owner, value))
            for name, (column, value) in where.items()
        }
        found["waiting"] = [(row[0], owner, 0, 0, None) for row in found["rows"]]
        return self._inserts(owner, found)

    def _owner(self, scope: Scope) -> tuple[int]:
        return fetch(self._read, "SELECT id FROM owners WHERE tenant = ? AND user = ?", (scope.tenant, scope.user))[0]

    def _inserts(self, owner: int, found: dict[str, list[tuple[Any, ...]]]) -> Write:
        words, vocabulary = [], dict[tuple[int, str], None]()
        for number, *_, text, _asks, _change, _vector_change in found["rows"]:
            terms = index_terms(text)
            words.append((number, term_text(owner, terms)))
            vocabulary.update(dict.fromkeys((owner, term) for term in terms))

        def write() -> None:
            self._bare.execute("BEGIN IMMEDIATE")
            for name, rows in found.items():
                if rows:
                    marks = ", ".join("?" * len(rows[0]))
                    self._bare.executemany(f"INSERT OR REPLACE INTO {name} VALUES ({marks})", rows)
            self._bare.executemany("INSERT INTO words (rowid, terms) VALUES (?, ?)", words)
            self._bare.executemany("INSERT OR IGNORE INTO vocabulary (owner, term) VALUES (?, ?)", list(vocabulary))
            self._bare.execute("COMMIT")

        return write

    def close(self) -> None:
        """See `Engine.close`."""
        self.db.close()
        self.backend.close()
        for db in (self._read, self._bare, self._words):
            db.close()


# Tables of the record that are copied as they are; full text and vocabulary are made from the rows.
_ALL = ("conversations", "turns", "rows", "vectors")

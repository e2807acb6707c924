"""How long a search takes, for users of several sizes in a store of many, beside what its parts cost alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import numpy as np
from _figures import Figure, clocked, compared
from _floor import match
from _store import progress, record
from _texts import Texts, messages_of, turns

import threefold
from threefold.model.turn import Turn

# Asks a question and drops the answer.
Ask = Callable[[str], object]

# The growth of the store is measured from so many rows of others.
FEW_OTHERS = 10_000
_ROWS_OF_AN_OTHER = 1000
_DEPTH = 200
_WARM_UP = 5
# What a context is made of beside the record.
_MEMORIES, _MESSAGES = 100, 60

_TARGETS = {1000: "p50 ≤ 2 × floor", 10_000: "p50 ≤ 2 × floor, p95 ≤ 25 ms", 100_000: "p50 ≤ 2 × floor, p95 ≤ 60 ms"}


@dataclass(frozen=True, slots=True)
class _User:
    """Somebody who searches: what they ask, and the floor's copy of their vectors."""

    name: str
    number: int
    rows: int
    questions: tuple[str, ...]
    vectors: np.ndarray | None


class Searching:
    """A store with the users to measure, and the floor's table with the same texts in the same scopes."""

    def __init__(self, db: threefold.Threefold, source: Texts, floor: Path) -> None:
        self._db, self._source = db, source
        self.users: list[_User] = []
        self._floor = apsw.Connection(str(floor))
        self._floor.execute("CREATE VIRTUAL TABLE words USING fts5 (text, content = '', tokenize = 'porter unicode61')")
        self._owners = 0
        self._rows = 0

    def figures(self, sizes: Sequence[int], others: int, asked: int) -> Iterator[Figure]:
        """Hybrid and lexical search for a user of each size, the largest first."""
        self.users = [self._add_user(size, asked) for size in sorted(sizes, reverse=True)]
        self._add_others(others)
        for user in self.users:
            if self._db.embedder is not None:
                took, floor = self._asked(user, self._product(user, {}), self._bare(user, hybrid=True))
                target = _TARGETS.get(user.rows, "p50 ≤ 2 × floor")
                yield compared(f"search, hybrid, {user.rows:,} rows", took, floor, target, others=others)
            lexical = {"lists": ("lexical",)}
            took, floor = self._asked(user, self._product(user, lexical), self._bare(user, hybrid=False))
            target = "p50 ≤ 10 ms" if user.rows == 100_000 else ""
            yield compared(f"search, lexical, {user.rows:,} rows", took, floor, target, others=others)
        for user in self.users:
            self._furnish(user)
            took, floor = self._asked(user, self._contexts(user), self._product(user, {}))
            target = "p95 ≤ 40 ms" if user.rows == 10_000 else ""
            yield compared(f"context, {user.rows:,} rows (floor: one search)", took, floor, target, others=others)

    def growth(self, smaller: Searching, few: int, many: int) -> Figure:
        """The largest user's search here, beside the same search in a store with fewer rows of others."""
        user = self.users[0]
        twin = smaller._add_user(user.rows, len(user.questions))
        smaller._add_others(few)
        took, base = self._asked(user, self._product(user, {}), smaller._product(twin, {}))
        name = f"growth, {few:,} to {many:,} rows of others"
        return compared(name, took, base, "ratio ≤ 1.3 (floor: fewer others)", rows=user.rows)

    def _add_user(self, rows: int, asked: int) -> _User:
        made = list(turns(self._source, rows))
        number = self._record(made)
        said = [text for turn in made for text in messages_of(turn)]
        questions = tuple(self._source.question(said) for _ in range(asked))
        vectors = None
        model = self._db.embedder
        if model is not None:
            vectors = np.concatenate([model.embed(said[i : i + 256]) for i in range(0, len(said), 256)])
        return _User(f"user {number}", number, rows, questions, vectors)

    def _add_others(self, rows: int) -> None:
        starts = range(0, rows, _ROWS_OF_AN_OTHER)
        for start in progress(starts, desc="others", unit="user") if rows else ():
            self._record(list(turns(self._source, min(_ROWS_OF_AN_OTHER, rows - start))))

    def _record(self, made: Sequence[Turn]) -> int:
        """Record an owner's turns on both sides, and embed them; the owner's number."""
        self._owners += 1
        with progress(total=len(made), desc=f"user {self._owners}", unit="turn", leave=False) as bar:
            record(self._db, f"user {self._owners}", made, bar)
        self._db.embed_pending()
        with self._floor:
            for turn in made:
                for text in messages_of(turn):
                    self._rows += 1
                    # As in the store, terms carry their owner, so that the query never counts another's rows.
                    scoped = " ".join(f"{self._prefix(self._owners)}{word}" for word in words_of(text))
                    self._floor.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (self._rows, scoped))
        return self._owners

    @staticmethod
    def _prefix(owner: int) -> str:
        return f"{owner}x"

    @staticmethod
    def _asked(user: _User, product: Ask, other: Ask) -> tuple[list[float], list[float]]:
        """Milliseconds of each question on both sides, asked in turns."""
        for question in user.questions[:_WARM_UP]:
            product(question)
            other(question)
        took, base = [], []
        for question in user.questions:
            took.append(clocked(partial(product, question)))
            base.append(clocked(partial(other, question)))
        return took, base

    def _furnish(self, user: _User) -> None:
        """Give a user what a context is made of beside the record: memories, a document, a thread."""
        handle = self._db.user(user.name)
        notes = [self._source.question([question]) for question in user.questions]
        for number, note in enumerate(notes * (_MEMORIES // len(notes) + 1)):
            if number < _MEMORIES:
                handle.mem.remember(f"note {number}: {note}"[:500])
        handle.mem.remember("is measuring", layer="working")
        handle.doc.ingest("\n\n".join(user.questions * 20), source="measured.md", chunk_tokens=64, overlap=8)
        thread = handle.thread("measured")
        for number in range(_MESSAGES):
            thread.add("user" if number % 2 else "assistant", user.questions[number % len(user.questions)])
        self._db.embed_pending()

    def _contexts(self, user: _User) -> Ask:
        handle = self._db.user(user.name)
        return lambda question: handle.context(question, thread="measured")

    def _product(self, user: _User, options: dict[str, Any]) -> Ask:
        handle = self._db.user(user.name)
        return lambda question: handle.conv.search(question, **options)

    def _bare(self, user: _User, hybrid: bool) -> Ask:
        model, vectors = self._db.embedder, user.vectors
        sql = "SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?"

        def ask(question: str) -> None:
            if hybrid and model is not None and vectors is not None:
                scores = vectors @ model.embed([question])[0]
                np.argpartition(-scores, min(_DEPTH, len(scores)) - 1)[:_DEPTH].tolist()
            self._floor.execute(sql, (match(question, self._prefix(user.number)), _DEPTH)).fetchall()

        return ask


def words_of(text: str) -> list[str]:
    """The words that the floor indexes."""
    return "".join(c if c.isalnum() else " " for c in text.lower()).split()

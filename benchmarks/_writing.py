"""How long recording, importing and embedding take, and how large the store becomes, beside the bare driver."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import apsw
from _figures import Figure, clocked, compared
from _metrics import percentile
from _store import open_store
from _texts import Texts, messages_of, turns

from threefold.model.turn import Turn

WRITERS = (8, 32)
_BATCH = 256
_WARM_UP = 10


class Bare:
    """The driver alone with the store's pragmas, every commit synced: a table of texts, or one with full text too."""

    def __init__(self, path: Path, indexed: bool = False) -> None:
        self._db = apsw.Connection(str(path))
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "temp_store = MEMORY"):
            self._db.execute(f"PRAGMA {pragma}").fetchall()
        self._db.execute(
            "CREATE TABLE rows (id INTEGER PRIMARY KEY, conversation TEXT, turn TEXT, at INTEGER, text TEXT)"
        )
        self._indexed = indexed
        if indexed:
            self._db.execute(
                "CREATE VIRTUAL TABLE words USING fts5 (text, content = '', tokenize = 'porter unicode61')"
            )

    def record(self, group: Sequence[Turn]) -> None:
        """The texts of some turns in one transaction."""
        self._db.execute("BEGIN IMMEDIATE")
        for turn in group:
            at = int(turn.started.timestamp())
            for text in messages_of(turn):
                values = (turn.conversation, turn.id, at, text)
                self._db.execute("INSERT INTO rows (conversation, turn, at, text) VALUES (?, ?, ?, ?)", values)
                if self._indexed:
                    number = self._db.last_insert_rowid()
                    self._db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (number, text))
        self._db.execute("COMMIT")

    def close(self) -> None:
        """Fold the log into the file."""
        self._db.close()


def recording(source: Texts, folder: Path, count: int) -> Iterator[Figure]:
    """One writer beside the bare driver, in turns; then several writers in one process."""
    made = list(turns(source, 2 * (count + _WARM_UP)))
    bare, indexed = Bare(folder / "bare.db"), Bare(folder / "indexed.db", indexed=True)
    took, floor, floor_indexed = [], [], []
    with open_store(str(folder / "one"), "none", durable=True) as db:
        handle = db.user("writer")
        for i, turn in enumerate(made):
            product = clocked(partial(handle.conv.record, turn))
            plain = clocked(partial(bare.record, (turn,)))
            full = clocked(partial(indexed.record, (turn,)))
            if i >= _WARM_UP:
                took.append(product)
                floor.append(plain)
                floor_indexed.append(full)
    more = {"floor_with_full_text_p50_ms": percentile(floor_indexed, 0.5)}
    yield compared("record, 1 writer, durable", took, floor, "p50 ≤ 1.5 × floor", **more)
    for writers in WRITERS:
        yield _concurrent(source, folder / f"writers-{writers}", writers, count, 1000 / percentile(floor, 0.5))


def _concurrent(source: Texts, folder: Path, writers: int, count: int, bare_rate: float) -> Figure:
    """`writers` threads that record their own conversations at once; every call returns when it is durable."""
    each = max(2 * count // writers, 10)
    work = [list(turns(source, 2 * each)) for _ in range(writers)]
    took: list[float] = []
    ready = threading.Barrier(writers + 1)
    with open_store(str(folder), "none", durable=True) as db:

        def write(number: int) -> None:
            handle = db.user(f"writer {number}")
            ready.wait()
            took.extend([clocked(partial(handle.conv.record, turn)) for turn in work[number]])

        threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
        for thread in threads:
            thread.start()
        ready.wait()
        start = time.perf_counter()
        for thread in threads:
            thread.join()
        elapsed = time.perf_counter() - start
    if len(took) != writers * each:
        raise SystemExit(f"record, {writers} writers: only {len(took)} of {writers * each} turns were acknowledged")
    rate = len(took) / elapsed
    more = {"turns_per_second": rate, "floor_turns_per_second": bare_rate}
    target = "≥ 1,000 turns/s" + (", p95 ≤ 50 ms" if writers == 32 else "")
    return Figure(
        f"record, {writers} writers, durable",
        len(took),
        percentile(took, 0.5),
        percentile(took, 0.95),
        1000 / bare_rate,
        rate / bare_rate,
        target,
        more,
    )


def importing(source: Texts, folder: Path, rows: int, model: str) -> Iterator[Figure]:
    """A JSONL history into a new store; then its size; then its vectors, and its size with them."""
    made = list(turns(source, rows))
    said = [text for turn in made for text in messages_of(turn)]
    history = folder / "history.jsonl"
    with history.open("w", encoding="utf-8") as file:
        for turn in made:
            for role, text in zip(("user", "assistant"), messages_of(turn), strict=True):
                line = {"conversation": turn.conversation, "turn": turn.id, "role": role, "content": text}
                file.write(json.dumps({**line, "at": turn.started.isoformat()}, ensure_ascii=False) + "\n")
    store = folder / "imported"
    with open_store(str(store), "none", durable=True) as db:
        seconds = clocked(lambda: db.user("reader").import_history([history])) / 1000
        kept = db.state().counts["rows"]
    if kept != len(said):
        raise SystemExit(f"import: {kept} rows of {len(said)} messages")
    bare = Bare(folder / "bare-import.db")
    groups = [made[i : i + _BATCH] for i in range(0, len(made), _BATCH)]
    bare_seconds = sum(clocked(partial(bare.record, group)) for group in groups) / 1000
    bare.close()
    rates: dict[str, Any] = {"messages_per_second": kept / seconds, "floor_messages_per_second": kept / bare_seconds}
    yield Figure("import, without vectors", kept, None, None, None, seconds / bare_seconds, "≥ 2,000 messages/s", rates)
    size = _size(store)
    text = sum(len(message.encode()) for message in said)
    yield Figure("store bytes / text bytes", kept, None, None, None, size / text, "≤ 3", {"text_bytes": text})
    if model != "none":
        yield from _embedding(store, said, size, model)


def _embedding(store: Path, said: Sequence[str], size: int, model: str) -> Iterator[Figure]:
    with open_store(str(store), model, durable=True) as db:
        embedder = db.embedder
        assert embedder is not None
        embedder.embed(said[:_BATCH])

        def alone() -> float:
            return clocked(lambda: [embedder.embed(said[i : i + _BATCH]) for i in range(0, len(said), _BATCH)])

        before = alone()
        done = clocked(db.embed_pending)
        floor = (before + alone()) / 2
        vectors = len(said) * embedder.dimensions * 2
    rates = {"rows_per_second": 1000 * len(said) / done, "floor_rows_per_second": 1000 * len(said) / floor}
    yield Figure("embedding, of its own speed", len(said), None, None, None, floor / done, "≥ 0.8", rates)
    grown = _size(store) - size
    more = {"vector_bytes": vectors}
    yield Figure("bytes for vectors / 2 per dimension", len(said), None, None, None, grown / vectors, "≤ 1", more)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())

"""The stores of LangGraph: vectors alone, a namespace for each user."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from _peer import Peer, Row

# A turn is put message by message, as the docs do it.
_FEW = 3


class InMemory(Peer):
    """`InMemoryStore`, which keeps nothing."""

    durable = "nothing"

    def open(self, folder: Path) -> None:  # noqa: ARG002 - there are no files
        """An empty store."""
        from langgraph.store.memory import InMemoryStore

        self._store: Any = InMemoryStore(index=self._index())

    def _index(self) -> Any:
        # `SqliteStore` knows `fields` by another name, and else embeds the whole value as JSON.
        fields = {"fields": ["text"], "text_fields": ["text"]}
        return {"dims": self.dimensions, "embed": lambda texts: self.embed(texts).tolist(), **fields}

    def add(self, rows: Sequence[Row]) -> None:
        """A put each, or one batch of them; equal texts apart, since the store in memory fails on them."""
        from langgraph.store.base import PutOp

        if len(rows) < _FEW:
            for row in rows:
                self._store.put(("messages", row.user), row.id, _value(row))
            return
        first = {row.said: row for row in reversed(rows)}
        self._store.batch([PutOp(("messages", row.user), row.id, _value(row)) for row in first.values()])
        self.add([row for row in rows if first[row.said] is not row])

    def search(self, text: str, user: str | None, limit: int) -> list[str]:
        """The nearest of the namespace."""
        place = ("messages", user) if user else ("messages",)
        return [item.key for item in self._store.search(place, query=text, limit=limit)]


class Sqlite(InMemory):
    """`SqliteStore`, with the vectors by sqlite-vec."""

    batch = 100
    durable = "power loss"

    def open(self, folder: Path) -> None:
        """A file with a vector index."""
        from langgraph.store.sqlite import SqliteStore

        folder.mkdir(parents=True, exist_ok=True)
        self._stack = ExitStack()
        self._store = self._stack.enter_context(
            SqliteStore.from_conn_string(str(folder / "store.db"), index=self._index())
        )
        self._store.setup()

    def close(self) -> None:
        """Close the file."""
        self._stack.close()


def _value(row: Row) -> dict[str, Any]:
    return {"text": row.said, "conversation": row.conversation, "role": row.role}

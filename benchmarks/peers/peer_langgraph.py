"""The stores of LangGraph: vectors alone, a namespace for each user."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from _peer import Peer, Row


class InMemory(Peer):
    """`InMemoryStore`, which keeps nothing."""

    durable = "nothing"

    def open(self, folder: Path) -> None:  # noqa: ARG002 - there are no files
        """An empty store."""
        from langgraph.store.memory import InMemoryStore

        self._store: Any = InMemoryStore(index=self._index())

    def _index(self) -> Any:
        return {"dims": self.dimensions, "embed": lambda texts: self.embed(texts).tolist(), "fields": ["text"]}

    def add(self, rows: Sequence[Row]) -> None:
        """One batch of puts."""
        from langgraph.store.base import PutOp

        self._store.batch([PutOp(("messages", row.user), row.id, {"text": row.said, "role": row.role}) for row in rows])

    def search(self, text: str, user: str, limit: int) -> list[str]:
        """The nearest of the namespace."""
        return [item.key for item in self._store.search(("messages", user), query=text, limit=limit)]


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

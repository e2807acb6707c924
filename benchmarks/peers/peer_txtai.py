"""txtai: hybrid of vectors and BM25 with content, filtered by SQL."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _peer import Peer, Row

_ALL = "SELECT id FROM txtai WHERE similar(:text)"
_OF_USER = f"{_ALL} AND user = :user"


class TxtAi(Peer):
    """One index with external vectors. Nothing is on the disk before it is saved."""

    batch = 100_000
    durable = "nothing until saved"

    def open(self, folder: Path) -> None:
        """Load the index where there is one."""
        from txtai import Embeddings

        embed = self.embed

        def transform(texts: Any) -> Any:
            vectors = embed(list(texts))
            # It divides by the length, which must not be 0.
            vectors[~vectors.any(axis=1)] = 1.0
            return vectors

        settings = {"method": "external", "transform": transform, "hybrid": True, "content": True}
        self._path = folder / "index"
        self._index: Any = Embeddings(**settings)
        self._rows = 0
        if self._path.exists():
            self._index.load(str(self._path), config={"transform": transform})
            self._rows = self._index.count()

    def add(self, rows: Sequence[Row]) -> None:
        """Build the index with the first rows, add the others."""
        found = [
            (row.id, {"text": row.said, "user": row.user, "conversation": row.conversation, "role": row.role})
            for row in rows
        ]
        if self._rows:
            self._index.upsert(found)
        else:
            self._index.index(found)
        self._rows += len(rows)

    def settle(self) -> None:
        """Save the index."""
        self._index.save(str(self._path))

    def search(self, text: str, user: str | None, limit: int) -> list[str]:
        """The user's among the ten times `limit` best of all, which is its default for a filter."""
        sql, values = (_OF_USER, {"text": text, "user": user}) if user else (_ALL, {"text": text})
        found = self._index.search(sql, limit, parameters=values)
        return [row["id"] for row in found]

    def close(self) -> None:
        """Close the database."""
        self._index.close()

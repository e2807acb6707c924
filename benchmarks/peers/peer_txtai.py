"""txtai: hybrid of vectors and BM25 with content, filtered by SQL."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _peer import Peer, Row

_SQL = "SELECT id FROM txtai WHERE similar(:text, :candidates) AND user = :user"


class TxtAi(Peer):
    """One index with external vectors. Nothing is on the disk before it is saved."""

    batch = 100_000
    durable = "nothing until saved"

    def open(self, folder: Path) -> None:
        """Load the index where there is one."""
        from txtai import Embeddings

        embed = self.embed

        def transform(texts: Any) -> Any:
            return embed(list(texts))

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

    def search(self, text: str, user: str, limit: int) -> list[str]:
        """The filter applies to candidates, so there must be enough of them."""
        values = {"text": text, "user": user, "candidates": self._candidates(limit)}
        return [row["id"] for row in self._index.search(_SQL, limit, parameters=values)]

    def _candidates(self, limit: int) -> int:
        return min(self._rows, 100 * limit)

    def close(self) -> None:
        """Close the database."""
        self._index.close()

"""LanceDB: hybrid search by reciprocal rank fusion, full text by its own index, an index over users."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _peer import Peer, Row


class LanceDb(Peer):
    """One table; its embedding function makes the vectors. No index over vectors, as advised below 100,000 rows."""

    batch = 5000
    durable = "kill"

    def open(self, folder: Path) -> None:
        """Connect, and open the table or make it."""
        # It warns with every search.
        os.environ.setdefault("LANCEDB_LOG", "error")
        import lancedb
        from lancedb.rerankers import RRFReranker

        self._schema = self._made_schema()
        db = lancedb.connect(folder)
        names = list(db.list_tables().tables)
        self._rows: Any = (
            db.open_table("messages") if "messages" in names else db.create_table("messages", schema=self._schema)
        )
        self._indexed = bool(names)
        self._reranker = RRFReranker()

    def _made_schema(self) -> Any:
        from lancedb.embeddings import TextEmbeddingFunction, register
        from lancedb.pydantic import LanceModel, Vector

        embed, dimensions = self.embed, self.dimensions

        @register("bundled")
        class Bundled(TextEmbeddingFunction):  # type: ignore[misc]
            def generate_embeddings(self, texts: Any) -> list[Any]:
                return list(embed(list(texts)))

            def ndims(self) -> int:
                return dimensions

        model = Bundled.create()

        class Message(LanceModel):  # type: ignore[misc]
            id: str
            user: str
            conversation: str
            role: str
            text: str = model.SourceField()
            vector: Vector(dimensions) = model.VectorField()  # type: ignore[valid-type]

        return Message

    def add(self, rows: Sequence[Row]) -> None:
        """Rows of the table."""
        self._rows.add(
            [{"id": r.id, "user": r.user, "conversation": r.conversation, "role": r.role, "text": r.said} for r in rows]
        )

    def settle(self) -> None:
        """Build the indexes, or bring them up to date."""
        if self._indexed:
            self._rows.optimize()
            return
        self._rows.create_fts_index("text")
        self._rows.create_scalar_index("user", index_type="BITMAP")
        self._indexed = True

    def search(self, text: str, user: str | None, limit: int) -> list[str]:
        """Both lists among the user's rows, fused."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            query = self._rows.search(text, query_type="hybrid")
            if user:
                query = query.where(f"user = '{user}'", prefilter=True)
            found = query.rerank(reranker=self._reranker).limit(limit).select(["id"]).to_list()
        return [row["id"] for row in found]

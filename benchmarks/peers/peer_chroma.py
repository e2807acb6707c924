"""Chroma on the disk: vectors alone, since its hybrid search is not there in local mode."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _peer import Peer, Row


class Chroma(Peer):
    """One collection, cosine, each row with its user as metadata."""

    durable = "power loss"

    def open(self, folder: Path) -> None:
        """A persistent client with an embedding function of our own."""
        import chromadb
        from chromadb.config import Settings

        self._client = chromadb.PersistentClient(str(folder), Settings(anonymized_telemetry=False))
        self._rows = self._client.get_or_create_collection(
            "messages", embedding_function=self._function(), configuration={"hnsw": {"space": "cosine"}}
        )

    def _function(self) -> Any:
        from chromadb import EmbeddingFunction
        from chromadb.utils.embedding_functions import register_embedding_function

        embed = self.embed

        @register_embedding_function
        class Bundled(EmbeddingFunction):  # type: ignore[misc, unused-ignore]
            def __init__(self) -> None: ...

            def __call__(self, input: Any) -> Any:  # noqa: A002 - the name is theirs
                return list(embed(input))

            @staticmethod
            def name() -> str:
                return "bundled"

            @staticmethod
            def build_from_config(config: dict[str, Any]) -> Any:  # noqa: ARG004
                return Bundled()

            def get_config(self) -> dict[str, Any]:
                return {}

        return Bundled()

    def add(self, rows: Sequence[Row]) -> None:
        """Documents with ids and metadata."""
        self._rows.add(
            ids=[row.id for row in rows],
            documents=[row.said for row in rows],
            metadatas=[{"user": row.user, "conversation": row.conversation, "role": row.role} for row in rows],
        )

    def search(self, text: str, user: str | None, limit: int) -> list[str]:
        """The nearest of the user."""
        where: Any = {"user": user} if user else None
        found = self._rows.query(query_texts=[text], n_results=limit, where=where)
        return list(found["ids"][0])

    def close(self) -> None:
        """Stop the client."""
        self._client.close()

"""mem0 without a language model: messages are kept as they are, in its default store on the disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _peer import ME, Peer, Row

# What the keyword encoder downloads when it is first used: the English stop words of NLTK.
_STOP = """
i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it its
itself they them their theirs themselves what which who whom this that these those am is are was were be been being
have has had having do does did doing a an the and but if or because as until while of at by for with about against
between into through during before after above below to from up down in out on off over under again further then once
here there when where why how all any both each few more most other some such no nor not only own same so than too
very s t can will just don should now d ll m o re ve y ain aren couldn didn doesn hadn hasn haven isn ma mightn mustn
needn shan shouldn wasn weren won wouldn
"""


class Vectors(Peer):
    """As `pip install mem0ai` gives it: vectors alone."""

    batch = 100
    hurries = True
    durable = "power loss"

    def open(self, folder: Path) -> None:
        """Qdrant in a folder, and a history beside it."""
        os.environ["MEM0_TELEMETRY"] = "False"
        os.environ["MEM0_DIR"] = str(folder)
        folder.mkdir(parents=True, exist_ok=True)
        from mem0 import Memory

        self._register()
        store = {"path": str(folder / "qdrant"), "embedding_model_dims": self.dimensions, "on_disk": True}
        self._memory: Any = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "embedder": {"provider": "langchain", "config": {}},
                # Never asked, but it must be named.
                "llm": {"provider": "openai", "config": {"api_key": "none"}},
                "history_db_path": str(folder / "history.db"),
            }
        )

    def _register(self) -> None:
        """Ours in the place of a provider, so that LangChain is not needed."""
        from mem0.embeddings.base import EmbeddingBase
        from mem0.utils.factory import EmbedderFactory

        embed = self.embed

        class Bundled(EmbeddingBase):  # type: ignore[misc]
            def embed(self, text: str, memory_action: Any = None) -> list[float]:  # noqa: ARG002
                return embed([text])[0].tolist()  # type: ignore[no-any-return]

            def embed_batch(self, texts: list[str], memory_action: Any = "add") -> list[list[float]]:  # noqa: ARG002
                return embed(texts).tolist()  # type: ignore[no-any-return]

        globals()["Bundled"] = Bundled
        EmbedderFactory.provider_to_class["langchain"] = f"{__name__}.Bundled"

    def add(self, rows: Sequence[Row]) -> None:
        """The messages of a turn; there is no call for turns of several times."""
        start = 0
        while start < len(rows):
            end = start + 1
            while end < len(rows) and rows[end].turn == rows[start].turn:
                end += 1
            self._turn(rows[start:end])
            start = end

    def _turn(self, rows: Sequence[Row]) -> None:
        first = rows[0]
        messages = [{"role": row.role, "content": row.said} for row in rows]
        metadata = {"conversation": first.conversation, "turn": first.turn}
        self._memory.add(messages, user_id=first.user, metadata=metadata, infer=False)

    def hurry(self) -> None:
        """Not a switch of its own: both of its SQLite files stop to wait for the disk."""
        self._synchronous("OFF")

    def calm(self) -> None:
        """The default of SQLite."""
        self._synchronous("FULL")

    def _synchronous(self, mode: str) -> None:
        local = self._memory.vector_store.client._client  # noqa: SLF001 - it has no setting for this
        for connection in (local.collections["mem0"].storage.storage, self._memory.db.connection):
            connection.execute(f"PRAGMA synchronous = {mode}")

    def search(self, text: str, user: str | None, limit: int) -> list[str]:
        """All signals that the store has; no threshold, since this model's likenesses are low."""
        user = user or ME
        found = self._memory.search(text, filters={"user_id": user}, top_k=limit, threshold=0.0)["results"]
        return ["|".join((user, m["metadata"]["conversation"], m["metadata"]["turn"], m["role"])) for m in found]

    def close(self) -> None:
        """Release the files."""
        self._memory.close()


class Hybrid(Vectors):
    """With fastembed, as its docs advise: BM25 beside the vectors."""

    def open(self, folder: Path) -> None:
        """As above, and the encoder, which would otherwise be fetched from a hub at first use."""
        super().open(folder)
        from fastembed import SparseTextEmbedding

        with tempfile.TemporaryDirectory() as made:
            (Path(made) / "english.txt").write_text("\n".join(_STOP.split()), "utf-8")
            encoder = SparseTextEmbedding(model_name="Qdrant/bm25", specific_model_path=made)
        self._memory.vector_store._bm25_encoder = encoder  # noqa: SLF001 - no other way without a network

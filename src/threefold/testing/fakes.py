"""Small deterministic stand-ins for models and clocks. Never for a database, file system or tokenizer."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from threefold.errors import Forbidden, NotFound, Unavailable
from threefold.model.resolved import Resolved, Shown
from threefold.text.terms import index_terms

if TYPE_CHECKING:
    import numpy as np


class HashEmbedder:
    """Words hashed to directions: texts that share words are near. No model, any number of dimensions."""

    def __init__(self, dimensions: int = 64, name: str = "hash-1") -> None:
        self.name, self.dimensions = name, dimensions
        self.ready = True

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """See `Embedder.embed`."""
        import numpy as np

        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for i, text in enumerate(texts):
            for term in index_terms(text):
                digest = hashlib.blake2b(term.encode(), digest_size=8).digest()
                vectors[i, int.from_bytes(digest[:4], "big") % self.dimensions] += 1.0 if digest[4] % 2 else -1.0
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.where(lengths > 0, lengths, 1.0)


class FailingEmbedder(HashEmbedder):
    """Fails for texts that contain `poison`, and for all while `down`."""

    def __init__(self, poison: str = "poison", dimensions: int = 64) -> None:
        super().__init__(dimensions, "failing-1")
        self.poison, self.down = poison, False

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """See `Embedder.embed`.

        Raises:
            Unavailable: as the class says.
        """
        if self.down or any(self.poison in text for text in texts):
            raise Unavailable("the embedder is down")
        return super().embed(texts)


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self, at: datetime = datetime(2026, 11, 29, 12, tzinfo=UTC)) -> None:
        self.at = at

    def __call__(self) -> datetime:
        """The moment at which it stands."""
        return self.at

    def advance(self, by: timedelta) -> None:
        """Move the clock."""
        self.at += by


class ShownObjects:
    """`Objects` over what it is told: `shown` has what each reference shows, and may be changed at any time.

    What is not in it is gone. `asked` counts how often something was described.
    """

    def __init__(self, shown: Mapping[str, Shown] | None = None) -> None:
        self.shown = dict(shown or {})
        self.asked = 0

    def put(self, ref: str, title: str, text: str = "", kind: str = "thing") -> str:
        """Have a reference show something from now on; returns the reference."""
        self.shown[ref] = Shown(ref, kind, title, text)
        return ref

    def describe(self, refs: Sequence[str], size: int = 300) -> Mapping[str, Shown]:
        """See `Objects.describe`."""
        self.asked += 1
        gone = {ref: Shown(ref, standing="gone", why="it is not there") for ref in refs if ref not in self.shown}
        found = {ref: self.shown[ref] for ref in refs if ref in self.shown}
        return gone | {ref: replace(shown, text=shown.text[:size]) for ref, shown in found.items()}

    def resolve(self, ref: str) -> Resolved:
        """See `Objects.resolve`.

        Raises:
            NotFound: it is not there. Forbidden: it is shown as forbidden.
        """
        found = self.shown.get(ref)
        if found is None or found.standing == "gone":
            raise NotFound(f"{ref}: it is not there")
        if found.standing == "forbidden":
            raise Forbidden(f"{ref}: {found.why or 'it is not yours to see'}")
        return Resolved(ref, found.kind, found.as_json(), found.text)

"""Asking an embedder: whatever goes wrong in it becomes one of our errors, and what it gives is checked."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from threefold.errors import ThreefoldError, Unavailable
from threefold.ports import Embedder

if TYPE_CHECKING:
    import numpy as np


def embed(embedder: Embedder, texts: Sequence[str]) -> np.ndarray:
    """Vectors of `texts`: float32 of shape (len(texts), dimensions), all numbers finite and exact in half precision.

    Stores keep half precision; with questions rounded alike, every store computes with the same numbers.

    Raises:
        ThreefoldError: the embedder failed, or gave something else.
    """
    import numpy as np

    try:
        vectors = embedder.embed(texts)
    except ThreefoldError:
        raise
    except Exception as error:
        # A model is foreign code and may raise anything; nothing is swallowed, it becomes an error of our tree.
        raise Unavailable(f"{embedder.name!r} failed: {type(error).__name__}: {error}") from error
    shape = getattr(vectors, "shape", None)
    if shape != (len(texts), embedder.dimensions):
        raise ThreefoldError(
            f"{embedder.name!r} gave shape {shape} for {len(texts)} texts of {embedder.dimensions} dimensions"
        )
    with np.errstate(over="ignore"):
        rounded = np.asarray(vectors, dtype=np.float16).astype(np.float32)
    if not np.isfinite(rounded).all():
        raise ThreefoldError(f"{embedder.name!r} gave numbers that are not finite")
    return rounded


class Questions:
    """Vectors of questions, the last few remembered: a context asks one question of many places."""

    def __init__(self, embedder: Embedder | None, kept: int = 16) -> None:
        self._embedder, self._kept = embedder, kept
        self._found: OrderedDict[str, np.ndarray] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, text: str) -> np.ndarray:
        """The vector of a question: float32 of shape (dimensions,).

        Raises:
            ThreefoldError: there is no embedder, or it failed.
        """
        if self._embedder is None:
            raise ThreefoldError("the store was opened without an embedder")
        with self._lock:
            if text in self._found:
                self._found.move_to_end(text)
                return self._found[text]
        vector: np.ndarray = embed(self._embedder, [text])[0]
        with self._lock:
            self._found[text] = vector
            while len(self._found) > self._kept:
                self._found.popitem(last=False)
        return vector


# Everyday sentences that have nothing to do with each other.
UNRELATED: Final = (
    "The bakery on the corner closes at noon on Sundays.",
    "Our server ran out of disk space during the backup.",
    "She learned to play the cello when she was nine.",
    "How many calories are in a bowl of lentil soup?",
    "The treaty was signed after three weeks of talks.",
    "Please move my dentist appointment to Thursday.",
    "Photosynthesis turns light into chemical energy.",
    "He scored twice in the second half of the match.",
    "Rents in the old town have doubled since last year.",
    "I prefer dark roast coffee without sugar.",
    "Function pointers confuse most beginners in C.",
    "A storm delayed every ferry to the island.",
)


class Background:
    """The cosine that an embedder gives to texts which have nothing to do with each other: some give 0, others 0.7.

    Measured once, when it is first asked for.
    """

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder, self._found = embedder, None if embedder is not None else 0.0

    def __call__(self) -> float:
        """The mean over pairs of sentences, from 0 to below 1.

        Raises:
            ThreefoldError: the embedder failed.
        """
        if self._found is None and self._embedder is not None:
            vectors = embed(self._embedder, UNRELATED)
            pairs = len(UNRELATED) * (len(UNRELATED) - 1)
            whole = float(((vectors @ vectors.T).sum() - (vectors * vectors).sum()) / pairs)
            self._found = min(max(whole, 0.0), 0.99)
        return self._found or 0.0

"""Asking an embedder: whatever goes wrong in it becomes one of our errors, and what it gives is checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

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

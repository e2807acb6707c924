"""Long texts in parts: cut where a model's window ends, and put together again from the parts' vectors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from threefold.embedders.bundled import slices

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

_UNPRINTABLE: Final = re.compile("[\ud800-\udfff\x00]")


def clean(text: str) -> str:
    """`text` as UTF-8 can carry it: halves of characters and NUL, which many servers refuse, become spaces."""
    return _UNPRINTABLE.sub(" ", text)


def parts(text: str, window: int) -> list[str]:
    """`text` in parts of at most `window` characters, cut at a space where there is one; none of blank text."""
    return [part for part in slices(clean(text), window) if part.strip()]


def halves(text: str) -> list[str]:
    """`text` in two, near the middle."""
    return parts(text, max(1, (len(text) + 1) // 2))


def directions(vectors: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Rows of length 1, in float64; rows of zeros stay."""
    import numpy as np

    rows = np.asarray(vectors, dtype=np.float64)
    # The largest number first, or the squares of very small or large ones vanish or overflow.
    rows = rows / _or_one(np.abs(rows).max(axis=1, keepdims=True, initial=0.0))
    return rows / _or_one(np.sqrt((rows * rows).sum(axis=1, keepdims=True)))


def _or_one(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    import numpy as np

    return np.where(values > 0, values, 1.0)


def gathered(
    vectors: npt.ArrayLike, owners: Sequence[int], weights: Sequence[float], count: int
) -> npt.NDArray[np.float32]:
    """One row for each of `count` texts: the mean of its parts' directions by weight, of length 1; 0 without parts.

    `vectors` is (parts, dimensions), `owners` says whose part each is, in ascending order.
    """
    import numpy as np

    rows = directions(vectors)
    total = np.zeros((count, rows.shape[1]))
    for row, owner, weight in zip(rows, owners, weights, strict=True):
        total[owner] += weight * row
    return directions(total).astype(np.float32)

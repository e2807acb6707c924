"""A forest of regression trees, evaluated with numpy alone. Pure.

Every tree has at most 16 leaves. As in QuickScorer (Lucchese et al. 2015, https://doi.org/10.1145/2766462.2767733) each
test that fails rules out the leaves of its left side: per feature, a table holds for every interval between thresholds
which leaves of each tree are still possible. A row's leaf is the first that no feature rules out.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MAX_LEAVES: Final = 16


class Forest(NamedTuple):
    """`features` names the columns; `tables` has for each its thresholds (ascending) and masks (intervals, trees)."""

    features: tuple[str, ...]
    tables: tuple[tuple[npt.NDArray[np.float64], npt.NDArray[np.uint16]], ...]
    leaves: npt.NDArray[np.float64]

    def score(self, columns: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The sum of the trees' leaves for each row of `columns`, float64 of shape (rows, features)."""
        import numpy as np

        trees = self.leaves.shape[0]
        possible = np.full((len(columns), trees), 0xFFFF, dtype=np.uint16)
        left = np.empty_like(possible)
        for (thresholds, masks), column in zip(self.tables, columns.T, strict=True):
            if len(thresholds):
                # A test asks whether the value is at most its threshold; it fails where the threshold is below.
                np.take(masks, thresholds.searchsorted(column, side="left"), axis=0, out=left, mode="clip")
                possible &= left
        first = possible & (~possible + np.uint16(1))
        leaf = _positions()[first]
        total: npt.NDArray[np.float64] = self.leaves[np.arange(trees), leaf].sum(axis=1)
        return total


@cache
def _positions() -> npt.NDArray[np.uint8]:
    import numpy as np

    table = np.zeros(1 << MAX_LEAVES, dtype=np.uint8)
    for leaf in range(MAX_LEAVES):
        table[1 << leaf] = leaf
    return table


def forest_of(written: dict[str, Any]) -> Forest:
    """A forest from its written form.

    `features` are the columns' names; each of `trees` has `tests`, a list of [feature, threshold, first, last] where a
    value above the threshold rules out the leaves first to last, and `leaves`, their values from left to right.

    Raises:
        ValueError, KeyError, TypeError, IndexError: it is no forest.
    """
    import numpy as np

    names, trees = tuple(written["features"]), written["trees"]
    leaves = np.zeros((len(trees), MAX_LEAVES))
    tests: list[list[tuple[float, int, int]]] = [[] for _ in names]
    for number, tree in enumerate(trees):
        last_leaf = len(tree["leaves"]) - 1
        leaves[number, : last_leaf + 1] = tree["leaves"]
        for feature, threshold, first, last in tree["tests"]:
            if not (0 <= feature < len(names) and 0 <= first <= last < last_leaf and math.isfinite(threshold)):
                raise ValueError(f"tree {number} has a test that fits no tree: {feature, threshold, first, last}")
            ruled_out = (1 << last + 1) - (1 << first)
            tests[feature].append((threshold, number, 0xFFFF & ~ruled_out))
    if not (leaves.shape[0] and np.isfinite(leaves).all()):
        raise ValueError("there are no trees, or leaves that are no numbers")
    return Forest(names, tuple(_table(sorted(of), len(trees)) for of in tests), leaves)


def _table(tests: list[tuple[float, int, int]], trees: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint16]]:
    import numpy as np

    thresholds = sorted({threshold for threshold, _, _ in tests})
    masks = np.full((len(thresholds) + 1, trees), 0xFFFF, dtype=np.uint16)
    place = {threshold: i for i, threshold in enumerate(thresholds, 1)}
    for threshold, tree, kept in tests:
        masks[place[threshold], tree] &= kept
    return np.array(thresholds), np.bitwise_and.accumulate(masks, axis=0)

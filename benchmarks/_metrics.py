"""Strict retrieval metrics of one ranked list against its gold items, and their means. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

CUTS = (1, 5, 10)


def distinct(items: Iterable[str]) -> list[str]:
    """The items in order, each where it came first."""
    return list(dict.fromkeys(items))


def measure(ranked: Sequence[str], gold: Collection[str]) -> dict[str, float]:
    """`any@k` (a gold item in the first k), `all@k` (every one), `rec@k` (share of gold), `mrr`, `ndcg@10`.

    `ranked` are distinct items, best first. `mrr` is one over the rank of the first gold item in all of `ranked`, 0
    without one. `ndcg@10` compares with the ideal order of all gold items, not only of those that were retrieved.
    """
    wanted = set(gold)
    if not wanted:
        raise ValueError("a question without gold items cannot be measured")
    values: dict[str, float] = {}
    for k in CUTS:
        found = len(wanted.intersection(ranked[:k]))
        values[f"any@{k}"] = float(found > 0)
        values[f"all@{k}"] = float(found == len(wanted))
        values[f"rec@{k}"] = found / len(wanted)
    values["mrr"] = next((1 / rank for rank, item in enumerate(ranked, 1) if item in wanted), 0.0)
    gain = sum(_discount(rank) for rank, item in enumerate(ranked[:10], 1) if item in wanted)
    ideal = sum(_discount(rank) for rank in range(1, min(10, len(wanted)) + 1))
    values["ndcg@10"] = gain / ideal
    return values


def _discount(rank: int) -> float:
    return 1 / math.log2(rank + 1)


def mean(measured: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each metric over questions, to four decimals."""
    return {name: round(math.fsum(m[name] for m in measured) / len(measured), 4) for name in measured[0]}


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of the values do not exceed, linear between neighbours; 0.5 is the median."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)

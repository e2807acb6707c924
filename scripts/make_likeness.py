"""Make `src/threefold/realms/mem/likeness.json`: learn from the tuned half of the pairs when two notes say the same.

    python scripts/make_likeness.py [--validate]

A logistic regression over `FEATURES`, saturated, with weights that are not positive: two weights and an offset, learned
from pairs without a conflict. The threshold is the lowest likelihood at which models that did not see a language merge
its pairs with the precision asked for; `--validate` prints what they do. Nothing is read of the half that judges.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from _pairs import Pair, pairs  # noqa: E402

from threefold.realms.mem.leftover import Seen, seen_of  # noqa: E402
from threefold.realms.mem.likeness import FEATURES, FILE, note_of, saturated  # noqa: E402

PRECISION, RIDGE, STEPS = 0.97, 1e-4, 5_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Learn, validate, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--validate", action="store_true", help="print what models do with a language they never saw")
    options = parser.parse_args(arguments)
    told = pairs("tuned")
    seen = [seen_of(note_of(pair.first), note_of(pair.second)) for pair in told]
    x, y = _columns(seen), np.array([pair.relation == "same" for pair in told])
    free = np.array([not one.conflict for one in seen])
    unseen = _unseen(told, x, y, free)
    threshold = _threshold(unseen, y)
    if options.validate:
        _print(told, unseen, y, threshold)
    *weights, offset = _fit(x[free], y[free])
    written = {
        "trained_on": "benchmarks/data/pairs, the tuned half (written for this project)",
        "weights": {name: round(float(weight), 4) for name, weight in zip(FEATURES, weights, strict=True)},
        "offset": round(float(offset), 4),
        "threshold": threshold,
    }
    FILE.write_text(json.dumps(written, indent=2) + "\n", "utf-8")
    return 0


def _columns(seen: Sequence[Seen]) -> Any:
    return np.array([[*(saturated(getattr(one, name)) for name in FEATURES), 1.0] for one in seen])


def _fit(x: Any, y: Any) -> Any:
    """Weights, of which all but the last are held at 0 or below, by projected gradient descent (Adam)."""
    weights, mean, square = np.zeros(x.shape[1]), np.zeros(x.shape[1]), np.zeros(x.shape[1])
    ridge = np.array([RIDGE] * (x.shape[1] - 1) + [0.0])
    for step in range(1, STEPS + 1):
        gradient = x.T @ (_likely(x, weights) - y) / len(y) + ridge * weights
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        weights -= 0.05 * mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-9)
        weights[:-1] = np.minimum(weights[:-1], 0.0)
    return weights


def _likely(x: Any, weights: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-(x @ weights)))


def _unseen(told: Sequence[Pair], x: Any, y: Any, free: Any) -> Any:
    """The likelihood of each pair by a model that saw no pair of its language; 0 where there is a conflict."""
    languages = np.array([pair.language for pair in told])
    likely = np.zeros(len(y))
    for language in sorted(set(languages)):
        own = languages == language
        likely[own] = _likely(x[own], _fit(x[free & ~own], y[free & ~own]))
    return np.where(free, likely, 0.0)


def _threshold(likely: Any, y: Any) -> float:
    for threshold in np.arange(0.5, 0.9, 0.01):
        merged = likely >= threshold
        if merged.any() and y[merged].mean() >= PRECISION:
            return round(float(threshold), 2)
    raise SystemExit("no threshold gives the precision asked for")


def _print(told: Sequence[Pair], likely: Any, y: Any, threshold: float) -> None:
    languages = np.array([pair.language for pair in told])
    for group in ("all", *sorted(set(languages))):
        own = (languages == group) | (group == "all")
        merged = own & (likely >= threshold)
        precision = float(y[merged].mean()) if merged.any() else 1.0
        metrics = {"precision": round(precision, 4), "recall": round(float(y[merged].sum() / y[own].sum()), 4)}
        print(json.dumps({"how": "language never seen", "group": group, "n": int(own.sum()), "metrics": metrics}))


if __name__ == "__main__":
    raise SystemExit(main())

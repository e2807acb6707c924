"""Make `src/threefold/realms/mem/likeness.json`: learn from `benchmarks/data/pairs` when two notes say the same.

    python scripts/make_likeness.py

A logistic regression over `FEATURES`, saturated, with weights that are not positive: two weights and an offset, learned
from pairs without a conflict. The threshold is the lowest likelihood with the precision asked for. What such models do
with pairs they did not learn from: `python benchmarks/reconcile.py --development`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from _pairs import learned, pairs, seen  # noqa: E402

from threefold.realms.mem.likeness import FEATURES, FILE  # noqa: E402


def main() -> int:
    """Learn and write."""
    told = pairs()
    model = learned(told, seen(told))
    written = {
        "trained_on": "benchmarks/data/pairs, but for those in `judged` (written for this project)",
        "weights": dict(zip(FEATURES, model.weights, strict=True)),
        "offset": model.offset,
        "threshold": model.threshold,
    }
    FILE.write_text(json.dumps(written, indent=2) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

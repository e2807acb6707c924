"""Which notes would be merged: precision and recall of `same` over labelled pairs, one JSON line for each group.

    python benchmarks/reconcile.py [--half tuned] [--relations] [--embedder none]

The half that judges was not used to make anything; `--half tuned` measures the other. `--relations` prints, for each
relation, how often each was told instead.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from _pairs import HALVES, Pair, pairs

from threefold.realms.mem.likeness import compare, note_of

RELATIONS = ("same", "refines", "contradicts", "different")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = _options(arguments)
    told = [
        (pair, compare(note_of(pair.first), note_of(pair.second)).relation)
        for pair in pairs(options.half)
    ]
    for line in _relations(told) if options.relations else _merged(told):
        print(json.dumps(line, ensure_ascii=False), flush=True)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--half", default="judged", choices=HALVES, help="which pairs (judged is the default)")
    parser.add_argument("--relations", action="store_true", help="print how relations are confused")
    return parser.parse_args(arguments)


def _merged(told: Sequence[tuple[Pair, str]]) -> Iterator[dict[str, Any]]:
    for group in ("all", *sorted({pair.language for pair, _ in told})):
        own = [(pair.relation, relation) for pair, relation in told if group in ("all", pair.language)]
        merged = sum(relation == "same" for _, relation in own)
        right = sum(pair == relation == "same" for pair, relation in own)
        metrics = {
            "precision": right / merged if merged else 1.0,
            "recall": right / sum(was == "same" for was, _ in own),
        }
        yield {"unit": "pair", "group": group, "n": len(own), "metrics": metrics}


def _relations(told: Sequence[tuple[Pair, str]]) -> Iterator[dict[str, Any]]:
    for was in RELATIONS:
        counts = Counter(relation for pair, relation in told if pair.relation == was)
        yield {"relation": was, "n": counts.total(), "told": {relation: counts[relation] for relation in RELATIONS}}


if __name__ == "__main__":
    raise SystemExit(main())

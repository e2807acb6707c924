"""Which notes would be merged: precision and recall of `same` over labelled pairs, one JSON line for each group.

    python benchmarks/reconcile.py [--pairs FOLDER | --development | --embedder NAME] [--relations]

By default the pairs of `data/pairs/judged`, of which nothing was made; with `--pairs` those of any folder. With
`--development` the pairs that all was made with, each by weights that were learned without its language, then without
its half. With `--embedder` it prints instead what the vectors of an embedder would add (`_vectors.added`), over the
pairs that all was made with and tuned on: the decision itself looks at none. `--relations` prints, for each relation,
how often each was told instead.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from _pairs import JUDGED, TUNED, Pair, crossed, pairs, seen
from _vectors import added

from threefold.embedders.opening import NAMED, open_embedder
from threefold.realms.mem.likeness import compare, note_of

RELATIONS = ("same", "refines", "contradicts", "different")
Told = Sequence[tuple[Pair, str]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = _options(arguments)
    if options.embedder is not None:
        told, embedder = [*pairs(), *pairs(TUNED)], open_embedder(options.embedder)
        line = {"embedder": embedder.name, "n": len(told), "metrics": added(told, seen(told), embedder)}
        print(json.dumps(line), flush=True)
        return 0
    for how, told in _told(options):
        for line in _relations(told) if options.relations else _merged(told):
            print(json.dumps({**how, **line}, ensure_ascii=False), flush=True)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--pairs", type=Path, default=JUDGED, help="a folder of pairs (those that judge are the default)"
    )
    which.add_argument("--development", action="store_true", help="the pairs it was made with, cross-validated")
    which.add_argument("--embedder", choices=NAMED, help="print what its vectors would add")
    parser.add_argument("--relations", action="store_true", help="print how relations are confused")
    options = parser.parse_args(arguments)
    if not options.development and not any(options.pairs.glob("*.jsonl")):
        parser.error(f"{options.pairs} has no pairs: name a folder with --pairs, or measure with --development")
    return options


def _told(options: argparse.Namespace) -> Iterator[tuple[dict[str, str], Told]]:
    """How it was measured, and each pair with the relation it was told to have."""
    if not options.development:
        told = pairs(options.pairs)
        yield {}, [(pair, compare(note_of(pair.first), note_of(pair.second)).relation) for pair in told]
        return
    told = pairs()
    found = seen(told)
    for by in ("language", "half"):
        yield {"learned": f"without its {by}"}, list(zip(told, crossed(told, found, by), strict=True))


def _merged(told: Told) -> Iterator[dict[str, Any]]:
    for group in ("all", *sorted({pair.language for pair, _ in told})):
        own = [(pair.relation, relation) for pair, relation in told if group in ("all", pair.language)]
        merged = sum(relation == "same" for _, relation in own)
        right = sum(pair == relation == "same" for pair, relation in own)
        metrics = {
            "precision": right / merged if merged else 1.0,
            "recall": right / max(sum(was == "same" for was, _ in own), 1),
        }
        yield {"unit": "pair", "group": group, "n": len(own), "metrics": metrics}


def _relations(told: Told) -> Iterator[dict[str, Any]]:
    for was in RELATIONS:
        counts = Counter(relation for pair, relation in told if pair.relation == was)
        yield {"relation": was, "n": counts.total(), "told": {relation: counts[relation] for relation in RELATIONS}}


if __name__ == "__main__":
    raise SystemExit(main())

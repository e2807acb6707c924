"""Retrieval quality through the product's own code path: record a set, embed it, search it, compare with gold.

One JSON line for each unit and group on standard output; progress on standard error. With `--floor`, the same lines
for plain SQLite full text over the same rows (`"lists": ["floor"]`).

    python benchmarks/recall.py --set locomo --data FOLDER --floor
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from _dataset import Dataset, Entry, Question, item_of, limited
from _floor import FullText
from _metrics import distinct, mean, measure, percentile
from _sets import LOADERS, load
from _store import embed, open_store, progress, record

import threefold
from threefold.errors import ThreefoldError
from threefold.model.query import LISTS

# Enough for the first ten distinct items; `mrr` looks this far.
SEARCHED = 20

Find = Callable[[Question, str], list[str]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure a set and print its lines."""
    options = _options(arguments)
    dataset = limited(load(options.set, options.data), options.limit)
    try:
        if options.floor:
            _print(_floor(dataset))
        if options.db is not None:
            _print(_product(dataset, options, options.db))
        else:
            with tempfile.TemporaryDirectory(prefix="threefold-recall-") as folder:
                _print(_product(dataset, options, folder))
    except ThreefoldError as error:
        print(f"recall: {error}", file=sys.stderr)
        return 1
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--set", required=True, choices=sorted(LOADERS), help="which set")
    parser.add_argument("--data", required=True, type=Path, help="the folder of the set")
    parser.add_argument("--db", help="a store to keep and use again; else a temporary one")
    parser.add_argument("--embedder", default="bundled", help="bundled (the default), none, or module:factory")
    parser.add_argument("--lists", help=f"candidate lists, some of {','.join(LISTS)}; all that the embedder allows")
    parser.add_argument("--limit", type=int, help="at most so many questions, spread evenly over the set")
    parser.add_argument("--floor", action="store_true", help="also measure plain full text over the same rows")
    parser.add_argument("--plain", action="store_true", help="rank fusion alone, without the second stage")
    options = parser.parse_args(arguments)
    if options.limit is not None and options.limit < 1:
        parser.error("--limit must be at least 1")
    allowed = LISTS[:-1] if options.embedder == "none" else LISTS
    options.lists = allowed if options.lists is None else tuple(options.lists.split(","))
    if unknown := [name for name in options.lists if name not in allowed]:
        parser.error(f"--lists: {', '.join(unknown)} is none of {', '.join(allowed)} with embedder {options.embedder}")
    return options


def _print(lines: Iterator[dict[str, Any]]) -> None:
    for line in lines:
        print(json.dumps(line, ensure_ascii=False), flush=True)


def _product(dataset: Dataset, options: argparse.Namespace, store: str) -> Iterator[dict[str, Any]]:
    with open_store(store, options.embedder) as db:
        entries = _record(db, dataset)
        embed(db)
        warnings: set[str] = set()
        ranking = threefold.Ranking(learned=False) if options.plain else None

        def find(question: Question, unit: str) -> list[str]:
            grouped = "conversation" if unit == "session" else "turn"
            handle = db.user(_user(dataset, question.user))
            hits = handle.conv.search(
                question.text, limit=SEARCHED, group=grouped, lists=options.lists, ranking=ranking
            )
            warnings.update(hits.warnings)
            known = entries[question.user]
            return distinct(item_of(unit, known[hit.conversation, hit.turn], hit.role) for hit in hits)

        said: dict[str, Any] = {"embedder": options.embedder, "lists": list(options.lists)}
        if options.plain:
            said["ranking"] = "fusion"
        yield from _measured(dataset, find, said)
        for warning in sorted(warnings):
            print(f"recall: {warning}", file=sys.stderr)


def _user(dataset: Dataset, user: str) -> str:
    return f"{dataset.name}:{user}"


def _record(db: threefold.Threefold, dataset: Dataset) -> dict[str, dict[tuple[str, str], Entry]]:
    """Record every history; the entries of each user by conversation and turn."""
    known: dict[str, dict[tuple[str, str], Entry]] = {}
    with progress(desc="recording", unit="turn") as bar:
        for user, history in dataset.histories.items():
            entries = list(history())
            record(db, _user(dataset, user), [entry.turn for entry in entries], bar)
            known[user] = {(entry.turn.conversation, entry.turn.id): entry for entry in entries}
    return known


def _floor(dataset: Dataset) -> Iterator[dict[str, Any]]:
    made: dict[str, FullText] = {}
    for user, history in progress(dataset.histories.items(), desc="floor", unit="user"):
        made[user] = FullText(history(), dataset.units)

    def find(question: Question, unit: str) -> list[str]:
        return made[question.user].find(unit, question.text, SEARCHED)

    yield from _measured(dataset, find, {"embedder": "none", "lists": ["floor"]})


def _measured(dataset: Dataset, find: Find, said: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One line for each unit and group, groups in the order in which they turn up."""
    for unit in dataset.units:
        measured: dict[str, list[dict[str, float]]] = defaultdict(list)
        took: dict[str, list[float]] = defaultdict(list)
        for question in progress(dataset.questions, desc=f"searching, {unit}", unit="question"):
            start = time.perf_counter()
            ranked = find(question, unit)
            elapsed = 1000 * (time.perf_counter() - start)
            values = measure(ranked, question.gold[unit])
            for group in question.groups:
                measured[group].append(values)
                took[group].append(elapsed)
        for group, values_of_group in measured.items():
            yield {
                "set": dataset.name,
                "unit": unit,
                "group": group,
                "n": len(values_of_group),
                "metrics": mean(values_of_group),
                **said,
                "p50_ms": round(percentile(took[group], 0.5), 3),
                "p95_ms": round(percentile(took[group], 0.95), 3),
                **dataset.facts,
            }


if __name__ == "__main__":
    raise SystemExit(main())

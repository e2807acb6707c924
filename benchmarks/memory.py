"""Curated memory: how well short facts are recalled, and how long reading and writing take with many of one user.

One JSON line for each figure on standard output, progress on standard error. Facts are those of LifeBench (one memory
for each record) and single messages of LoCoMo; `--rows` are made-up notes of twelve words.

    python benchmarks/memory.py --data FOLDER --sets lifebench,locomo --rows 10000,100000
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from _dataset import Dataset, item_of
from _figures import Figure, clocked
from _floor import rows_of
from _metrics import distinct, mean, measure, percentile
from _sets import load
from _store import embed, embedder, open_store, progress
from _texts import Texts, texts

import threefold
from threefold.realms.mem.checking import MAX_MEMORY

_LIMIT, _ASKED, _WORDS = 20, 100, 12
_UNITS = {"lifebench": "record", "locomo": "message", "longmemeval": "message"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, help="the folder of all sets")
    parser.add_argument("--sets", default="lifebench,locomo", help=f"some of {','.join(_UNITS)} (default: all but one)")
    parser.add_argument("--rows", default="10000", help="memories of one user, for speed; empty for none")
    parser.add_argument("--embedder", default="bundled", help="bundled (the default), none, or module:factory")
    options = parser.parse_args(arguments)
    for name in options.sets.split(",") if options.data else ():
        for line in _recalled(load(name, options.data / name), options.embedder):
            print(json.dumps(line, ensure_ascii=False), flush=True)
    for rows in map(int, filter(None, options.rows.split(","))):
        for figure in _timed(texts(None), rows, options.embedder):
            print(json.dumps(figure.as_json(), ensure_ascii=False), flush=True)
    return 0


class _Moving:
    """A clock that says when each fact was said."""

    def __init__(self) -> None:
        self.at: datetime | None = None

    def __call__(self) -> datetime:
        return self.at or datetime.now().astimezone()


def _recalled(dataset: Dataset, model: str) -> Iterator[dict[str, Any]]:
    unit, clock = _UNITS[dataset.name], _Moving()
    measured: dict[str, list[dict[str, float]]] = defaultdict(list)
    with (
        tempfile.TemporaryDirectory(prefix="threefold-memory-") as folder,
        threefold.open(folder, embedder=embedder(model), background=False, durable=False, clock=clock) as db,
    ):
        items: dict[str, dict[str, str]] = {}
        for user, history in progress(dataset.histories.items(), desc=f"{dataset.name}, remembering", unit="user"):
            mem, mine = db.user(user).mem, items.setdefault(user, {})
            for entry in history():
                clock.at = entry.turn.started
                for role, text in rows_of(entry):
                    if text.strip():
                        record = mem.remember(text.strip()[:MAX_MEMORY], kind=entry.turn.conversation[:50] or "fact")
                        mine.setdefault(record.id, item_of(unit, entry, role))
        clock.at = None
        embed(db)
        for question in progress(dataset.questions, desc=f"{dataset.name}, recalling", unit="question"):
            found = db.user(question.user).mem.recall(question.text, limit=_LIMIT)
            ranked = distinct(items[question.user][each.record.id] for each in found)
            for group in question.groups:
                measured[group].append(measure(ranked[:_LIMIT], question.gold[unit]))
    for group, values in measured.items():
        yield {"set": dataset.name, "unit": "memory", "group": group, "n": len(values), "metrics": mean(values)}


def _timed(source: Texts, rows: int, model: str) -> Iterator[Figure]:
    notes = [" ".join(source.message().split()[:_WORDS]) for _ in range(rows)]
    with tempfile.TemporaryDirectory(prefix="threefold-memory-") as folder, open_store(folder, model) as db:
        mem = db.user("user").mem
        took = [
            clocked(partial(mem.remember, note, kind=("fact", "preference", "decision")[i % 3], tags=[f"tag{i % 7}"]))
            for i, note in enumerate(progress(notes, desc="remembering", unit="memory"))
        ]
        yield _figure(f"remember, up to {rows:,} memories", took, per_second=1000 * rows / sum(took))
        embed(db)
        asked = [source.question(notes) for _ in range(_ASKED)]
        mem.recall(asked[0])
        yield _figure(f"recall, {rows:,} memories", [clocked(partial(mem.recall, each)) for each in asked])
        yield _figure(
            f"recall by tag and confidence, {rows:,} memories",
            [clocked(partial(mem.recall, each, tags=["tag1"], min_confidence=0.5)) for each in asked],
        )
        yield _figure(f"hotset, {rows:,} memories", [clocked(mem.hotset) for _ in asked])
        yield _figure(f"hotset for a goal, {rows:,} memories", [clocked(partial(mem.hotset, each)) for each in asked])
        changing, changed = [], []
        for note, question in zip(notes[:_ASKED], asked, strict=False):
            changing.append(clocked(partial(mem.remember, note)))  # is there: caches must look again
            changed.append(clocked(partial(mem.recall, question)))
        yield _figure(f"remember again, {rows:,} memories", changing)
        yield _figure(f"recall after a change, {rows:,} memories", changed)


def _figure(name: str, took: Sequence[float], **more: float) -> Figure:
    return Figure(name, len(took), percentile(took, 0.5), percentile(took, 0.95), more=more)


if __name__ == "__main__":
    raise SystemExit(main())

"""Measures one peer inside its own environment; `run.py` starts it. One JSON line for each figure.

python driver.py --peer chroma --part speed --sample sample.json --store FOLDER --model bundled.py
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from _figures import clocked
from _metrics import distinct, mean, measure, percentile
from _peer import ME, Peer, Row, load_model

# Name → module and class, distribution whose version is shown.
PEERS = {
    "threefold": ("peer_threefold", "Durable", "threefold"),
    "threefold-fast": ("peer_threefold", "Fast", "threefold"),
    "chroma": ("peer_chroma", "Chroma", "chromadb"),
    "lancedb": ("peer_lancedb", "LanceDb", "lancedb"),
    "langgraph-memory": ("peer_langgraph", "InMemory", "langgraph-checkpoint"),
    "langgraph-sqlite": ("peer_langgraph", "Sqlite", "langgraph-checkpoint-sqlite"),
    "mem0": ("peer_mem0", "Hybrid", "mem0ai"),
    "mem0-vectors": ("peer_mem0", "Vectors", "mem0ai"),
    "txtai": ("peer_txtai", "TxtAi", "txtai"),
}
TIMED, RANKED = 10, 20
_WARM_UP = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure one part and print it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer", required=True, choices=sorted(PEERS))
    parser.add_argument("--part", required=True, choices=("speed", "start", "recall"))
    parser.add_argument("--sample", type=Path, help="what run.py wrote; not for start")
    parser.add_argument("--store", required=True, type=Path, help="a folder of its own")
    parser.add_argument("--model", required=True, type=Path, help="the file of the bundled embedder")
    parser.add_argument("--patience", type=float, default=15.0, help="seconds for a figure, at most (15)")
    options = parser.parse_args(arguments)
    for line in measured(options):
        print(json.dumps({"peer": options.peer, **line}), flush=True)
    return 0


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The figures of a part."""
    if options.part == "start":
        yield started(options)
        return
    sample = json.loads(options.sample.read_text("utf-8"))
    peer = made(options.peer, options.model)
    if options.part == "speed":
        known = {"version": version(PEERS[options.peer][2]), "python": platform.python_version()}
        yield {"figure": "about", **known, "durable": peer.durable}
        yield from speed(peer, sample, options.store, options.patience)
    for name, found in sample["sets"].items() if options.part == "recall" else ():
        yield recalled(peer, name, found, options.store / name)


def made(name: str, model: Path) -> Peer:
    """The peer, not yet open."""
    module, kind, _ = PEERS[name]
    embedder = load_model(model)
    peer: Peer = getattr(importlib.import_module(module), kind)(embedder.embed, embedder.dimensions)
    return peer


def started(options: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds to import the peer and to open its store, and until the first answer, in a new process."""
    peer = made(options.peer, options.model)
    opened = clocked(partial(peer.open, options.store))
    answered = opened + clocked(partial(peer.search, "what did I say", ME, TIMED))
    peer.close()
    return {"figure": "start", "open_ms": opened, "answer_ms": answered}


def speed(peer: Peer, sample: dict[str, Any], store: Path, patience: float) -> Iterator[dict[str, Any]]:
    """Adding in batches, searching without a filter, then with one among rows of others, then adding turn by turn."""
    peer.open(store)
    first = added(peer, rows_of(sample["rows"]), patience)
    yield {"figure": "search, no filter", **asked(peer, None, sample["questions"], patience)}
    second = added(peer, rows_of(sample["others"]), patience)
    count, took = (a + b for a, b in zip(first, second, strict=True))
    yield {"figure": "add, batches", "n": count, "rows_per_second": count / took}
    yield {"figure": "search, filtered", **asked(peer, ME, sample["questions"], patience)}
    yield {"figure": "add, turns", **turn_by_turn(peer, rows_of(sample["turns"]), patience)}
    peer.close()
    size = sum(path.stat().st_size for path in store.rglob("*") if path.is_file()) if store.exists() else 0
    yield {"figure": "size", "bytes": size}


def rows_of(values: Sequence[Sequence[Any]]) -> list[Row]:
    """Rows from what the sample holds."""
    return [Row(*value) for value in values]


def added(peer: Peer, rows: Sequence[Row], patience: float) -> tuple[int, float]:
    """Add rows in batches of one user each, until all is indexed: how many were measured, and the seconds they took.

    Once `patience` is over, one that hurries is given the rest in a hurry.
    """
    count, took = 0, 0.0
    start = time.perf_counter()
    for batch in batches(rows, peer.batch):
        peer.add(batch)
        if not took:
            count += len(batch)
            if peer.hurries and time.perf_counter() - start > patience:
                took = time.perf_counter() - start
                peer.hurry()
    peer.settle()
    peer.calm()
    return count, took or time.perf_counter() - start


def batches(rows: Sequence[Row], size: int) -> Iterator[Sequence[Row]]:
    """At most about `size` rows of one user at a time; a turn stays whole."""
    start = 0
    for i in range(1, len(rows) + 1):
        if i == len(rows) or rows[i].user != rows[start].user or (i - start >= size and not same_turn(rows, i)):
            yield rows[start:i]
            start = i


def same_turn(rows: Sequence[Row], i: int) -> bool:
    """Whether row `i` belongs to the turn of the row before it."""
    before, row = rows[i - 1], rows[i]
    return (before.user, before.conversation, before.turn) == (row.user, row.conversation, row.turn)


def asked(peer: Peer, user: str | None, questions: Sequence[str], patience: float) -> dict[str, Any]:
    """Times of searches, until `patience` is over."""
    for question in questions[:_WARM_UP]:
        peer.search(question, user, TIMED)
    took: list[float] = []
    for question in questions:
        took.append(clocked(partial(peer.search, question, user, TIMED)))
        if sum(took) > 1000 * patience:
            break
    return {"n": len(took), "p50_ms": percentile(took, 0.5), "p95_ms": percentile(took, 0.95)}


def turn_by_turn(peer: Peer, rows: Sequence[Row], patience: float) -> dict[str, Any]:
    """Times of adding one turn in one call, until `patience` is over; the rate waits until all is indexed."""
    took: list[float] = []
    done, start = 0, time.perf_counter()
    for turn in batches(rows, 1):
        took.append(clocked(partial(peer.add, turn)))
        done += len(turn)
        if time.perf_counter() - start > patience:
            break
    acknowledged = time.perf_counter() - start
    peer.settle()
    settled = time.perf_counter() - start
    rates = {"rows_per_second": done / acknowledged, "indexed_rows_per_second": done / settled}
    return {"n": done, "p50_ms": percentile(took, 0.5), "p95_ms": percentile(took, 0.95), **rates}


def recalled(peer: Peer, name: str, found: dict[str, Any], store: Path) -> dict[str, Any]:
    """Strict metrics over the questions of a set, all its users in one store."""
    peer.open(store)
    peer.hurry()
    added(peer, rows_of(found["rows"]), math.inf)
    items = {Row(*row).id: item for row, item in zip(found["rows"], found["items"], strict=True)}
    values = []
    for question in found["questions"]:
        ids = peer.search(question["text"], question["user"], RANKED)
        values.append(measure(distinct(items[hit] for hit in ids), question["gold"]))
    peer.close()
    return {"figure": f"recall, {name}", "unit": found["unit"], "n": len(values), "metrics": mean(values)}


if __name__ == "__main__":
    raise SystemExit(main())

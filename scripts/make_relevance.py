"""Fit the weights of `search/relevance.py` and print them, with how well they tell what is to the point.

    python scripts/make_relevance.py --data FOLDER [--stores FOLDER]

Questions are asked of the history that answers them, and of somebody else's; `benchmarks/data/prompts.txt`, which need
no history, of everyone's. Fitted on the development cut of LongMemEval-S (MIT), LifeBench (Apache-2.0) and the chats of
this project; LoCoMo is only judged by. Each set counts the same, and in it what is to the point as much as what is not.
Iteratively reweighted least squares with a ridge of 1; the same data give the same weights.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from _dataset import limited  # noqa: E402
from _sets import load  # noqa: E402
from _store import embed, open_store, progress, record  # noqa: E402

from threefold.search.relevance import GATE, WEIGHTS, WORDS_ALONE, observed  # noqa: E402

FITTED, JUDGED = ("longmemeval", "lifebench", "chats"), ("locomo",)
QUESTIONS = 300
GATES = (0.1, 0.15, 0.2, 0.3)
KINDS = ("own", "unrelated", "prompt")


class Seen(NamedTuple):
    """What was looked at for a question of a set, and of which kind it was."""

    data: str
    kind: str
    values: Mapping[str, float]


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", required=True, type=Path, help="the folder of all sets")
    parser.add_argument("--stores", type=Path, help="where to keep the recorded sets, to be used again")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="threefold-relevance-") as folder:
        stores = options.stores or Path(folder)
        seen = [each for name in (*FITTED, *JUDGED) for each in _seen(name, options.data, stores)]
    fitted = [each for each in seen if each.data in FITTED]
    nearness = _fit([each for each in fitted if each.values["nearness"] > 0.0], WEIGHTS)
    words = _fit(fitted, WORDS_ALONE)
    for name, weights in (("WEIGHTS", nearness), ("WORDS_ALONE", words)):
        print(json.dumps({name: {key: round(value, 2) for key, value in weights.items()}}))
    for data in (*FITTED, *JUDGED):
        for gate in sorted({GATE, *GATES}):
            print(json.dumps({"set": data, "gate": gate, **_judged(data, seen, gate, nearness, words)}))
    return 0


def _seen(name: str, data: Path, stores: Path) -> Iterator[Seen]:
    folder = ROOT / "benchmarks" / "data" / name if name == "chats" else data / name
    dataset = limited(load(name, folder), QUESTIONS)
    prompts = (ROOT / "benchmarks" / "data" / "prompts.txt").read_text("utf-8").splitlines()
    users = list(dataset.histories)
    with open_store(str(stores / name), "bundled") as db:
        with progress(desc=f"recording {name}", unit="turn") as bar:
            for user, history in dataset.histories.items():
                record(db, user, [entry.turn for entry in history()], bar)
        embed(db)
        asked = [("own", question.user, question.text) for question in dataset.questions]
        asked += [("unrelated", _other(users, question.user), question.text) for question in dataset.questions]
        asked += [("prompt", users[i % len(users)], prompts[i % len(prompts)]) for i in range(len(dataset.questions))]
        for kind, user, text in progress(asked, desc=f"asking {name}", unit="question"):
            gauge = db.user(user).conv.search(text).gauge
            for placing in gauge.asked:
                if placing.seen is not None:
                    yield Seen(name, kind, observed(placing, gauge.unrelated))


def _other(users: Sequence[str], user: str) -> str:
    return users[(users.index(user) + 1) % len(users)]


def _fit(seen: Sequence[Seen], names: Mapping[str, float]) -> dict[str, float]:
    rows = np.array([[each.values[name] for name in names] for each in seen])
    mean, spread = rows.mean(axis=0), rows.std(axis=0)
    constant = list(names).index("")
    mean[constant], spread[constant] = 0.0, 1.0
    scaled, right = (rows - mean) / spread, np.array([float(each.kind == "own") for each in seen])
    counts: dict[tuple[str, str], int] = {}
    for each in seen:
        counts[each.data, each.kind] = counts.get((each.data, each.kind), 0) + 1
    share = np.array([(200.0 if each.kind == "own" else 100.0) / counts[each.data, each.kind] for each in seen])
    found = np.zeros(len(names))
    for _ in range(50):
        likely = 1.0 / (1.0 + np.exp(-scaled @ found))
        slope = scaled.T @ (share * (right - likely)) - found
        bend = scaled.T @ (scaled * (share * likely * (1.0 - likely))[:, None]) + np.eye(len(names))
        found += np.linalg.solve(bend, slope)
    weights = found / spread
    weights[constant] -= (found * mean / spread).sum()
    return dict(zip(names, weights.tolist(), strict=True))


def _judged(
    data: str, seen: Sequence[Seen], gate: float, nearness: Mapping[str, float], words: Mapping[str, float]
) -> dict[str, Any]:
    """The share of each kind that passes a gate: with vectors, and by words alone."""
    found: dict[str, Any] = {}
    for kind in KINDS:
        of_kind = [each.values for each in seen if (each.data, each.kind) == (data, kind)]
        passed = [_likely(values, nearness if values["nearness"] > 0.0 else words) >= gate for values in of_kind]
        alone = [_likely(values, words) >= gate for values in of_kind]
        shares = (round(float(np.mean(each)), 3) for each in (passed, alone))
        found[kind] = dict(zip(("n", "passed", "words"), (len(of_kind), *shares), strict=True))
    return found


def _likely(values: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return float(1.0 / (1.0 + np.exp(-sum(weight * values[name] for name, weight in weights.items()))))


if __name__ == "__main__":
    raise SystemExit(main())

"""How much of what a question needs is inside the context that is computed for it, at several budgets.

One JSON line for each budget and group. `coverage` is the share of gold turns of which a part is quoted, `message` the
share of gold messages of which a part is, `whole` the share of those that are quoted from end to end. With `--noise`
questions are asked of somebody else's history, where nothing answers them: `turns` and `tokens` are what is quoted all
the same (`unrelated`), beside what is quoted of one's own.

    python benchmarks/context.py --set longmemeval --data FOLDER
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from _dataset import Dataset, Entry, Question, item_of, limited
from _metrics import mean, percentile
from _sets import load
from _store import embed, open_store, progress, record

import threefold
from threefold.errors import ThreefoldError
from threefold.model.context import ComputedContext
from threefold.text.tokens import count_tokens

BUDGETS = (500, 1000, 2000, 4000)
SETS = ("longmemeval", "locomo")
# Under what a set counts a turn, and under what a message.
_TURN = {"longmemeval": "turn", "locomo": "message"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure a set and print its lines."""
    options = _options(arguments)
    dataset = limited(load(options.set, options.data), options.limit)
    try:
        with tempfile.TemporaryDirectory(prefix="threefold-context-") as folder:
            for line in _measured(dataset, options.db or folder, options):
                print(json.dumps(line, ensure_ascii=False), flush=True)
    except ThreefoldError as error:
        print(f"context: {error}", file=sys.stderr)
        return 1
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--set", required=True, choices=SETS, help="which set")
    parser.add_argument("--data", required=True, type=Path, help="the folder of the set")
    parser.add_argument("--db", help="a store to keep and use again; else a temporary one")
    parser.add_argument("--embedder", default="bundled", help="bundled (the default), none, or module:factory")
    parser.add_argument("--limit", type=int, help="at most so many questions, spread evenly over the set")
    parser.add_argument("--noise", action="store_true", help="ask somebody else's history, too")
    options = parser.parse_args(arguments)
    if options.limit is not None and options.limit < 1:
        parser.error("--limit must be at least 1")
    return options


def _measured(dataset: Dataset, store: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    with open_store(store, options.embedder) as db:
        known = _record(db, dataset)
        embed(db)
        for budget in BUDGETS:
            measured: dict[str, list[dict[str, float]]] = defaultdict(list)
            took = []
            for question in progress(dataset.questions, desc=f"{budget} tokens", unit="question"):
                start = time.perf_counter()
                context = db.user(question.user).context(question.text, budget=budget)
                took.append(1000 * (time.perf_counter() - start))
                _check(context)
                for group in question.groups:
                    name = f"tokens={budget}" if group == "all" else f"tokens={budget}, {group}"
                    measured[name].append(_covered(dataset, question, context, known[question.user]))
            for group, values in measured.items():
                line = {"set": dataset.name, "unit": "turn", "group": group, "n": len(values), "metrics": mean(values)}
                yield line | {"p50_ms": round(percentile(took, 0.5), 1), "p95_ms": round(percentile(took, 0.95), 1)}
            if options.noise:
                yield from _noise(db, dataset, budget)


def _record(db: threefold.Threefold, dataset: Dataset) -> dict[str, dict[tuple[str, str], Entry]]:
    known: dict[str, dict[tuple[str, str], Entry]] = {}
    with progress(desc="recording", unit="turn") as bar:
        for user, history in dataset.histories.items():
            entries = list(history())
            record(db, user, [entry.turn for entry in entries], bar)
            known[user] = {(entry.turn.conversation, entry.turn.id): entry for entry in entries}
    return known


def _check(context: ComputedContext) -> None:
    """The budget is never exceeded, nor is the count wrong."""
    tokens = count_tokens(context.text)
    assert tokens == context.estimated_tokens <= context.budget, (tokens, context.estimated_tokens, context.budget)


def _covered(
    dataset: Dataset, question: Question, context: ComputedContext, known: dict[tuple[str, str], Entry]
) -> dict[str, float]:
    turns, parts, wholes = set(), set(), set()
    for shown in context.turns:
        entry = known[shown.about["conversation"], shown.about["turn"]]
        turns.add(item_of(_TURN[dataset.name], entry, shown.about["role"]))
        for role, text in _messages(entry):
            plain = " ".join(text.split())
            if any(piece in plain for piece in _pieces(shown.text)):
                parts.add(item_of("message", entry, role))
                if plain in " ".join(shown.text.split()):
                    wholes.add(item_of("message", entry, role))
    unit = _TURN[dataset.name]
    gold, messages = question.gold[unit], question.gold["message"]
    if unit == "message":
        turns = parts
    return {
        "coverage": len(gold & turns) / len(gold),
        "message": len(messages & parts) / len(messages),
        "whole": len(messages & wholes) / len(messages),
    }


def _messages(entry: Entry) -> Iterator[tuple[str, str]]:
    if entry.turn.submissions:
        yield "user", entry.turn.submissions[0].text
    if entry.turn.completion is not None:
        yield "assistant", entry.turn.completion.text


def _pieces(text: str) -> list[str]:
    """What is quoted of each message, without who said it and the marks of what was left out."""
    pieces = (" ".join(piece.split()).strip("…") for piece in re.split(r"(?m)^[^\s][^\n:]{0,40}: ", text))
    return [piece for piece in pieces if piece]


def _noise(db: threefold.Threefold, dataset: Dataset, budget: int) -> Iterator[dict[str, Any]]:
    """What is quoted for questions about one's own history, and about somebody else's."""
    users = list(dataset.histories)
    for name, step in (("own", 0), ("unrelated", 1)):
        values = []
        for question in progress(dataset.questions, desc=f"{name}, {budget} tokens", unit="question"):
            user = users[(users.index(question.user) + step) % len(users)]
            context = db.user(user).context(question.text, budget=budget)
            values.append({"turns": float(len(context.turns)), "tokens": float(context.estimated_tokens)})
        group = f"tokens={budget}, {name}"
        yield {"set": dataset.name, "unit": "context", "group": group, "n": len(values), "metrics": mean(values)}


if __name__ == "__main__":
    raise SystemExit(main())

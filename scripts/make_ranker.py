"""Make `src/threefold/search/ranker.json`: train the ranker on data whose licences allow it, and say how good it is.

    python scripts/make_ranker.py --data FOLDER [--stores FOLDER] [--judge locomo,xquad] [--validate]

FOLDER has the sets by name. Trained on: LongMemEval-S, development cut (MIT); LifeBench (Apache-2.0); SciFact
(CC BY 4.0); the chats in `benchmarks/data/chats`, written for this project. Candidates and features are the product's
own. Needs the extra `ranker` (LightGBM); the same data, features and LightGBM give the same file.

`--validate` prints the metrics, by turn and by conversation, of models that did not see the questions they are asked:
for each set, four folds by user (by question where there are few users), trained on the other folds and the other sets.
`--judge` prints those of the model that ships on sets of which nothing is trained on.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
from _ranker_data import Asked, asked_of, metrics_of, told_of

from threefold.search.features import FEATURES
from threefold.search.ranker import ANSWERED

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "src" / "threefold" / "search" / "ranker.json"
# How much one question counts. Those of LongMemEval are few, those of LifeBench have many answers each.
WEIGHTS = {"chats": 1.0, "longmemeval": 8.0, "lifebench": 0.2, "scifact": 0.5}
SOURCES = "LongMemEval-S development cut (MIT), LifeBench (Apache-2.0), SciFact (CC BY 4.0), chats of this project"
FOLDS, TREES = 4, 150
# LambdaRank (Burges 2010). At most 16 leaves: see `search/forest.py`.
SETTINGS = {
    "objective": "lambdarank", "num_leaves": 15, "learning_rate": 0.06, "min_data_in_leaf": 20, "lambda_l2": 1.0,
    "feature_fraction": 0.5, "bagging_fraction": 0.8, "bagging_freq": 1, "lambdarank_truncation_level": 30,
    "label_gain": [0, 1, 3], "seed": 1, "deterministic": True, "force_col_wise": True, "num_threads": 1, "verbose": -1,
}  # fmt: skip
# More of these never makes a row less likely.
RISING = (
    "lexical", "lexical_rank", "strength", "semantic", "semantic_rank", "share", "rarest", "words_found", "named",
    "when",
)  # fmt: skip
Sets = Mapping[str, Sequence[Asked]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, validate, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", required=True, type=Path, help="the folder of all sets")
    parser.add_argument("--stores", type=Path, help="where to keep the recorded sets, to be used again")
    parser.add_argument("--judge", default="", help="sets that are only judged by")
    parser.add_argument("--validate", action="store_true", help="print cross-validated metrics")
    options = parser.parse_args(arguments)
    sets = {name: asked_of(name, options.data, options.stores) for name in WEIGHTS}
    scored = {name: _cross_validated(sets, name) for name in WEIGHTS}
    model = _fit([(asked, WEIGHTS[name]) for name, asked in sets.items()])
    line = _calibrated(sets, scored, model)
    if options.validate:
        for name, scores in scored.items():
            _print("cross-validated", name, sets[name], scores, line)
            _print_foreign(name, sets[name], model, line)
    for name in filter(None, options.judge.split(",")):
        judged = asked_of(name, options.data, options.stores)
        _print("judged", name, judged, [model.predict(one.seen) for one in judged], line)
    TARGET.write_text(_written(model, line), "utf-8")
    print(f"{TARGET.relative_to(ROOT)}: {TARGET.stat().st_size:,} bytes", file=sys.stderr)
    return 0


def _fit(parts: Sequence[tuple[Sequence[Asked], float]]) -> lightgbm.Booster:
    learned = [(part, weight) for asked, weight in parts for one in asked for part in one.lessons()]
    labels = [part.labels for part, _ in learned]
    data = lightgbm.Dataset(
        np.concatenate([part.seen for part, _ in learned]),
        np.concatenate(labels),
        group=[len(each) for each in labels],
        weight=np.concatenate([np.full(len(part.labels), weight) for part, weight in learned]),
    )
    rising = [int(name in RISING) for name in FEATURES]
    return lightgbm.train({**SETTINGS, "monotone_constraints": rising}, data, TREES)


def _cross_validated(sets: Sets, name: str) -> list[Any]:
    """The scores of each question's rows by a model that was not trained on its fold."""
    asked = sets[name]
    users = sorted({one.question.user for one in asked})
    few = len(users) < FOLDS
    fold = [i * FOLDS // len(asked) if few else users.index(one.question.user) % FOLDS for i, one in enumerate(asked)]
    others = [(found, WEIGHTS[other]) for other, found in sets.items() if other != name]
    scores: list[Any] = [None] * len(asked)
    for out in range(FOLDS):
        seen = [one for one, of in zip(asked, fold, strict=True) if of != out]
        model = _fit([(seen, WEIGHTS[name]), *others])
        for i, one in enumerate(asked):
            if fold[i] == out:
                scores[i] = model.predict(one.seen)
    return scores


def _calibrated(sets: Sets, scored: Mapping[str, Sequence[Any]], model: lightgbm.Booster) -> list[float]:
    """The line from score, and what the best row has of the question, to the logit of being right.

    As Platt (1999), by Newton's method; each set counts alike, and so do the questions asked in the wrong store.
    """
    columns, right, weights = [], [], []
    for name, asked in sets.items():
        pairs = [(one.seen, scores, one.labels > 0) for one, scores in zip(asked, scored[name], strict=True)]
        pairs += [
            (one.foreign, model.predict(one.foreign), np.zeros(len(one.foreign), dtype=bool))
            for one in asked
            if one.foreign is not None
        ]
        for seen, scores, labels in pairs:
            columns.append(_columns(seen, scores))
            right.append(labels)
            weights.append(np.full(len(labels), 1.0 / len(pairs)))
    x, y, w = np.concatenate(columns), np.concatenate(right).astype(float), np.concatenate(weights)
    line = np.zeros(x.shape[1])
    for _ in range(50):
        p = 1.0 / (1.0 + np.exp(-(x @ line)))
        line -= np.linalg.solve((x * (w * p * (1 - p))[:, None]).T @ x, x.T @ (w * (p - y)))
    return [round(float(value), 4) for value in line]


def _columns(seen: Any, scores: Any) -> Any:
    best = np.tile(seen[:, ANSWERED].max(axis=0), (len(seen), 1))
    return np.column_stack([scores, best, np.ones(len(seen))])


def _likely(seen: Any, scores: Any, line: Sequence[float]) -> Any:
    return 1.0 / (1.0 + np.exp(-(_columns(seen, scores) @ np.array(line))))


def _print(how: str, name: str, asked: Sequence[Asked], scores: Sequence[Any], line: Sequence[float]) -> None:
    likely = [_likely(one.seen, each, line) for one, each in zip(asked, scores, strict=True)]
    for unit, group, metrics, n in metrics_of(asked, likely):
        print(
            json.dumps({"how": how, "set": name, "unit": unit, "group": group, "n": n, "metrics": metrics}), flush=True
        )
    rows = np.concatenate(likely), np.concatenate([one.labels > 0 for one in asked])
    pairs = [told_of(one, each) for one, each in zip(asked, likely, strict=True)]
    conversations = np.concatenate([told for told, _ in pairs]), np.concatenate([right for _, right in pairs])
    told = {"rows, share right": _bins(*rows), "conversations, share right": _bins(*conversations)}
    best = [round(float(np.percentile([each.max() for each in likely], q)), 3) for q in (10, 50, 90)]
    print(json.dumps({"how": how, "set": name, **told, "best of a question": best}), flush=True)


def _bins(said: Any, right: Any) -> dict[str, list[float]]:
    """How many were told to be so likely, and the share of these that is right."""
    bins = [(low, low + 0.2, (said >= low) & (said < low + 0.2)) for low in (0.0, 0.2, 0.4, 0.6, 0.8)]
    return {
        f"{low:.1f}-{high:.1f}": [int(m.sum()), round(float(right[m].mean()), 3)] for low, high, m in bins if m.any()
    }


def _print_foreign(name: str, asked: Sequence[Asked], model: lightgbm.Booster, line: Sequence[float]) -> None:
    best = [_likely(one.foreign, model.predict(one.foreign), line).max() for one in asked if one.foreign is not None]
    if best:
        told = [round(float(np.percentile(best, q)), 3) for q in (10, 50, 90)]
        print(json.dumps({"how": "asked in a stranger's store", "set": name, "best of a question": told}), flush=True)


def _written(model: lightgbm.Booster, line: Sequence[float]) -> str:
    trees = [_tree(tree["tree_structure"]) for tree in model.dump_model()["tree_info"]]
    head = {"trained_on": SOURCES, "line": line}
    lines = ",\n".join(json.dumps(tree, separators=(",", ":")) for tree in trees)
    said = json.dumps(head)[:-1]
    return f'{said},\n"forest": {{"features": {json.dumps(FEATURES)},\n"trees": [\n{lines}\n]}}}}\n'


def _tree(root: Mapping[str, Any]) -> dict[str, Any]:
    """Leaves from left to right; each test with the leaves that it rules out where the value is above its threshold."""
    leaves: list[float] = []
    tests: list[list[float]] = []

    def walk(node: Mapping[str, Any]) -> None:
        if "leaf_value" in node:
            leaves.append(round(node["leaf_value"], 6))
            return
        first = len(leaves)
        walk(node["left_child"])
        tests.append([node["split_feature"], float(f"{node['threshold']:.9g}"), first, len(leaves) - 1])
        walk(node["right_child"])

    walk(root)
    return {"tests": tests, "leaves": leaves}


if __name__ == "__main__":
    raise SystemExit(main())

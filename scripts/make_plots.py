"""Draw `docs/images/*.svg` from the lines of the benchmarks that are kept in `docs/figures`.

    python scripts/make_plots.py

`recall.jsonl` holds lines as `benchmarks/recall.py` prints them (with `--floor`, and again with `--plain`),
`latency.jsonl` those of `benchmarks/latency.py` and `benchmarks/scale.py`. Of lines about the same thing the last one
counts, so new ones may be appended; what is not there is not drawn. A test compares the pictures with the lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from _dots import Axis, Kind, Row, drawn

DOCS = Path(__file__).resolve().parent.parent / "docs"
FIGURES, IMAGES = DOCS / "figures", DOCS / "images"
# Set, unit, group, metric, name, target.
RECALL = (
    ("locomo", "message", "all", "rec@10", "LoCoMo, message", 0.75),
    ("locomo", "session", "all", "any@5", "LoCoMo, session", 0.95),
    ("longmemeval", "turn", "all", "rec@10", "LongMemEval-S, turn", 0.94),
    ("lifebench", "record", "en", "rec@10", "LifeBench, English", 0.42),
    ("lifebench", "record", "zh", "rec@10", "LifeBench, Chinese", 0.34),
    ("scifact", "document", "all", "ndcg@10", "SciFact", 0.72),
    ("xquad", "paragraph", "all", "any@5", "XQuAD, 12 languages", 0.96),
)
FLOOR, FUSION, PRODUCT, TARGET = "floor", "fusion", "product", "target"
_LISTS = ["lexical", "trigram", "semantic"]
_SEARCH = re.compile(r"search, (hybrid|lexical), ([\d,]+) rows")
_ENGINES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
Line = Mapping[str, Any]


def recall(lines: Sequence[Line]) -> str:
    """Recall by set: plain full text, rank fusion alone, Threefold, and the target.

    Of a set that the ranker was trained on, what `scripts/make_ranker.py --validate` says of models that were not.
    """
    found: dict[tuple[str, str, str, str], Mapping[str, float]] = {}
    for line in sorted(lines, key=lambda line: "how" in line):
        if "how" in line:
            found[line["set"], line["unit"], line["group"], PRODUCT] = line["metrics"]
            continue
        how = FLOOR if line["lists"] == ["floor"] else line.get("ranking", PRODUCT)
        if how == FLOOR or (line["lists"] == _LISTS and line["embedder"] == "bundled"):
            found[line["set"], line["unit"], line["group"], how] = line["metrics"]
    rows = []
    for name, unit, group, metric, shown, target in RECALL:
        values = {
            how: metrics[metric]
            for how in (FLOOR, FUSION, PRODUCT)
            if metric in (metrics := found.get((name, unit, group, how), {}))
        }
        if PRODUCT in values:
            rows.append(Row(f"{shown}, {metric}", {**values, TARGET: target}))
    kinds = (
        Kind(FLOOR, "plain full text", "ring"),
        Kind(FUSION, "rank fusion alone", "diamond"),
        Kind(PRODUCT, "Threefold", "dot"),
        Kind(TARGET, "target", "tick"),
    )
    return drawn("Recall by set", "more is better", kinds, rows, Axis(0.0, 1.0, (0, 0.2, 0.4, 0.6, 0.8, 1)), "{:.2f}")


def latency(lines: Sequence[Line]) -> str:
    """Median times of a search by rows of the user: its parts alone, and Threefold."""
    rows = [Row(name, {FLOOR: one["floor_p50_ms"], PRODUCT: one["p50_ms"]}) for name, one in _timed(lines).items()]
    kinds = (Kind(FLOOR, "its parts alone", "ring"), Kind(PRODUCT, "Threefold", "dot"))
    most = max((value for row in rows for value in row.values.values()), default=1.0)
    ticks = tuple(value for value in (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if value <= 1.2 * most)
    axis = Axis(0.5, 1.2 * most, ticks, logarithmic=True)
    return drawn("Time of a search in milliseconds, median", "less is better", kinds, rows, axis, "{:.1f}")


def _timed(lines: Sequence[Line]) -> dict[str, Line]:
    """What was searched, and its line; at scale only in the largest store that each size of user was searched in."""
    alone: dict[tuple[str, int], Line] = {}
    scaled: dict[tuple[str, int], Line] = {}
    for line in lines:
        if match := _SEARCH.fullmatch(line.get("figure", "")):
            alone[match[1], int(match[2].replace(",", ""))] = line
        elif line.get("what") == "search":
            place = (line["engine"], line["user_rows"])
            if place not in scaled or line["rows"] >= scaled[place]["rows"]:
                scaled[place] = line
    named = {f"{kind}, {_short(rows)} rows": alone[kind, rows] for kind, rows in sorted(alone)}
    for engine, rows in sorted(scaled, key=lambda place: (list(_ENGINES).index(place[0]), place[1])):
        line = scaled[engine, rows]
        named[f"{_ENGINES[engine]}, {_short(rows)} of {_short(line['rows'])} rows"] = line
    return named


def _short(rows: int) -> str:
    """Such as 1k, 1.5M; sizes of stores are not quite round."""
    return f"{rows / 1e6:.3g}M" if rows >= 999_500 else f"{rows / 1e3:.3g}k" if rows >= 1000 else str(rows)


PLOTS: Mapping[str, Callable[[Sequence[Line]], str]] = {"recall": recall, "latency": latency}


def pictures() -> Iterator[tuple[Path, str]]:
    """Each picture's file and what it is to hold."""
    for name, draw in PLOTS.items():
        text = (FIGURES / f"{name}.jsonl").read_text("utf-8")
        lines = [json.loads(line) for line in text.splitlines() if line.strip()]
        yield IMAGES / f"{name}.svg", draw(lines)


def main() -> int:
    """Write them."""
    IMAGES.mkdir(exist_ok=True)
    for path, picture in pictures():
        path.write_text(picture, "utf-8")
        print(f"docs/images/{path.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

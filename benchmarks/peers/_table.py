"""The table of a run, for the terminal and for the docs. Pure, but for the date and the machine."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

_OPEN, _CLOSE = "<!-- figures: peers -->", "<!-- /figures: peers -->"
_HEAD = (
    "peer",
    "installed MB",
    "start ms",
    "first answer ms",
    "a turn, p50 ms",
    "messages/s by turn",
    "in batches",
    "search, no filter, p50 ms",
    "by user, p50 ms",
    "p95 ms",
)

Result = Mapping[str, Any]


def table(results: Sequence[Result], sets: Sequence[str]) -> str:
    """A line for each peer, as Markdown."""
    head = [*_HEAD, *(f"{name} {metric}" for name in sets for metric in ("rec@10", "any@5")), "survives"]
    lines = [head, ["---"] * len(head), *(_cells(result, sets) for result in results)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(result: Result, sets: Sequence[str]) -> list[str]:
    def value(figure: str, name: str, scale: float = 1, digits: int = 0) -> str:
        found = result.get(figure, {}).get(name)
        return "" if found is None else f"{found * scale:,.{digits}f}"

    said = result.get("peer", "")
    known = result.get("about", {})
    cells = [
        f"{said} {known.get('version', '')}".strip(),
        value("installed", "bytes", 1e-6),
        value("start", "open_ms"),
        value("start", "answer_ms"),
        value("add, turns", "p50_ms", 1, 1),
        value("add, turns", "indexed_rows_per_second"),
        value("add, batches", "rows_per_second"),
        value("search, no filter", "p50_ms", 1, 1),
        value("search, filtered", "p50_ms", 1, 1),
        value("search, filtered", "p95_ms", 1, 1),
    ]
    for name in sets:
        metrics = result.get(f"recall, {name}", {}).get("metrics", {})
        cells += [f"{metrics[m]:.3f}" if m in metrics else "" for m in ("rec@10", "any@5")]
    failed = result.get("failed")
    return [*cells, f"{failed['part']} failed: {failed['why']}" if failed else known.get("durable", "")]


def section(results: Sequence[Result], sets: Sequence[str], counts: Mapping[str, int]) -> str:
    """What stands in the docs between the markers: when, where, how much, and the table."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30 if hasattr(os, "sysconf") else 0
    judged = [
        f"{name} n = {max((r.get(f'recall, {name}', {}).get('n', 0) for r in results), default=0)}" for name in sets
    ]
    python = next((r["about"]["python"] for r in results if "about" in r), "")
    said = (
        f"{datetime.now(UTC):%d %B %Y}, {os.cpu_count()} cores, {memory:.0f} GB, Python {python};"
        f" {counts['rows']:,} rows of the user, {counts['others']:,} of others, {counts['questions']} questions"
    )
    return f"{'; '.join([said, *judged])}.\n\n{table(results, sets)}"


def written(page: str, text: str) -> str:
    """The page with `text` between its markers."""
    before, opened, rest = page.partition(_OPEN)
    _, closed, after = rest.partition(_CLOSE)
    if not opened or not closed:
        raise ValueError(f"the page has no {_OPEN} and {_CLOSE}")
    return f"{before}{_OPEN}\n{text}\n{_CLOSE}{after}"

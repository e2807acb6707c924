"""Side by side: other stores of memories beside Threefold in one run, on the same texts with the same vectors.

Each peer is installed apart, in an environment of its own that is made once and kept (`--envs`), and measured there by
`driver.py`. One that cannot be installed or fails says why in its line and hides no other. JSON lines on standard
output, a table on standard error.

    python benchmarks/peers/run.py --data FOLDER
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]

from _environments import ROOT, Environment, Failed, environment, run  # noqa: E402 - needs the path
from _metrics import percentile  # noqa: E402
from _sample import UNITS, sample  # noqa: E402
from _table import section, table, written  # noqa: E402
from driver import PEERS  # noqa: E402

DRIVER = Path(__file__).resolve().with_name("driver.py")
MODEL = ROOT / "src" / "threefold" / "embedders" / "bundled.py"
DOCS = ROOT / "docs" / "benchmarks.md"
_STARTS = 3
_DEFAULT = ",".join(name for name in PEERS if name != "mem0-vectors")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = _options(arguments)
    results = []
    with tempfile.TemporaryDirectory(prefix="threefold-peers-") as made:
        file = Path(made) / "sample.json"
        counts = (options.rows, options.others, options.turns, options.questions, options.limit)
        file.write_text(json.dumps(sample(options.data, options.set, *counts), ensure_ascii=False), "utf-8")
        for name in options.peers:
            result: dict[str, Any] = {"peer": name}
            for line in lines(name, options, file, Path(made) / name):
                print(json.dumps(line, ensure_ascii=False), flush=True)
                result[line["figure"]] = line
            results.append(result)
    print(table(results, options.set), file=sys.stderr)
    if options.write_docs:
        page = DOCS.read_text("utf-8")
        DOCS.write_text(written(page, section(results, options.set, _counts(options))), "utf-8")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peers", default=_DEFAULT, help=f"some of {','.join(PEERS)}")
    parser.add_argument("--data", type=Path, help="the folder of the sets, or of one; else made-up texts, no recall")
    parser.add_argument("--set", default="locomo", help="some of locomo,longmemeval, for recall (locomo)")
    parser.add_argument("--rows", type=int, default=10_000, help="rows of the user that searches (10000)")
    parser.add_argument("--others", type=int, default=10_000, help="rows of other users beside them (10000)")
    parser.add_argument("--turns", type=int, default=500, help="rows to add turn by turn, at most (500)")
    parser.add_argument("--questions", type=int, default=100, help="searches for each figure of speed (100)")
    parser.add_argument("--limit", type=int, default=40, help="at most so many questions of longmemeval (40)")
    parser.add_argument("--envs", type=Path, default=_cache(), help="where environments are kept (the user's cache)")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that they are made with")
    parser.add_argument("--seconds", type=float, default=600.0, help="the end of any part that takes longer (600)")
    parser.add_argument("--patience", type=float, default=8.0, help="seconds for a figure of speed, at most (8)")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args(arguments)
    options.peers, options.set = options.peers.split(","), options.set.split(",")
    for name, chosen, known in (("--peers", options.peers, PEERS), ("--set", options.set, UNITS)):
        if unknown := [one for one in chosen if one not in known]:
            parser.error(f"{name}: {', '.join(unknown)} is none of {', '.join(known)}")
    if options.data is None:
        options.set = []
    return options


def _cache() -> Path:
    named = os.environ.get("XDG_CACHE_HOME")
    return (Path(named) if named else Path.home() / ".cache") / "threefold-peers"


def _counts(options: argparse.Namespace) -> dict[str, int]:
    return {name: getattr(options, name) for name in ("rows", "others", "turns", "questions")}


def lines(name: str, options: argparse.Namespace, file: Path, store: Path) -> Iterator[dict[str, Any]]:
    """The figures of a peer; a figure `failed` says which part failed and why."""
    print(f"{name} …", file=sys.stderr, flush=True)
    try:
        found = environment(name.partition("-")[0], options.envs, options.python)
    except Failed as failure:
        yield {"peer": name, "figure": "failed", "part": "install", "why": failure.args[0]}
        return
    yield {"peer": name, "figure": "installed", "bytes": found.installed}
    parts = ("speed", "start", "recall") if options.set else ("speed", "start")
    for part in parts:
        try:
            kept = store / ("recall" if part == "recall" else "speed")
            yield from _part(name, part, found, options, file, kept)
        except Failed as failure:
            yield from _parsed(failure.args[1])
            yield {"peer": name, "figure": "failed", "part": part, "why": failure.args[0]}
            return


def _part(
    name: str, part: str, found: Environment, options: argparse.Namespace, file: Path, store: Path
) -> Iterator[dict[str, Any]]:
    command: list[str | Path] = [found.python, DRIVER, "--peer", name, "--part", part]
    command += ["--sample", file, "--store", store, "--model", MODEL, "--patience", str(options.patience)]
    # No peer gains from threads in a product of one vector, and they disturb each other on few cores.
    environment = {"OPENBLAS_NUM_THREADS": "1", **os.environ}
    if part != "start":
        yield from _parsed(run(command, options.seconds, **environment))
        return
    # The first run writes byte code.
    starts = [next(_parsed(run(command, options.seconds, **environment))) for _ in range(1 + _STARTS)][1:]
    medians = {key: percentile([start[key] for start in starts], 0.5) for key in ("open_ms", "answer_ms")}
    yield {**starts[0], **medians}


def _parsed(printed: str) -> Iterator[dict[str, Any]]:
    for line in printed.splitlines():
        # Some peers print on standard output too.
        if line.startswith('{"peer"'):
            yield json.loads(line)


if __name__ == "__main__":
    raise SystemExit(main())

"""Speed of the embedded engine, each figure beside its floor in the same run.

One JSON line for each figure on standard output, a table on standard error (`--json`: no table). Nothing is asserted:
the machine decides; a ratio to the floor carries over.

    python benchmarks/latency.py --rows 1000,10000 --others 20000
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from _figures import Figure, clocked, compared
from _searching import FEW_OTHERS, Searching
from _store import open_store
from _texts import Texts, texts, turns
from _writing import importing, recording

PARTS = ("search", "record", "import", "start")
_STARTS = 7
# What a search imports that is not its own.
_IMPORTS = "import argparse, json, apsw, numpy, Stemmer, rapidfuzz.process"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = _options(arguments)
    source = texts(options.data)
    figures = []
    with tempfile.TemporaryDirectory(prefix="threefold-latency-") as made:
        for figure in _figures(options, source, Path(made)):
            print(json.dumps(figure.as_json(), ensure_ascii=False), flush=True)
            figures.append(figure)
    if not options.json:
        print(table(figures), file=sys.stderr)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", default="1000,10000", help="rows of the users that search (default: 1000,10000)")
    parser.add_argument("--others", type=int, default=20_000, help="rows of other users in the store (default: 20000)")
    parser.add_argument("--data", type=Path, help="a folder of longmemeval or lifebench for texts; else made up")
    parser.add_argument("--embedder", default="bundled", help="bundled (the default), none, or module:factory")
    parser.add_argument("--queries", type=int, default=100, help="searches for each figure (default: 100)")
    parser.add_argument("--turns", type=int, default=1000, help="turns for each figure of recording (default: 1000)")
    parser.add_argument("--messages", type=int, default=10_000, help="messages to import (default: 10000)")
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of {','.join(PARTS)}")
    parser.add_argument("--json", action="store_true", help="no table on standard error")
    options = parser.parse_args(arguments)
    options.rows = [int(rows) for rows in options.rows.split(",")]
    options.only = options.only.split(",")
    if unknown := [part for part in options.only if part not in PARTS]:
        parser.error(f"--only: {', '.join(unknown)} is none of {', '.join(PARTS)}")
    return options


def _figures(options: argparse.Namespace, source: Texts, folder: Path) -> Iterator[Figure]:
    if "search" in options.only:
        with open_store(str(folder / "searched"), options.embedder) as db:
            searching = Searching(db, source, folder / "floor.db")
            yield from searching.figures(options.rows, options.others, options.queries)
            if options.others > FEW_OTHERS:
                with open_store(str(folder / "smaller"), options.embedder) as fewer:
                    twin = Searching(fewer, texts(options.data), folder / "smaller.db")
                    yield searching.growth(twin, FEW_OTHERS, options.others)
    if "record" in options.only:
        yield from recording(source, folder, options.turns)
    if "import" in options.only:
        yield from importing(source, folder, options.messages, options.embedder)
    if "start" in options.only:
        yield from starting(folder, options)


def starting(folder: Path, options: argparse.Namespace) -> Iterator[Figure]:
    """Cold starts: importing the package, and the first search from the command line of a process."""
    timed = "import time; a = time.perf_counter(); import threefold; print(time.perf_counter() - a)"
    python = partial(_python, folder / "byte code")
    interpreter, imported = [], []
    for _ in range(_STARTS + 1):
        interpreter.append(clocked(lambda: python("-c", "pass")))
        imported.append(1000 * float(python("-c", timed)))
    # The first run writes byte code.
    yield compared("import threefold", imported[1:], interpreter[1:], "p50 ≤ 300 ms (floor: the interpreter)")
    store = folder / "cold"
    with open_store(str(store), options.embedder) as db:
        db.user("user").conv.record_all(list(turns(texts(options.data), 1000)))
        db.embed_pending()
    search = ["-m", "threefold", "--db", str(store), "--user", "user", "--json", "search", "what did I say"]
    took, floor = [], []
    for _ in range(_STARTS + 1):
        floor.append(clocked(lambda: python("-c", _IMPORTS)))
        took.append(clocked(lambda: python(*search)))
    yield compared("first search from the command line", took[1:], floor[1:], "p50 ≤ 1.5 × interpreter and imports")


def _python(code: Path, *arguments: str) -> str:
    """What a new interpreter prints. It sees the package as this process does, installed or on the path.

    Byte code is kept in the folder `code`, as after an installation: whatever the environment says, only the first
    one compiles.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    environment["PYTHONDONTWRITEBYTECODE"] = ""
    environment["PYTHONPYCACHEPREFIX"] = str(code)
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"latency: {' '.join(arguments)}: {done.stderr.strip()[-500:]}")
    return done.stdout


def table(figures: Sequence[Figure]) -> str:
    """The figures to read."""
    head = ("figure", "n", "p50 ms", "p95 ms", "floor ms", "ratio", "target")
    lines = [head, *(_cells(figure) for figure in figures)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i in (0, len(head) - 1) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _cells(figure: Figure) -> tuple[str, ...]:
    numbers = (figure.p50_ms, figure.p95_ms, figure.floor_p50_ms, figure.ratio)
    shown = ["" if number is None else f"{number:,.2f}" for number in numbers]
    rates = [f"{value:,.0f} {name.replace('_', ' ')}" for name, value in figure.more.items() if "second" in name]
    return (figure.figure, f"{figure.n:,}", *shown, "; ".join([figure.target, *rates]).strip("; "))


if __name__ == "__main__":
    raise SystemExit(main())

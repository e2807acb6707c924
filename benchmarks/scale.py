"""Both engines at scale: the same histories and questions, each figure beside the bare driver in the same run.

A store grows in steps (`--rows`). At each step: how fast it was loaded, how large it is, how long users of several
sizes search, whether both engines find the same, and how fast turns are recorded. One JSON line for each figure on
standard output; progress and a table on standard error. Nothing is asserted.

    python benchmarks/scale.py --rows 10000,100000,1000000
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from _scale_data import Histories, MadeUp
from _scale_engines import Engine, Sqlite
from _scale_loading import Loading
from _scale_searching import agreement, exactness, growth, latency
from _scale_writing import processes, single, threads

ENGINES = ("sqlite", "postgres")
_SMALL_USER = 200
_COLUMNS = ("engine", "what", "rows", "users", "user_rows", "clients", "p50_ms", "p95_ms", "floor_p50_ms", "ratio")
_SAID = 400


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = _options(arguments)
    lines = []
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="threefold-scale-")))
        # The server runs as another user where this is the superuser.
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)
        for line in _measured(options, folder, stack):
            shown = {name: round(v, 4) if isinstance(v, float) else v for name, v in line.items()}
            print(json.dumps({"benchmark": "scale", **shown}, ensure_ascii=False), flush=True)
            lines.append(line)
    if not options.json_only:
        print(table(lines), file=sys.stderr)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", default="100000,1000000", help="rows of the store at each step (100000,1000000)")
    parser.add_argument(
        "--users", type=int, help=f"about so many small users at the last step ({_SMALL_USER} rows each)"
    )
    parser.add_argument("--engines", default=",".join(ENGINES), help=f"some of {','.join(ENGINES)}")
    parser.add_argument("--clients", default="1,8,32", help="clients that record at once (1,8,32)")
    parser.add_argument("--processes", type=int, default=8, help="on PostgreSQL also so many processes; 0 for none (8)")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each figure of recording takes (10)")
    parser.add_argument("--questions", type=int, default=100, help="questions for each figure of searching (100)")
    parser.add_argument("--dimensions", type=int, default=256, help="of the vectors (256)")
    parser.add_argument("--seed", type=int, default=7, help="of histories and questions (7)")
    parser.add_argument(
        "--postgres", metavar="URL", help="an empty database of an ordinary role; else a server is started"
    )
    parser.add_argument("--postgres-floor", metavar="URL", help="another empty one for bare writes, with --postgres")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="an empty folder in which everything stays")
    parser.add_argument("--json-only", action="store_true", help="no table on standard error")
    options = parser.parse_args(arguments)
    options.rows = sorted(int(rows) for rows in options.rows.split(","))
    options.clients = [int(clients) for clients in options.clients.split(",")]
    options.engines = options.engines.split(",")
    if unknown := [name for name in options.engines if name not in ENGINES]:
        parser.error(f"--engines: {', '.join(unknown)} is none of {', '.join(ENGINES)}")
    if options.keep is not None and options.keep.exists() and any(options.keep.iterdir()):
        parser.error(f"--keep: {options.keep} is not empty")
    return options


def _measured(options: argparse.Namespace, folder: Path, stack: ExitStack) -> Iterator[dict[str, Any]]:
    model = MadeUp(options.dimensions)
    engines = _engines(options, folder, model, stack)
    histories = Histories(options.seed)
    each = max(2, options.rows[-1] // options.users) if options.users else _SMALL_USER
    loading = Loading(engines, histories, model, options.questions, each)
    said = Histories(options.seed + 1).messages(_SAID)
    searched: list[dict[str, Any]] = []
    for rows in options.rows:
        for line in _step(options, loading, rows, said):
            found = {"engine": line["engine"], "what": line["what"], "rows": loading.rows, "users": loading.owners}
            searched.append(found | line)
            yield searched[-1]
    yield from growth(searched)


def _step(options: argparse.Namespace, loading: Loading, rows: int, said: Sequence[str]) -> Iterator[dict[str, Any]]:
    yield from loading.grow(rows)
    for user in loading.users:
        yield from latency(loading.engines, user)
        yield from agreement(loading.engines, user)
        yield from exactness(loading.engines, user, loading.model)
    for clients in options.clients:
        name = f"writer {rows}.{clients}"
        if clients == 1:
            yield from single(loading.engines, name, said, options.seconds)
            continue
        for engine in loading.engines:
            yield threads(engine, name, clients, said, options.seconds)
    for engine in loading.engines:
        # Processes that share one file are what tests/faults is about.
        if engine.name == "postgres" and options.processes:
            yield processes(engine, f"writer {rows}.process", options.processes, said, options.seconds)


def _engines(options: argparse.Namespace, folder: Path, model: MadeUp, stack: ExitStack) -> list[Engine]:
    made: list[Engine] = []
    if "sqlite" in options.engines:
        made.append(Sqlite(folder, model))
        stack.callback(made[-1].close)
    if "postgres" in options.engines:
        from _scale_postgres import Postgres, is_empty
        from _scale_server import Server

        store, floor = options.postgres, options.postgres_floor
        if store is None:
            server = Server(folder / "postgres")
            stack.callback(server.close, keep=options.keep is not None)
            store, floor = server.make_database("store"), server.make_database("floor")
        for url in filter(None, (store, floor)):
            if not is_empty(url):
                raise SystemExit("scale: there is a store in the database already; give an empty one")
        made.append(Postgres(store, floor, model))
        stack.callback(made[-1].close)
    return made


def table(lines: Sequence[dict[str, Any]]) -> str:
    """The figures to read; what has no column of its own stands at the end."""
    cells = [[*_COLUMNS, ""]]
    for line in lines:
        rest = {name: value for name, value in line.items() if name not in (*_COLUMNS, "path", "n", "tables")}
        more = "; ".join(f"{name.replace('_', ' ')} {_shown(value)}" for name, value in rest.items())
        cells.append([*(_shown(line.get(name)) for name in _COLUMNS), more])
    widths = [max(len(line[i]) for line in cells) for i in range(len(_COLUMNS))]
    return "\n".join(
        "  ".join([*(cell.rjust(width) for cell, width in zip(line, widths, strict=False)), line[-1]]).rstrip()
        for line in cells
    )


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 1 else f"{value:,.2f}"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    raise SystemExit(main())

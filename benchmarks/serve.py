"""The HTTP server under load on loopback: requests a second, how long each takes with several clients, and memory.

One JSON line for each figure on standard output. The server is a process of its own; so are the clients, together,
which take their share of the machine. Nothing is asserted.

    python benchmarks/serve.py --rows 10000 --clients 1,8,32 --requests 2000
"""

from __future__ import annotations

import argparse
import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

from _figures import Figure, clocked
from _metrics import percentile
from _store import embed, open_store, progress, record
from _texts import Texts, texts, turns

_USER = "user"
_QUESTIONS = 200


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000, help="rows of the user that searches (default: 10000)")
    parser.add_argument("--clients", default="1,8,32", help="clients at once, for each figure (default: 1,8,32)")
    parser.add_argument("--requests", type=int, default=2_000, help="for each figure (default: 2000)")
    parser.add_argument("--threads", type=int, default=4, help="that work in the server (default: 4)")
    parser.add_argument("--embedder", default="bundled", help="bundled (the default) or none")
    options = parser.parse_args(arguments)
    for figure in _figures(options, texts(None)):
        print(json.dumps(figure.as_json(), ensure_ascii=False), flush=True)
    return 0


def _figures(options: argparse.Namespace, source: Texts) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="threefold-serve-") as folder:
        with open_store(folder, options.embedder) as db, progress(total=options.rows // 2, desc="recording") as bar:
            record(db, _USER, list(turns(source, options.rows)), bar)
            embed(db)
            said = [hit.about for hit in db.user(_USER).conv.turns(limit=_QUESTIONS)]
        asked = [source.question(said) for _ in range(_QUESTIONS)]
        bodies = {
            "search": ("/v1/conv/search", [{"query": each, "limit": 5} for each in asked]),
            "remember": ("/v1/mem/upsert", [{"memory": each[:300] or "x"} for each in asked]),
        }
        with _served(folder, options) as (url, pid):
            Load(url, *bodies["search"]).run(1, 20)
            before = _memory(pid)
            for name, (path, sent) in bodies.items():
                for clients in map(int, options.clients.split(",")):
                    took, seconds = Load(url, path, sent).run(clients, options.requests)
                    yield Figure(
                        f"{name} over HTTP, {options.rows:,} rows, {clients} clients", len(took),
                        percentile(took, 0.5), percentile(took, 0.95), more={"per_second": len(took) / seconds},
                    )  # fmt: skip
            yield Figure("memory of the server, MB", 1, more={"before": before, "after": _memory(pid)})


class Load:
    """Requests of several clients at once, each over a connection that it keeps."""

    def __init__(self, url: str, path: str, bodies: Sequence[object]) -> None:
        self._netloc, self._path = urlsplit(url).netloc, path
        self._bodies = [json.dumps(each).encode() for each in bodies]

    def run(self, clients: int, requests: int) -> tuple[list[float], float]:
        """How long each request took, in milliseconds, and how long all of them, in seconds."""
        took: list[list[float]] = [[] for _ in range(clients)]
        threads = [
            threading.Thread(target=self._ask, args=(number, requests // clients, took[number]))
            for number in range(clients)
        ]
        start = time.perf_counter()
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        return [each for mine in took for each in mine], time.perf_counter() - start

    def _ask(self, first: int, requests: int, took: list[float]) -> None:
        connection = http.client.HTTPConnection(self._netloc, timeout=60)

        def ask() -> None:
            connection.request("POST", self._path, body, {"Content-Type": "application/json"})
            answered = connection.getresponse()
            answered.read()
            if answered.status != 200:
                raise SystemExit(f"{self._path}: {answered.status}")

        for number in range(requests):
            body = self._bodies[(first * requests + number) % len(self._bodies)]
            took.append(clocked(ask))
        connection.close()


@contextmanager
def _served(folder: str, options: argparse.Namespace) -> Iterator[tuple[str, int]]:
    command = [
        sys.executable,
        "-m",
        "threefold",
        "--db",
        folder,
        "--user",
        _USER,
        "--embedder",
        options.embedder,
        "--json",
    ]
    command += ["serve", "--port", "0", "--threads", str(options.threads)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        try:
            yield json.loads(server.stdout.readline())["url"], server.pid
        finally:
            server.terminate()


def _memory(pid: int) -> float | None:
    """Megabytes that a process holds, where the system tells."""
    try:
        done = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return int(done.stdout) / 1024


if __name__ == "__main__":
    sys.exit(main())

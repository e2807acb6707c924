"""The HTTP server under load on loopback: requests a second, how long each takes with several clients, and memory.

One JSON line for each figure on standard output. `accept` is a submission until it is kept and acknowledged, `turn` the
same until the built-in agent's answer is recorded and its last event has come; each client is a user of its own.
`--hour` asks so many searches more and tells what the server holds along the way. The server is a process of its own;
so are the clients, together, which take their share of the machine. Nothing is asserted.

    python benchmarks/serve.py --rows 10000 --clients 1,8,32 --requests 2000 --hour 18000
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from urllib.parse import urlsplit

from _figures import Figure, clocked
from _metrics import percentile
from _store import embed, open_store, progress, record
from _texts import Texts, texts, turns

_USER = "user"
_QUESTIONS = 200
# Seconds before a client that was refused asks again.
_AGAIN = 0.02


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000, help="rows of the user that searches (default: 10000)")
    parser.add_argument("--clients", default="1,8,32", help="clients at once, for each figure (default: 1,8,32)")
    parser.add_argument("--requests", type=int, default=2_000, help="for each figure (default: 2000)")
    parser.add_argument("--turns", type=int, default=200, help="turns for each figure (default: 200)")
    parser.add_argument("--hour", type=int, default=0, help="requests of an hour, for its memory (default: none)")
    parser.add_argument("--threads", type=int, default=4, help="that work in the server (default: 4)")
    parser.add_argument("--embedder", default="bundled", help="bundled (the default) or none")
    options = parser.parse_args(arguments)
    for figure in _figures(options, texts(None)):
        print(json.dumps(figure.as_json(), ensure_ascii=False), flush=True)
    return 0


def _figures(options: argparse.Namespace, source: Texts) -> Iterator[Figure]:
    crowds = [int(each) for each in options.clients.split(",")]
    with tempfile.TemporaryDirectory(prefix="threefold-serve-") as folder:
        with open_store(folder, options.embedder) as db, progress(total=options.rows // 2, desc="recording") as bar:
            record(db, _USER, list(turns(source, options.rows)), bar)
            embed(db)
            said = [hit.about for hit in db.user(_USER).conv.turns(limit=_QUESTIONS)]
            tokens = [db.tokens.create(f"{_USER}{number}", grants=None).secret for number in range(max(crowds))]
        asked = [source.question(said) for _ in range(_QUESTIONS)]
        bodies = {
            "search": ("/v1/conv/search", [{"query": each, "limit": 5} for each in asked]),
            "remember": ("/v1/mem/upsert", [{"memory": each[:300] or "x"} for each in asked]),
        }
        with _served(folder, options) as (url, pid):
            searches = Load(url, *bodies["search"])
            searches.run(1, 20)
            held = {"before": _memory(pid)}
            for name, (path, sent) in bodies.items():
                for clients in crowds:
                    took, seconds = Load(url, path, sent).run(clients, options.requests)
                    yield _figure(f"{name} over HTTP, {options.rows:,} rows", clients, took, seconds)
            for clients in crowds:
                live = Turns(url, tokens, asked)
                seconds = live.run(clients, options.turns)
                yield _figure("accept a submission", clients, live.accepted, seconds, refused=live.refused)
                yield _figure("turn with its answer", clients, live.ended, seconds)
            held["after"] = _memory(pid)
            for part in (1, 2, 3) if options.hour else ():
                searches.run(max(crowds), options.hour // 3)
                held[f"after {part * options.hour // 3:,} more searches"] = _memory(pid)
            yield Figure("memory of the server, MB", 1, more=held)


def _figure(what: str, clients: int, took: Sequence[float], seconds: float, **more: int) -> Figure:
    """Times in milliseconds of what several clients did in so many seconds."""
    rate = {"per_second": len(took) / seconds, **more}
    return Figure(f"{what}, {clients} clients", len(took), percentile(took, 0.5), percentile(took, 0.95), more=rate)


class Load:
    """Requests of several clients at once, each over a connection that it keeps."""

    def __init__(self, url: str, path: str, bodies: Sequence[object]) -> None:
        self._netloc, self._path = urlsplit(url).netloc, path
        self._bodies = [json.dumps(each).encode() for each in bodies]

    def run(self, clients: int, requests: int) -> tuple[list[float], float]:
        """How long each request took, in milliseconds, and how long all of them, in seconds."""
        took: list[list[float]] = [[] for _ in range(clients)]
        seconds = _together([partial(self._ask, number, requests // clients, mine) for number, mine in enumerate(took)])
        return [each for mine in took for each in mine], seconds

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


class Turns:
    """Live turns of several clients at once: `accepted` and `ended` are milliseconds from the sending.

    `refused` is how often the server said that too much runs; then a client asks again a little later, and both times
    count from the submission that was taken.
    """

    def __init__(self, url: str, tokens: Sequence[str], questions: Sequence[str]) -> None:
        self._netloc, self._tokens, self._questions = urlsplit(url).netloc, tokens, questions
        self.accepted: list[float] = []
        self.ended: list[float] = []
        self.refused = 0

    def run(self, clients: int, turns: int) -> float:
        """Seconds that all of them took together."""
        return _together([partial(self._talk, number, turns // clients) for number in range(clients)])

    def _talk(self, client: int, turns: int) -> None:
        headers = {"Authorization": f"Bearer {self._tokens[client]}", "Content-Type": "application/json"}
        connection = http.client.HTTPConnection(self._netloc, timeout=60)
        for number in range(turns):
            text = self._questions[(client * turns + number) % len(self._questions)] or "x"
            start = self._send(connection, headers, json.dumps({"text": text}))
            self.ended.append(1000 * (time.perf_counter() - start))
        connection.close()

    def _send(self, connection: http.client.HTTPConnection, headers: Mapping[str, str], body: str) -> float:
        """When it was sent; returns when its turn has ended."""
        while True:
            start = time.perf_counter()
            connection.request("POST", "/v1/lanes/talk", body, dict(headers))
            answered = connection.getresponse()
            told = json.loads(answered.read())
            if answered.status == 202:
                self.accepted.append(1000 * (time.perf_counter() - start))
                self._follow(headers, told["after"])
                return start
            if answered.status != 503:
                raise SystemExit(f"/v1/lanes/talk: {answered.status} {told}")
            self.refused += 1
            time.sleep(_AGAIN)

    def _follow(self, headers: Mapping[str, str], after: str) -> None:
        """Read the events of a turn to its last."""
        connection = http.client.HTTPConnection(self._netloc, timeout=60)
        connection.request("GET", f"/v1/lanes/talk/events?after={after}", headers=dict(headers))
        for line in connection.getresponse():
            if line.startswith(b"data: ") and json.loads(line[6:])["type"] in ("RUN_FINISHED", "RUN_ERROR"):
                break
        connection.close()


def _together(work: Sequence[Callable[[], None]]) -> float:
    """Seconds that all of it took, each in a thread of its own."""
    threads = [threading.Thread(target=each) for each in work]
    start = time.perf_counter()
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return time.perf_counter() - start


@contextmanager
def _served(folder: str, options: argparse.Namespace) -> Iterator[tuple[str, int]]:
    store = ["--db", folder, "--user", _USER, "--embedder", options.embedder, "--json"]
    command = [sys.executable, "-m", "threefold", *store]
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

"""A local server that speaks `/v1/embeddings`, and can be told to misbehave."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from threefold.testing.fakes import HashEmbedder

Answer = tuple[int, dict[str, str], Any]
"""Status, headers, body: what is not bytes goes out as JSON."""


class Server(ThreadingHTTPServer):
    """Answers with hashed words, of length 3 so that somebody has to normalise them, last text first.

    `plan` holds what to do with the next requests instead: called with the request's body, None for the usual.
    `limit` is how many characters of a text are too many.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, dimensions: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.dimensions, self.limit, self.key = dimensions, 1 << 60, None
        self.plan: list[Callable[[Any], Answer | None]] = []
        self.asked: list[Any] = []
        self.connections = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections += 1
        super().process_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is what some tests are about."""

    def usual(self, body: Any) -> Answer:
        if max(map(len, body["input"])) > self.limit:
            return 400, {}, {"error": {"message": "the input is longer than the context length of this model"}}
        vectors = 3 * HashEmbedder(body.get("dimensions", self.dimensions)).embed(body["input"])
        data = [{"object": "embedding", "index": i, "embedding": v.tolist()} for i, v in enumerate(vectors)]
        return 200, {}, {"object": "list", "data": data[::-1], "model": body["model"]}


class Handler(BaseHTTPRequestHandler):
    """Keeps connections open, as real servers do."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        raw.decode("utf-8")
        body = json.loads(raw)
        self.server.asked.append({"path": self.path, "key": self.headers.get("Authorization"), **body})
        planned = self.server.plan.pop(0)(body) if self.server.plan else None
        status, headers, answer = planned or self.server.usual(body)
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving(dimensions: int = 48) -> Iterator[Server]:
    """A server at work."""
    server = Server(dimensions)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

"""A real server on loopback in a thread of the test, and clients of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx2

import threefold
from threefold.model.scope import Scope
from threefold.surfaces.http import Settings, application
from threefold.surfaces.http.lanes import Live
from threefold.surfaces.http.serving import Server as HTTPServer
from threefold.surfaces.http.serving import configured, listen

ANN = Scope("ann")


class Server:
    """A store that is served, and how it is asked."""

    def __init__(self, db: threefold.Threefold, url: str, live: Live) -> None:
        self.db, self.url, self.live = db, url, live
        self.host = url.removeprefix("http://")

    def client(self, token: str | None = None, **headers: str) -> httpx2.Client:
        """A client with a token, or as the one user of this machine."""
        given = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx2.Client(base_url=self.url, headers={**given, **headers}, timeout=60)

    def token(self, user: str = "ann", grants: Any = None, **more: Any) -> str:
        """A new token."""
        return self.db.tokens.create(user, grants=grants, **more).secret


@contextmanager
def served(db: threefold.Threefold, agents: Sequence[Any] = (), **settings: Any) -> Iterator[Server]:
    """The store, served on a free port until the block is left; the store stays open."""
    started, ended = threading.Event(), threading.Event()

    given = Settings(**{"local": ANN, **settings})
    app = application(db, given, agents, ended.set)
    server = HTTPServer(configured(app, given), started.set, app.state.live.end)
    with listen("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            assert started.wait(30)
            yield Server(db, f"http://127.0.0.1:{listening.getsockname()[1]}", app.state.live)
        finally:
            server.should_exit = True
            thread.join(60)
    assert ended.is_set()


def problem(response: httpx2.Response, status: int) -> dict[str, Any]:
    """What is said of an error, which is told as every one is."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    said = response.json()
    assert said.keys() == {"type", "title", "status", "detail", "instance"}
    assert said["status"] == status
    assert said["instance"].endswith(response.headers["x-request-id"])
    assert "Traceback" not in response.text
    return said

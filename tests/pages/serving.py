"""A store that is served on loopback, in a thread of the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import uvicorn

import threefold
from threefold.model.scope import Scope
from threefold.surfaces.http import Settings, application
from threefold.surfaces.http.serving import listen


class Server(NamedTuple):
    """What is served, where, and the kernel behind it."""

    db: threefold.Threefold
    url: str
    kernel: threefold.Kernel


@contextmanager
def served(db: threefold.Threefold, local: str | None = "ann") -> Iterator[Server]:
    """The store, served until the block is left; `local` is who needs no token, None where everybody does."""
    started, ended = threading.Event(), threading.Event()

    class Loud(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            started.set()

    app = application(db, Settings(None if local is None else Scope(local)), ended.set)
    server = Loud(uvicorn.Config(app, log_config=None, access_log=False, lifespan="on", ws="none", server_header=False))
    with listen("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            assert started.wait(30)
            yield Server(db, f"http://127.0.0.1:{listening.getsockname()[1]}", app.state.live.kernel)
        finally:
            server.should_exit = True
            thread.join(60)
    assert ended.is_set()

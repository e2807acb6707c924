"""A server in a process of its own, which can be killed and started again: `python killed_server.py STORE PORT`.

Its one agent says something of what is asked "slowly" and does not end; all else it answers at once.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TESTS = Path(__file__).parent.parent


class Killed:
    """The process; `url` is the same whenever it runs."""

    def __init__(self, store: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self._store, self.url = store, f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, on the same store and port; it answers when this returns."""
        command = [sys.executable, __file__, self._store, str(self._port)]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, sys.path)])}
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, env=env, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "answers\n"

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


@contextmanager
def killed(store: str) -> Iterator[Killed]:
    """A server that runs, until the block is left."""
    server = Killed(store)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def main(store: str, port: int) -> None:
    import uvicorn

    import threefold
    from threefold import Door
    from threefold.host.run import Run
    from threefold.model.scope import Scope
    from threefold.surfaces.http import Settings, application
    from threefold.surfaces.http.serving import listen

    def agent(run: Run) -> str:
        """Takes its time."""
        run.step("look up", {"what": "ferries"}, "two a day")
        run.say("First this. ")
        if "slowly" in run.goal:
            threading.Event().wait()
        return f"First this. Then that, for {run.goal!r}."

    class Telling(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            sys.stdout.write("answers\n")
            sys.stdout.flush()

    db = threefold.open(store, embedder=None, background=False, durable=False)
    app = application(db, Settings(local=Scope("ann")))
    live = app.state.live
    live.kernel.agents.register(agent, name="slow")
    # As it is, but for how long nothing must be heard of a process before another one ends its turns.
    live.door = Door(live.kernel, lease=2, look=0.2)
    with listen("127.0.0.1", port) as listening:
        Telling(uvicorn.Config(app, log_config=None, lifespan="on", ws="none")).run([listening])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

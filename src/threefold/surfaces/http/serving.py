"""Running the application: a socket, one process or several, until a signal says to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, Final

import uvicorn

from threefold.app import Threefold
from threefold.errors import InvalidInput, ThreefoldError, Unavailable
from threefold.host.agents import Agent
from threefold.host.loading import load_agents
from threefold.surfaces.http.app import application
from threefold.surfaces.http.gate import is_loopback
from threefold.surfaces.http.limits import Rates, table
from threefold.surfaces.http.logs import log_to_stderr
from threefold.surfaces.http.settings import Settings
from threefold.surfaces.http.wire import wire
from threefold.surfaces.http.workers import Workers

# Requests that are being answered may take so long to end; then they are cut off.
_GRACE: Final = 30
_BACKLOG: Final = 2048
# Seconds that threads have to end once all is said and kept.
_LEAVE: Final = 2.0
logger = logging.getLogger("threefold.http")


@dataclass(frozen=True, slots=True)
class Service:
    """What is served, as it is handed to processes: how the store is opened, the settings, agents by name."""

    opening: Callable[[], Threefold]
    settings: Settings
    agents: tuple[str, ...] = ()
    as_json: bool = False


def serve(service: Service, listening: socket.socket, workers: int, started: Callable[[], object]) -> None:
    """Answer requests on a socket until SIGTERM or SIGINT; `started` is called once they are answered.

    Raises:
        ThreefoldError: the store cannot be opened, nobody could come in, or a worker cannot begin.
    """
    agents = load_agents(service.agents)
    db = service.opening()
    try:
        check_entrance(db, service.settings)
        check_agents(db, agents)
    except InvalidInput:
        db.close()
        raise
    log_to_stderr(service.as_json)
    if workers == 1:
        server = _server(service, db, agents, started)
        with _signals_end_it():
            server.run([listening])
        _leave()
        return
    db.close()
    Workers(_work, (service, listening, table(shared=True)), workers).run(started)


def check_entrance(db: Threefold, settings: Settings) -> None:
    """Refuse to serve where nobody could come in.

    Raises:
        InvalidInput: everyone needs a token, and there is none.
    """
    if settings.local is None and not db.tokens.list():
        raise InvalidInput(
            "whoever asks from elsewhere needs a token, and there is none: make one with `threefold tokens create`, "
            "or serve this machine alone with --host 127.0.0.1"
        )


def check_agents(db: Threefold, agents: tuple[Agent, ...]) -> None:
    """Refuse agents that could never say anything.

    Raises:
        InvalidInput: one has no function, and the store no chat model that would speak for it.
    """
    for each in agents:
        if each.executor is None and db.chat is None:
            raise InvalidInput(f"agent {each.name!r} has no function of its own; name a chat model with --chat")


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 is any that is free.

    Raises:
        Unavailable: the address cannot be had.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
    except OSError as error:
        raise Unavailable(f"--host {host}: {error.strerror or error}; give an address of this machine") from None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(_BACKLOG)
        made.set_inheritable(True)
    except OSError as error:
        made.close()
        raise Unavailable(f"{host} port {port}: {error.strerror or error}; give another with --port") from None
    return made


def is_own(listening: socket.socket) -> bool:
    """Whether only this machine can reach a socket."""
    return is_loopback(str(listening.getsockname()[0]))


def configured(app: Any, settings: Settings) -> uvicorn.Config:
    """How the application is run."""
    return uvicorn.Config(
        app,
        http=wire(settings.connections, settings.seconds),
        # Its own would have the paths that were asked for.
        log_config=None,
        access_log=False,
        lifespan="on",
        ws="none",
        server_header=False,
        # What a proxy says of the client is believed nowhere.
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE,
    )


def _server(
    service: Service, db: Threefold, agents: tuple[Agent, ...], started: Callable[[], object], asked: Any = None
) -> Server:
    app = application(db, service.settings, agents, db.close)
    app.state.desk.rates = Rates(service.settings.rate, asked=asked)
    return Server(configured(app, service.settings), started, app.state.live.end)


def _work(service: Service, listening: socket.socket, asked: Any, line: Connection) -> None:
    """One of several processes. It answers until its line to the first one ends, and says on it when it begins to."""
    log_to_stderr(service.as_json)
    try:
        agents = load_agents(service.agents)
        server = _server(service, service.opening(), agents, partial(line.send, "answers"), asked)
    except ThreefoldError as error:
        logger.error("a worker cannot begin: %s", error)
        sys.exit(1)
    threading.Thread(target=_heed, args=(line, server), daemon=True).start()
    with _signals_end_it():
        server.run([listening])
    _leave()


def _heed(line: Connection, server: uvicorn.Server) -> None:
    """Have the server end when the line does: the first process wants that, or is gone."""
    with suppress(EOFError, OSError):
        line.recv()
    server.should_exit = True


class Server(uvicorn.Server):
    """A server that says when it answers, and ends the streams of viewers rather than wait for those who look."""

    def __init__(
        self, config: uvicorn.Config, started: Callable[[], object], ending: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(config)
        self._say, self._end, self._signals = started, ending, 0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See `uvicorn.Server.startup`."""
        await super().startup(sockets)
        self._say()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """See `uvicorn.Server.handle_exit`. A second signal waits for nobody: what was accepted is kept already."""
        self._signals += 1
        if self._signals > 1:
            os._exit(1)
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """See `uvicorn.Server.shutdown`. New connections are refused from its beginning."""
        ending = asyncio.ensure_future(self._end())
        await super().shutdown(sockets)
        await ending


def _leave() -> None:
    """End the process where an agent does not look whether it was stopped: its thread would be waited for, for ever."""
    if threading.current_thread() is not threading.main_thread():
        return
    ends = time.monotonic() + _LEAVE
    others = [each for each in threading.enumerate() if each is not threading.main_thread() and not each.daemon]
    for each in others:
        each.join(max(0.0, ends - time.monotonic()))
    if left := sum(each.is_alive() for each in others):
        logger.warning("%d threads of agents that do not look whether they are stopped are left behind", left)
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)


@contextmanager
def _signals_end_it() -> Iterator[None]:
    """The server stops at a signal, and raises it again for who was there before: nobody, so that this ends well."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {sign: signal.signal(sign, lambda *_: None) for sign in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)
        logging.shutdown()

"""Running the application: a socket, one process or several, until a signal says to stop."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import uvicorn
from uvicorn.supervisors import Multiprocess

from threefold.app import Threefold
from threefold.errors import InvalidInput, Unavailable
from threefold.surfaces.http.app import application
from threefold.surfaces.http.logs import log_to_stderr
from threefold.surfaces.http.settings import Settings

# Requests that are being answered may take so long to end; then they are cut off.
_GRACE: Final = 30
_BACKLOG: Final = 2048

Opening = Callable[[], Threefold]


def serve(
    opening: Opening, settings: Settings, listening: socket.socket, workers: int, as_json: bool,
    started: Callable[[], object],
) -> None:  # fmt: skip
    """Answer requests on a socket until SIGTERM or SIGINT; `started` is called once they are answered.

    With several workers `opening` and the settings are handed to their processes.

    Raises:
        ThreefoldError: the store cannot be opened, or nobody could come in.
    """
    if workers == 1:
        db = opening()
        try:
            check_entrance(db, settings)
        except InvalidInput:
            db.close()
            raise
        log_to_stderr(as_json)
        app = application(db, settings, db.close)
        server = _Server(_config(app, 1), started, app.state.live.end)
        with _signals_end_it():
            server.run([listening])
        return
    with opening() as db:
        check_entrance(db, settings)
    log_to_stderr(as_json)
    config = _config(partial(_made, opening, settings, as_json), workers)
    started()
    Multiprocess(config, [listening]).run()


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


def _made(opening: Opening, settings: Settings, as_json: bool) -> Any:
    """The application of one of several processes."""
    log_to_stderr(as_json)
    db = opening()
    return application(db, settings, db.close)


def _config(app: Any, workers: int) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        factory=workers > 1,
        workers=workers,
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


class _Server(uvicorn.Server):
    """A server that says when it answers, and ends the streams of viewers before it waits for who is there."""

    def __init__(
        self, config: uvicorn.Config, started: Callable[[], object], ending: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(config)
        self._say, self._end = started, ending

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See `uvicorn.Server.startup`."""
        await super().startup(sockets)
        self._say()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """See `uvicorn.Server.shutdown`."""
        await self._end()
        await super().shutdown(sockets)


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

"""MCP over standard input and output: one client, until it leaves or a signal says to stop."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any, Final

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
from mcp.server.stdio import stdio_server

from threefold.errors import ThreefoldError
from threefold.services import Caller
from threefold.surfaces.mcp.desk import logger
from threefold.surfaces.mcp.opening import Opening
from threefold.surfaces.mcp.server import serving

_CHUNK: Final = 65_536
# What a call that was left behind may take to end, before the process ends without it.
_PATIENCE: Final = 2.0


def serve(opening: Opening, caller: Caller, lines: int, wire: int) -> None:
    """Serve a client on two file descriptors that nobody else reads or writes. The store is closed at the end."""
    try:
        anyio.run(_serve, opening, caller, lines, wire)
    except* OSError as errors:
        # Who reads the answers is gone, and with it whom to tell.
        logger.info("the client is gone: %s", errors.exceptions[0])
    if not opening.close(_PATIENCE):
        logger.warning("a call did not end; the process ends without it, what was acknowledged is kept")
        sys.stderr.flush()
        # Its thread would be waited for without an end.
        os._exit(0)


async def _serve(opening: Opening, caller: Caller, lines: int, wire: int) -> None:
    server = serving(opening, caller)
    # Answers are one line each, on Windows too.
    out = anyio.wrap_file(os.fdopen(wire, "w", encoding="utf-8", newline="\n", closefd=False))
    async with anyio.create_task_group() as group:
        with _stopped_by_signals(group.cancel_scope.cancel):
            group.start_soon(_open, opening)
            # What is given needs no more of a file than that its lines are iterated over.
            given: Any = Lines(lines)
            async with stdio_server(given, out) as (read, write):
                await server.run(read, write, server.create_initialization_options())
            group.cancel_scope.cancel()


async def _open(opening: Opening) -> None:
    """Open the store while the client still says who it is; that it cannot be is told with each call too."""
    try:
        await anyio.to_thread.run_sync(opening.open, abandon_on_cancel=True)
    except ThreefoldError as error:
        logger.error("%s; `threefold doctor` says more", error)


@contextmanager
def _stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    signs = [signal.SIGINT, signal.SIGTERM]
    before = {sign: signal.signal(sign, lambda *_: loop.call_soon_threadsafe(stop)) for sign in signs}
    try:
        yield
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)


class Lines:
    """The lines of a file descriptor, read by a thread that nobody waits for: a read cannot be cancelled."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def __aiter__(self) -> AsyncIterator[str]:
        send, receive = anyio.create_memory_object_stream[str](0)
        token = anyio.lowlevel.current_token()

        def read() -> None:
            try:
                for line in self._read():
                    anyio.from_thread.run(send.send, line, token=token)
                anyio.from_thread.run_sync(send.close, token=token)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, RuntimeError, CancelledError):
                # Nobody listens any more.
                return

        threading.Thread(target=read, name="threefold-mcp-lines", daemon=True).start()
        with receive:
            async for line in receive:
                yield line

    def _read(self) -> Iterator[str]:
        # Not through a buffered file: at the end of the process it would be closed while this thread waits in it.
        begun: list[bytes] = []
        while chunk := os.read(self._descriptor, _CHUNK):
            *ends, rest = chunk.split(b"\n")
            for end in ends:
                yield b"".join([*begun, end]).decode("utf-8", "replace")
                begun = []
            begun.append(rest)
        if any(begun):
            yield b"".join(begun).decode("utf-8", "replace")

"""Blocking work in threads: so many at once, each for so long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import Any, TypeVar

from threefold.surfaces.http.problems import Refused

T = TypeVar("T")


class Work:
    """A pool of threads. Not anyio's: there a thread whose caller waits no longer is not counted, and more begin."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="threefold-http")
        self._running = set[Future[Any]]()

    async def do(self, work: Callable[[], T], seconds: float) -> T:
        """What `work` gives in a thread. One that takes longer goes on by itself; what it had begun is done.

        Raises:
            Refused: it took longer than `seconds` (504), or no thread was free for so long (503). Others as `work`.
        """
        try:
            running = self._pool.submit(copy_context().run, work)
        except RuntimeError:  # the pool is shut down
            raise Refused(503, "the server is ending; ask another one, or again in a moment") from None
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        try:
            async with asyncio.timeout(seconds) as limit:
                return await asyncio.wrap_future(running)
        except TimeoutError:
            if not limit.expired():
                raise
            if running.cancelled():  # it had not begun
                raise Refused(503, f"no thread was free for {seconds:g} seconds; ask again later") from None
            raise Refused(504, f"it took longer than {seconds:g} seconds; ask for less, or for a part of it") from None

    def end(self, patience: float) -> bool:
        """Take no more work; False where some did not end within `patience` seconds."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        return not wait(list(self._running), patience).not_done

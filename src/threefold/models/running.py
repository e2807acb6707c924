"""Asynchronous work from code that waits, whether or not an event loop runs in its thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any, TypeVar

from threefold.errors import Unavailable

_T = TypeVar("_T")


def run(make: Callable[[], Coroutine[Any, Any, _T]], seconds: float, what: str) -> _T:
    """The result of what `make` begins in an event loop of its own, on a thread of its own that ends with it.

    Where the caller is interrupted, so is the work.

    Raises:
        Unavailable: it took longer than `seconds`. Otherwise what it raises.
    """
    done: Future[_T] = Future()
    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()

    async def work() -> _T:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - it is one
        begun.set_result((asyncio.get_running_loop(), task))
        try:
            async with asyncio.timeout(seconds):
                return await make()
        except TimeoutError:
            raise Unavailable(f"{what} took longer than {seconds:g} s") from None

    def on_thread() -> None:
        try:
            done.set_result(asyncio.run(work()))
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread that waits
            done.set_exception(error)

    thread = threading.Thread(target=copy_context().run, args=(on_thread,), name="threefold-chat", daemon=True)
    thread.start()
    try:
        return done.result()
    except BaseException:
        if not done.done():  # the waiting was interrupted, not the work
            loop, task = begun.result()
            loop.call_soon_threadsafe(task.cancel)
        raise
    finally:
        thread.join()

"""Calling engines, which are foreign code: it may raise anything, take long, be plain or `async`."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

from threefold.errors import EngineFailed

# Seconds that what is cancelled has to end in.
_PATIENCE: Final = 5.0
# In a thread that a loop of engines waits for, `held` is true: what is called from there must not wait for that loop.
_here = threading.local()


def called(name: str, call: Callable[[], Any]) -> Any:
    """Call foreign code: whatever it raises becomes an error of ours, but for an interrupt by the person.

    Raises:
        EngineFailed: it raised.
    """
    try:
        return call()
    except (EngineFailed, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise EngineFailed(_failed(name, error)) from error


def apart(name: str, call: Callable[[], Any], seconds: float) -> Any:
    """Call in a thread of its own and wait so long; a thread that does not end is left, and keeps no process alive.

    Raises:
        EngineFailed: it took longer. Otherwise what the call raises.
    """
    done, held, context = Future[Any](), _held(), contextvars.copy_context()

    def work() -> None:
        _here.held = held
        try:
            done.set_result(context.run(call))
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread that waits
            done.set_exception(error)

    threading.Thread(target=work, name="threefold-engine", daemon=True).start()
    if not concurrent.futures.wait((done,), seconds).done:
        raise EngineFailed(f"context engine {name} took longer than {seconds:g} seconds")
    return done.result()


class Loop:
    """An event loop in a thread of its own, which begins when it is first needed and ends with `close`."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._ended = Future[None]()
        self._closed = False

    def finished(self, name: str, made: Any, seconds: float | None = None) -> Any:
        """A value as it is, or what an awaitable gives, waited for so long.

        Where the loop itself waits for the caller, a loop that is made for this call does it.

        Raises:
            EngineFailed: it raised, took longer, or the loop was closed meanwhile.
        """
        if not inspect.isawaitable(made):
            return made
        if not _held():
            return self._finished(name, made, seconds)
        other = Loop()
        try:
            return other._finished(name, made, seconds)
        finally:
            other.close()

    def _finished(self, name: str, made: Any, seconds: float | None) -> Any:
        working = _awaited(name, made)
        with self._lock:
            if self._closed:
                _close(working)
                _close(made)
                raise EngineFailed(f"context engine {name} failed: the store is closed")
            future = asyncio.run_coroutine_threadsafe(working, self._running())
        try:
            done = concurrent.futures.wait((future, self._ended), seconds, concurrent.futures.FIRST_COMPLETED).done
        except BaseException:
            future.cancel()
            raise
        if future in done and not future.cancelled():
            return future.result()
        if done:
            raise EngineFailed(f"context engine {name} failed: the store was closed meanwhile")
        future.cancel()
        raise EngineFailed(f"context engine {name} took longer than {seconds:g} seconds")

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._run, name="threefold-contexts", daemon=True)
            self._thread.start()
        return self._loop

    def _run(self) -> None:
        loop = self._loop
        assert loop is not None  # noqa: S101 - the thread is begun with it
        _here.held = True
        try:
            loop.run_forever()
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            if tasks:
                loop.run_until_complete(asyncio.wait(tasks, timeout=_PATIENCE))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            self._ended.set_result(None)
            loop.close()

    def close(self) -> None:
        """Cancel what runs, wait for it, end the thread; safe to call twice, and from within the loop."""
        with self._lock:
            self._closed = True
            loop, thread, self._loop = self._loop, self._thread, None
            if loop is not None:
                loop.call_soon_threadsafe(loop.stop)
        if thread is not None and thread is not threading.current_thread():
            thread.join(2 * _PATIENCE)


async def _awaited(name: str, made: Any) -> Any:
    """What foreign code gives. Nothing else may leave a task of the loop: an exit would end the loop itself."""
    try:
        return await made
    except BaseException as error:
        raise EngineFailed(_failed(name, error)) from error


def _failed(name: str, error: BaseException) -> str:
    return f"context engine {name} failed: {type(error).__name__}: {error}".rstrip(": ")


def _held() -> bool:
    return getattr(_here, "held", False)


def _close(made: Any) -> None:
    if inspect.iscoroutine(made):
        made.close()

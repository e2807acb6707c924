"""The asynchronous face: the same names, awaited. Derived from the synchronous one, not written twice.

    async with threefold.aio.open("store") as db:
        alice = db.user("alice")
        async with alice.turn("trip") as turn:
            await turn.prompt("Plan a weekend in Lisbon")
            await turn.answer("Here is the plan")
        hits = await alice.conv.search("lisbon")

Whatever may wait for a file or a lock runs in a small pool of threads; callers in it share commits. Handles and turns
are made at once and may be awaited too. What a turn collects is collected at once: a forgotten `await` loses nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial, wraps
from pathlib import Path
from typing import Any, Self

from threefold.app import Threefold
from threefold.app import open as open_store
from threefold.app import restore as restore_store
from threefold.config import Config
from threefold.errors import Unavailable
from threefold.handle import Commons, Handle
from threefold.realms.access.tokens import Tokens
from threefold.realms.cnv import BoardHandle, Cnv
from threefold.realms.conv import Conv
from threefold.realms.conv.recorder import TurnHandle
from threefold.realms.conv.threads import Thread
from threefold.realms.doc import Doc
from threefold.realms.mem import Mem
from threefold.services import Services

THREADS = 32

# What only makes an object: nothing to wait for.
_MAKERS = frozenset({"user", "turn", "open_turn", "thread", "board", "organization", "everyone", "services"})

# Objects whose own methods are awaited.
_FACED = (Handle, Commons, Conv, Mem, Doc, Cnv, BoardHandle, Thread, Services, Tokens)


class Done(Awaitable[Any]):
    """The result of something that has been done already; awaiting it is free and optional."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def __await__(self) -> Generator[Any, None, Any]:
        return self.result
        yield  # makes this a generator


class Face:
    """An object whose methods are awaited; its parts that are realms or handles have faces of their own."""

    def __init__(self, target: Any, pool: ThreadPoolExecutor) -> None:
        self._target, self._pool = target, pool

    def __await__(self) -> Generator[Any, None, Self]:
        return self
        yield  # makes this a generator

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if name.startswith("_"):
            raise AttributeError(name)
        if not callable(value):
            return self._faced(value)
        if name in _MAKERS and not (name == "turn" and isinstance(self._target, Conv)):
            return wraps(value)(lambda *args, **kwargs: self._faced(value(*args, **kwargs)))
        return wraps(value)(partial(self._call, value))

    async def _call(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        loop = asyncio.get_running_loop()
        try:
            running = loop.run_in_executor(self._pool, partial(method, *args, **kwargs))
        except RuntimeError:  # the pool went with the store
            raise Unavailable("the store is closed; open it again") from None
        return await running

    def _faced(self, value: Any) -> Any:
        if isinstance(value, TurnHandle):
            return AsyncTurn(value, self._pool)
        return Face(value, self._pool) if isinstance(value, _FACED) else value

    def __dir__(self) -> list[str]:
        return [name for name in dir(self._target) if not name.startswith("_")]


class AsyncTurn(Face):
    """The asynchronous twin of `TurnHandle`: leaving the block records the turn without holding up the loop."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if not callable(value) or name in ("record", "close"):
            return super().__getattr__(name)
        return wraps(value)(lambda *args, **kwargs: Done(value(*args, **kwargs)))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        # Shielded: a turn that ends because its task is cancelled is still recorded, as cancelled.
        await asyncio.shield(asyncio.ensure_future(self._call(self._target.close, error)))


class AsyncThreefold(Face):
    """The asynchronous twin of `Threefold`."""

    def __init__(self, target: Threefold, pool: ThreadPoolExecutor) -> None:
        super().__init__(target, pool)
        self._closed = False

    @property
    def sync(self) -> Threefold:
        """The synchronous twin, over the same store: what `threefold.Kernel` works with."""
        target: Threefold = self._target
        return target

    async def restore(self, path: str | Path, **options: Any) -> Any:
        """`threefold.restore` into this store."""
        return await self._call(partial(restore_store, path, self._target, **options))

    async def close(self) -> None:
        """Stop the background work and release files and threads; safe to call twice."""
        if not self._closed:
            self._closed = True
            await self._call(self._target.close)
            self._pool.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _Opening(Awaitable[AsyncThreefold]):
    """`await open(…)` or `async with open(…)`."""

    def __init__(self, opening: Callable[[], Threefold]) -> None:
        self._opening = opening
        self._opened: AsyncThreefold | None = None

    async def _open(self) -> AsyncThreefold:
        pool = ThreadPoolExecutor(THREADS, thread_name_prefix="threefold-aio")
        with ExitStack() as undo:
            undo.callback(pool.shutdown, wait=False)
            db = await asyncio.get_running_loop().run_in_executor(pool, self._opening)
            undo.pop_all()
        return AsyncThreefold(db, pool)

    def __await__(self) -> Generator[Any, None, AsyncThreefold]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncThreefold:
        self._opened = await self._open()
        return self._opened

    async def __aexit__(self, *_: object) -> None:
        if self._opened is not None:
            await self._opened.close()


def open(store: str | Path | None = None, config: Config | None = None, **settings: Any) -> _Opening:  # noqa: A001
    """Open a store as `threefold.open` does; await it or use it in `async with`."""
    return _Opening(partial(open_store, store, config, **settings))

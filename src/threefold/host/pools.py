"""Threads of a kernel: agents, engines and the store have their own, so that none waits for another's slow ones."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

from threefold.errors import Unavailable

_P = ParamSpec("_P")
_T = TypeVar("_T")
_AGENTS: Final = 64
_ENGINES: Final = 32
_STORE: Final = 16


class Pools:
    """Pools of threads, which are begun as they are needed."""

    def __init__(self) -> None:
        self.agents: Executor = ThreadPoolExecutor(_AGENTS, "threefold-agents")
        self.engines: Executor = ThreadPoolExecutor(_ENGINES, "threefold-engines")
        self.store: Executor = ThreadPoolExecutor(_STORE, "threefold-store")

    def close(self) -> None:
        """End the threads when they are done; nothing is waited for."""
        for pool in (self.agents, self.engines, self.store):
            pool.shutdown(wait=False)


async def within(pool: Executor, call: Callable[_P, _T], *values: _P.args, **named: _P.kwargs) -> _T:
    """Call in a thread of a pool, with the caller's context variables.

    Raises:
        Unavailable: the pool is closed. Otherwise what the call raises.
    """
    context = contextvars.copy_context()
    try:
        working = asyncio.get_running_loop().run_in_executor(pool, partial(context.run, call, *values, **named))
    except RuntimeError:  # the pool went with the kernel
        raise Unavailable("the kernel is closed; start it again") from None
    return await working

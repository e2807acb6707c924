"""Streams of events: how many there may be, and that they end when who watches may do so no more."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Final

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from threefold.host.live import LaneEvent
from threefold.surfaces.http.problems import Refused

STREAM: Final = "text/event-stream"
# Seconds after which a quiet stream says that it is there, for proxies that would close it; and it is looked whether
# who watches may still do so.
QUIET: Final = 10.0


class Streams:
    """Lets so many watch at once, and so many with one token."""

    def __init__(self, most: int, own: int) -> None:
        self._most, self._own = most, own
        self._watching = Counter[str]()
        self._over = asyncio.Event()

    def close(self) -> None:
        """End those that go on `while_held`, since the server ends."""
        self._over.set()

    async def while_held(self, work: Coroutine[Any, Any, None], holds: Callable[[], Awaitable[bool]]) -> None:
        """Do `work` until it is done, who watches may do so no more, or the server ends."""
        working, over = asyncio.ensure_future(work), asyncio.ensure_future(self._over.wait())
        try:
            while True:
                done, _ = await asyncio.wait((working, over), timeout=QUIET, return_when=asyncio.FIRST_COMPLETED)
                if working in done:
                    return working.result()
                if over in done or not await holds():
                    return None
        finally:
            for each in (working, over):
                each.cancel()
            await asyncio.wait((working, over))

    def begin(self, name: str) -> None:
        """Count one more.

        Raises:
            Refused: 503, 429: it is one too many.
        """
        if self._watching[name] >= self._own:
            said = f"{self._own} streams are open already; close one, or follow fewer conversations"
            raise Refused(429, said, {"Retry-After": "10"})
        if self._watching.total() >= self._most:
            raise Refused(503, f"{self._most} streams are open already; ask again in a moment")
        self._watching[name] += 1

    def end(self, name: str) -> None:
        """Count one less."""
        self._watching[name] -= 1
        self._watching += Counter()  # who has none is not kept


class Stream(StreamingResponse):
    """A stream of events, counted while it is open. It goes on while `holds`."""

    def __init__(
        self,
        events: AsyncGenerator[LaneEvent, None],
        holds: Callable[[], Awaitable[bool]],
        streams: Streams,
        name: str,
    ) -> None:
        super().__init__(_lines(events, holds), headers={"X-Accel-Buffering": "no"}, media_type=STREAM)
        self._streams, self._name = streams, name
        streams.begin(name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.end(self._name)


async def _lines(events: AsyncGenerator[LaneEvent, None], holds: Callable[[], Awaitable[bool]]) -> AsyncIterator[str]:
    """Events as the stream has them, while `holds`; a comment at first, and whenever nothing happened for a while."""
    coming, looked = _next(events), time.monotonic()
    try:
        yield ": follows\n\n"
        while True:
            done, _ = await asyncio.wait((coming,), timeout=QUIET)
            if time.monotonic() - looked >= QUIET:
                if not await holds():
                    return
                looked = time.monotonic()
            if not done:
                yield ": quiet\n\n"
                continue
            try:
                event = coming.result()
            except StopAsyncIteration:
                return
            yield f"id: {event.id}\ndata: {json.dumps(event.data, ensure_ascii=False)}\n\n"
            coming = _next(events)
    finally:
        coming.cancel()
        await asyncio.wait((coming,))
        await events.aclose()


def _next(events: AsyncGenerator[LaneEvent, None]) -> asyncio.Future[LaneEvent]:
    return asyncio.ensure_future(anext(events))

"""How much is taken at once: bodies, requests in flight, requests of a token in a minute."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Final

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from threefold.surfaces.http.problems import Refused, of_refusal

# Of so many tokens it is known how much they asked for lately.
_KNOWN: Final = 10_000
# What answers without doing work, and streams, which have limits of their own.
_FREE: Final = ("/v1/lanes/", "/health", "/ready", "/metrics")


async def chunks(request: Request, most: int, seconds: float) -> AsyncIterator[bytes]:
    """The body, piece by piece.

    Raises:
        Refused: 413 where it is longer than `most`, 408 where it takes longer than `seconds`.
    """
    said = request.headers.get("content-length", "0")
    if said.isdecimal() and int(said) > most:
        raise too_large(most)
    size = 0
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                size += len(chunk)
                if size > most:
                    raise too_large(most)
                yield chunk
    except TimeoutError:
        raise Refused(408, f"the body did not come within {seconds:g} seconds; send it again") from None


def too_large(most: int) -> Refused:
    """The refusal of a body."""
    return Refused(413, f"the body has more than {most:,} bytes, the most that is taken; send less, or in parts")


class Rates:
    """How much each may still ask for: so many requests in a minute, and no more than that at once."""

    def __init__(self, rate: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, name: str, own: int | None = None) -> None:
        """Count a request; `own` is a rate of the one who asks, instead of the rate of all.

        Raises:
            Refused: 429 where it is one too many.
        """
        rate = self._rate if own is None else own
        if rate is None:
            return
        now = self._clock()
        left, at = self._left.pop(name, (float(rate), now))
        left = min(rate, left + (now - at) * rate / 60)
        # The one that asked last stands last; who has not asked for longest is forgotten, and has all again.
        self._left[name] = (max(0.0, left - 1), now) if left >= 1 else (left, now)
        if len(self._left) > _KNOWN:
            del self._left[next(iter(self._left))]
        if left < 1:
            wait = max(1, round((1 - left) * 60 / rate))
            said = f"at most {rate} requests in a minute; ask again in {wait} seconds"
            raise Refused(429, said, {"Retry-After": str(wait)})


class Crowd:
    """Takes so many requests at once and refuses more, so that those that were taken are answered."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most, self._here = app, most, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["path"].startswith(_FREE):
            await self._app(scope, receive, send)
            return
        if self._here >= self._most:
            refused = Refused(503, f"{self._most} requests are being answered; ask again in a moment")
            await of_refusal(refused, scope["threefold.request"])(scope, receive, send)
            return
        self._here += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._here -= 1

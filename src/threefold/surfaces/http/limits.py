"""How much is taken at once: bodies, requests in flight, requests of a token in a minute."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from array import array
from collections.abc import AsyncIterator, Callable, MutableSequence
from contextlib import ExitStack
from hashlib import blake2b
from typing import Final

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from threefold.surfaces.http.problems import Refused, of_refusal

# How much each asked for lately is kept in a table: places of one name are one of so many groups, of so many places.
_GROUPS: Final = 1250
_PLACES: Final = 8
# Of a place: whose it is, as a number, how much is left, and when that was so.
_FIELDS: Final = 3
# What answers without doing work.
_FREE: Final = ("/health", "/ready", "/metrics")
_STAYING: Final = "threefold.staying"


async def chunks(request: Request, most: int, seconds: float) -> AsyncIterator[bytes]:
    """The body, piece by piece.

    Raises:
        Refused: 413 where it is longer than `most`, 408 where it takes longer than `seconds`, 415 where it is packed.
    """
    if request.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise Refused(415, "send the body as it is, without Content-Encoding", {"Accept-Encoding": "identity"})
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


def table(shared: bool = False) -> MutableSequence[float]:
    """What `Rates` keep, in this process or shared with those that it is handed to as they are made."""
    size = _GROUPS * _PLACES * _FIELDS
    return multiprocessing.RawArray("d", size) if shared else array("d", bytes(8 * size))


class Rates:
    """How much each may still ask for: so many requests in a minute, and no more than that at once.

    Where the table is shared it is changed without a lock: what two processes count in the same moment may be counted
    as one, which does no harm, and one that is killed keeps nobody waiting.
    """

    def __init__(
        self,
        rate: int | None,
        clock: Callable[[], float] = time.monotonic,
        asked: MutableSequence[float] | None = None,
    ) -> None:
        self._rate, self._clock = rate, clock
        self._asked = table() if asked is None else asked

    def take(self, name: str, own: int | None = None) -> None:
        """Count a request; `own` is a rate of the one who asks, instead of the rate of all.

        Raises:
            Refused: 429 where it is one too many.
        """
        rate = self._rate if own is None else own
        if rate is None:
            return
        now, asked = self._clock(), self._asked
        place = self._place(name, rate, now)
        left = min(rate, asked[place + 1] + (now - asked[place + 2]) * rate / 60)
        asked[place + 1], asked[place + 2] = (left - 1 if left >= 1 else left), now
        if left < 1:
            wait = max(1, round((1 - left) * 60 / rate))
            said = f"at most {rate} requests in a minute; ask again in {wait} seconds"
            raise Refused(429, said, {"Retry-After": str(wait)})

    def _place(self, name: str, rate: int, now: float) -> int:
        """Where it stands; who has not asked for longest in its group makes room, and has all again."""
        number = int.from_bytes(blake2b(name.encode(), digest_size=6).digest()) + 1
        first = number % _GROUPS * _PLACES * _FIELDS
        places = range(first, first + _PLACES * _FIELDS, _FIELDS)
        for place in places:
            if self._asked[place] == number:
                return place
        place = min(places, key=lambda each: (self._asked[each] != 0, self._asked[each + 2]))
        for field, value in enumerate((number, rate, now)):
            self._asked[place + field] = value
        return place


class Crowd:
    """Takes so many requests at once and refuses more, so that those that were taken are answered."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most, self._here = app, most, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["path"].startswith(_FREE) or _is_stream(scope):
            await self._app(scope, receive, send)
            return
        if self._here >= self._most:
            refused = Refused(503, f"{self._most} requests are being answered; ask again in a moment")
            await of_refusal(refused, scope["threefold.request"])(scope, receive, send)
            return
        with ExitStack() as staying:
            self._here += 1
            staying.callback(self._leave)
            scope[_STAYING] = staying
            await self._app(scope, receive, send)

    def _leave(self) -> None:
        self._here -= 1


def leave_crowd(request: Request) -> None:
    """Count a request no more: it became a stream, which is counted among those."""
    request.scope[_STAYING].close()


def _is_stream(scope: Scope) -> bool:
    """Whether somebody watches a lane, of whom others are counted (`streams`)."""
    path: str = scope["path"]
    return scope["method"] == "GET" and path.startswith("/v1/lanes/") and path.endswith("/events")

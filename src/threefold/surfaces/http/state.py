"""How the server is: alive, ready, and in figures."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from threefold import __version__
from threefold.errors import Forbidden, ThreefoldError
from threefold.surfaces.http.desk import Desk, desk_of
from threefold.surfaces.http.gate import LOCAL
from threefold.surfaces.http.metrics import MEDIA, Metrics
from threefold.surfaces.http.problems import Refused

GRANT: Final = "metrics:read"
"""What a token needs to read figures over all users; `*:read` is not enough."""
_PATIENCE: Final = 5.0
# Counting what waits costs, and is seldom of interest twice in a moment.
_COUNTED: Final = 10.0


def routes(metrics: Metrics) -> list[Route]:
    """The routes."""
    figures = Figures(metrics)
    return [Route("/health", _health), Route("/ready", _ready), Route("/metrics", figures.answer)]


async def _health(_: Request) -> Response:
    return JSONResponse({"status": "ok", "version": __version__})


async def _ready(request: Request) -> Response:
    desk = desk_of(request)
    try:
        # Any question that the store answers quickly, of nobody's data.
        await desk.work.do(lambda: desk.db.tokens.find("tf_" + "0" * 43), _PATIENCE)
    except (ThreefoldError, Refused):
        raise Refused(503, "the store does not answer; `threefold doctor` says more") from None
    return JSONResponse({"status": "ready"})


class Figures:
    """What `/metrics` tells."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._pending, self._at = 0, float("-inf")
        self._lock = asyncio.Lock()

    async def answer(self, request: Request) -> Response:
        """Answer with the figures, for who may see them."""
        desk = desk_of(request)
        guest = await desk.admit(request)
        if guest.name != LOCAL and GRANT not in (guest.caller.grants or ()):
            raise Forbidden(f"this needs the grant {GRANT!r}, by this name: it tells of all users together")
        gauges = {
            "threefold_http_requests_in_flight": ("requests that are being answered", self._metrics.in_flight),
            "threefold_rows_pending": ("rows that wait for a vector", await self._waiting(desk)),
        }
        return Response(self._metrics.text(gauges), media_type=MEDIA)

    async def _waiting(self, desk: Desk) -> int:
        async with self._lock:
            if time.monotonic() - self._at > _COUNTED:
                state = await desk.work.do(desk.db.state, desk.settings.seconds)
                self._pending, self._at = state.pending, time.monotonic()
        return self._pending

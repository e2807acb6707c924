"""What goes around every request: its id, its headers, its line in the log, its count, its span.

A line has the route's template, never the path that was asked for: no content, question, reference or secret.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Mapping
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from threefold.surfaces.http.desk import log_failure
from threefold.surfaces.http.metrics import Metrics, method_of
from threefold.surfaces.http.problems import FAILED, problem
from threefold.surfaces.http.telemetry import Tracing

logger = logging.getLogger("threefold.http.requests")
HEADERS: Final[Mapping[str, str]] = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}
"""Of every answer that has none of its own."""
# Who asked is gone.
_LEFT: Final = 499


class Observed:
    """An application as it is observed."""

    def __init__(self, app: ASGIApp, metrics: Metrics, tracing: Tracing) -> None:
        self._app, self._metrics, self._tracing = app, metrics, tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["threefold.request"] = request = secrets.token_hex(8)
        status, begun = _LEFT, time.perf_counter()

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        self._metrics.in_flight += 1
        try:
            with self._tracing.request(scope) as span:
                await self._answered(scope, receive, watched)
                span(route_of(scope), status)
        finally:
            self._metrics.in_flight -= 1
            self._note(scope, status, time.perf_counter() - begun)

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, who asked is told that it failed, and the log where
            log_failure(error)
            if not started:
                said = f"{type(error).__name__}; the log of the server has more"
                await problem(FAILED, said, scope["threefold.request"])(scope, receive, send)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        method, route = method_of(scope["method"]), route_of(scope)
        self._metrics.count(method, route, status, seconds)
        noted = {"request": scope["threefold.request"], "method": method, "route": route, "status": status}
        logger.info("", extra={"noted": {**noted, "ms": round(1000 * seconds, 1)}})


def route_of(scope: Scope) -> str:
    """The template of the route that a request came to, such as `/v1/refs/{ref}`."""
    found = scope.get("threefold.route") or getattr(scope.get("route"), "path", None)
    return "unmatched" if found is None else str(found).replace(":path}", "}")

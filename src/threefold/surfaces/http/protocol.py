"""MCP in the same server: the same tools as over standard input and output, each request as the one who sent it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from threefold.app import Threefold
from threefold.services import Caller
from threefold.surfaces.http.desk import desk_of
from threefold.surfaces.http.gate import Guest
from threefold.surfaces.http.limits import chunks, leave_crowd
from threefold.surfaces.http.problems import Refused
from threefold.surfaces.http.routing import Exact
from threefold.surfaces.mcp import serving

_caller: ContextVar[Caller] = ContextVar("threefold.mcp.caller")


class Protocol:
    """The protocol over a store. Nothing is kept between requests: each says who asks."""

    def __init__(self, db: Threefold, most: int) -> None:
        self._most = most
        self._manager = StreamableHTTPSessionManager(
            serving(db, _caller.get), json_response=True, stateless=True, max_request_body_size=most
        )

    def routes(self) -> list[Route]:
        """The route."""
        return [Exact("/mcp", self, ["POST"])]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Within it, requests are answered."""
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as the one who sent it."""
        request = Request(scope, receive)
        guest = await desk_of(request).admit(request)
        seconds = desk_of(request).settings.seconds
        body = b"".join([chunk async for chunk in chunks(request, self._most, seconds)])
        # The protocol's tasks are made within this one, and have its context.
        held = _caller.set(guest.caller)
        try:
            if _listens(body):
                await self._listen(request, guest, _again(body, receive), send)
            else:
                await self._manager.handle_request(scope, _again(body, receive), send)
        finally:
            _caller.reset(held)

    async def _listen(self, request: Request, guest: Guest, receive: Receive, send: Send) -> None:
        """Answer with a stream, which goes on while the token holds and the server does not end."""
        desk = desk_of(request)
        started = ended = False

        async def watched(message: Message) -> None:
            nonlocal started, ended
            started = True
            await send(message)
            ended = message["type"] == "http.response.body" and not message.get("more_body", False)

        desk.streams.begin(guest.name)
        leave_crowd(request)
        try:
            work = self._manager.handle_request(request.scope, receive, watched)
            await desk.streams.while_held(work, partial(desk.holds, request))
            if not started:
                raise Refused(503, "the server is ending; ask another one, or again in a moment")
            if not ended:
                await send({"type": "http.response.body", "body": b""})
        finally:
            desk.streams.end(guest.name)


def _listens(body: bytes) -> bool:
    """Whether a request asks to be told of changes, which is answered with a stream; read as the protocol reads it."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(asked, dict) and asked.get("method") == "subscriptions/listen"


def _again(body: bytes, receive: Receive) -> Receive:
    """Gives a body that was read, and then what comes."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return messages.pop() if messages else await receive()

    return received

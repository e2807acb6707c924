"""Telling clients that what there is has changed: an app published a namespace, or withdrew one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ToolsListChanged
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from threefold.surfaces.mcp.opening import Opening

# Of so many clients of the handshake's era it is known that they asked; a process over standard input has one.
_SESSIONS: Final = 100


class Told:
    """Clients that are to know: those of the handshake's era that asked for the tools, and streams of the later one."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)
        self._sessions: dict[int, ServerSession] = {}

    def remember(self, ctx: ServerRequestContext[Any]) -> None:
        """This client has a list that may become old."""
        if ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
            # A session is made for each request; what the client said of itself is the connection's.
            self._sessions[id(ctx.session.client_params)] = ctx.session
            if len(self._sessions) > _SESSIONS:
                del self._sessions[next(iter(self._sessions))]

    @asynccontextmanager
    async def of(self, opening: Opening) -> AsyncIterator[None]:
        """Within it, clients are told after each `publish` and `withdraw`, in whatever thread that is done."""
        loop, event = asyncio.get_running_loop(), asyncio.Event()

        async def tell() -> None:
            while await event.wait():
                event.clear()
                await self._changed()

        async with anyio.create_task_group() as group:
            group.start_soon(tell)
            with opening.watched(lambda: loop.call_soon_threadsafe(event.set)):
                yield
            group.cancel_scope.cancel()

    async def _changed(self) -> None:
        await self._bus.publish(ToolsListChanged())
        await self._bus.publish(ResourcesListChanged())
        for session in list(self._sessions.values()):
            await session.send_tool_list_changed()
            await session.send_resource_list_changed()

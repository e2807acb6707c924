"""The application: what is at which address, and what goes around it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Final

import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from threefold.app import Threefold
from threefold.errors import ThreefoldError
from threefold.host.agents import Agent, Executor
from threefold.surfaces.http import files, introducing, lanes, openapi, operations, pages, refs, state, turns
from threefold.surfaces.http.desk import Desk, desk_of
from threefold.surfaces.http.lanes import Live
from threefold.surfaces.http.limits import Crowd
from threefold.surfaces.http.metrics import Metrics
from threefold.surfaces.http.observing import Observed
from threefold.surfaces.http.problems import Refused, of_error, of_refusal
from threefold.surfaces.http.protocol import Protocol
from threefold.surfaces.http.routing import Exact
from threefold.surfaces.http.settings import Settings
from threefold.surfaces.http.telemetry import Tracing

# What began may take so long to end when the server ends.
_PATIENCE: Final = 30.0
_EVERY: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def application(
    db: Threefold,
    settings: Settings,
    agents: Iterable[Agent | Executor] = (),
    ending: Callable[[], None] | None = None,
) -> Starlette:
    """The ASGI application of a store. `agents` answer what is sent to lanes; without any, those that are built in.

    `ending` is called once nothing works on the store any more, to close it.

    Raises:
        InvalidInput, Conflict: an agent is none, or two have one name.
    """
    desk, metrics, tracing = Desk(db, settings), Metrics(), Tracing.configured()
    protocol, live = Protocol(db, settings.json_bytes), Live(db, agents, settings, desk.streams)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with protocol.running(), live.running():
            yield
        await anyio.to_thread.run_sync(desk.end, _PATIENCE)
        tracing.close()
        if ending is not None:
            ending()

    middleware = [Middleware(Observed, metrics, tracing), Middleware(Crowd, settings.concurrent)]
    made = Starlette(
        routes=_routes(metrics, protocol),
        middleware=middleware,
        lifespan=lifespan,
        exception_handlers={ThreefoldError: _failed, Refused: _refused, HTTPException: _of_framework},
    )
    made.router.redirect_slashes = False
    made.state.desk, made.state.live = desk, live
    return made


def _routes(metrics: Metrics, protocol: Protocol) -> list[BaseRoute]:
    """Every address, the particular ones first."""
    return [
        *state.routes(metrics),
        *protocol.routes(),
        *openapi.routes(),
        *introducing.routes(),
        *refs.routes(),
        *files.routes(),
        *turns.routes(),
        *lanes.routes(),
        *operations.routes(),
        Exact("/v1/{rest:path}", operations.nowhere, _EVERY),
        *pages.routes(),
    ]


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, ThreefoldError)  # noqa: S101 - it is what this handles
    return of_error(error, request.scope["threefold.request"], desk_of(request).places)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)  # noqa: S101 - it is what this handles
    return of_refusal(error, request.scope["threefold.request"])


async def _of_framework(request: Request, error: Exception) -> Response:
    """What the framework refuses by itself, in our words."""
    assert isinstance(error, HTTPException)  # noqa: S101 - it is what this handles
    said: dict[int, str] = {
        400: "the form is malformed; send multipart/form-data with a boundary",
        404: "there is nothing at this address; /v1/openapi.json has what there is",
        405: f"{request.method} is not for this address",
    }
    detail = said.get(error.status_code, "the request is refused")
    return of_refusal(Refused(error.status_code, detail, error.headers), request.scope["threefold.request"])

"""What there is, in three depths: namespaces, one of them, one of its operations. And the agents that answer."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from threefold.host.agents import Agent
from threefold.surfaces.http.desk import desk_of
from threefold.surfaces.http.operations import respond
from threefold.surfaces.http.routing import Exact


def routes() -> list[Route]:
    """The routes."""
    return [
        Exact("/v1/services", _services),
        Exact("/v1/services/{namespace}", _about),
        Exact("/v1/services/{namespace}/{operation}", _schema),
        Exact("/v1/agents", _agents),
    ]


async def _services(request: Request) -> Response:
    guest = await desk_of(request).admit(request)
    return await respond(
        request, guest, lambda visit: {"services": [each._asdict() for each in visit.services.introductions()]}, ""
    )


async def _about(request: Request) -> Response:
    guest, named = await desk_of(request).admit(request), request.path_params
    return await respond(request, guest, lambda visit: visit.services.about(named["namespace"]), "")


async def _schema(request: Request) -> Response:
    guest, named = await desk_of(request).admit(request), request.path_params
    return await respond(
        request, guest, lambda visit: visit.services.schema(named["namespace"], named["operation"]), ""
    )


async def _agents(request: Request) -> Response:
    guest = await desk_of(request).admit(request)
    guest.caller.need("conv:read")
    agents = request.app.state.live.kernel.agents.list()
    return await respond(request, guest, lambda _: {"agents": [_told(each) for each in agents]}, "")


def _told(agent: Agent) -> dict[str, Any]:
    able = [{"id": c.id, "description": c.description, "confidence": c.confidence} for c in agent.capabilities]
    return {"name": agent.name, "description": agent.description, "capabilities": able}

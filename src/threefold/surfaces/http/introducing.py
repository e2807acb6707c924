"""What there is, in three depths: namespaces, one of them, one of its operations."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from threefold.surfaces.http.desk import desk_of
from threefold.surfaces.http.operations import respond
from threefold.surfaces.http.routing import Exact


def routes() -> list[Route]:
    """The routes."""
    return [
        Exact("/v1/services", _services),
        Exact("/v1/services/{namespace}", _about),
        Exact("/v1/services/{namespace}/{operation}", _schema),
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

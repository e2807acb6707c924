"""The table of operations as routes. Each request looks into the table anew: what an app publishes is there at once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from threefold.errors import InvalidInput, NotFound
from threefold.realms.access.requests import Answer
from threefold.services.calls import ALL
from threefold.surfaces.http.aliases import ALIASES, Alias
from threefold.surfaces.http.arguments import merged, of_body, of_query
from threefold.surfaces.http.desk import Visit, desk_of, is_json
from threefold.surfaces.http.gate import Guest
from threefold.surfaces.http.limits import chunks
from threefold.surfaces.http.problems import Refused
from threefold.surfaces.http.routing import Exact, check_method

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
KEY: Final = "idempotency-key"
_MAX_KEY: Final = 255
_NOWHERE: Final = "there is nothing at this address; /v1/openapi.json has what there is, /v1/services introduces it"


class Asked(NamedTuple):
    """A call of an operation as it came: what it is, and where its arguments are."""

    method: str
    namespace: str
    operation: str
    fixed: Mapping[str, str]
    query: Any
    body: bytes


def routes() -> list[Route]:
    """Routes of all operations, those of the table of resources first."""
    by_path: dict[str, list[Alias]] = {}
    for alias in ALIASES:
        by_path.setdefault(alias.path, []).append(alias)
    found = [
        Exact(path, partial(_resource, {each.method: each for each in aliases}), [each.method for each in aliases])
        for path, aliases in by_path.items()
    ]
    return [
        *found,
        Exact("/v1/{operation}", _operation, METHODS),
        Exact("/v1/{namespace}/{operation}", _operation, METHODS),
    ]


async def _resource(aliases: Mapping[str, Alias], request: Request) -> Response:
    desk = desk_of(request)
    guest = await desk.admit(request)
    alias = aliases["GET" if request.method == "HEAD" else request.method]
    return await answer(request, guest, alias.namespace, alias.operation, alias.fixed(request.path_params))


async def _operation(request: Request) -> Response:
    desk = desk_of(request)
    guest = await desk.admit(request)
    operation, namespace = request.path_params["operation"], request.path_params.get("namespace", ALL)
    try:
        reads = desk.db.services(guest.caller).operation(namespace, operation).access == "read"
    except NotFound:
        if namespace != ALL:
            raise
        raise NotFound(_NOWHERE) from None
    request.scope["threefold.route"] = f"/v1/{operation}" if namespace == ALL else f"/v1/{namespace}/{operation}"
    check_method(request.method, ("GET", "HEAD", "POST") if reads else ("POST",))
    return await answer(request, guest, namespace, operation, {})


async def answer(request: Request, guest: Guest, namespace: str, operation: str, fixed: Mapping[str, str]) -> Response:
    """Do an operation as the guest."""
    body = await json_body(request)
    asked = Asked(request.method, namespace, operation, fixed, request.query_params, body)
    return await respond(request, guest, partial(_call, asked), request_of(request, body))


async def json_body(request: Request) -> bytes:
    """The body, if it is JSON.

    Raises:
        Refused: 413: too long. 415: another kind.
    """
    if request.method in ("GET", "HEAD"):
        return b""
    settings = desk_of(request).settings
    body = b"".join([chunk async for chunk in chunks(request, settings.json_bytes, settings.seconds)])
    if body and not is_json(request):
        raise Refused(415, "send the arguments as JSON, with 'Content-Type: application/json'")
    return body


def request_of(request: Request, content: bytes) -> str:
    """What tells this request from others of the same caller."""
    said = [request.method, request.scope["path"], request.url.query, hashlib.sha256(content).hexdigest()]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


async def respond(
    request: Request, guest: Guest, work: Callable[[Visit], Any], told: str, slow: bool = False
) -> Response:
    """Do `work` and answer with what it gives, as JSON; with a key it is done once."""
    desk = desk_of(request)
    key = request.headers.get(KEY)
    if key is None or request.method in ("GET", "HEAD"):
        return _json(await desk.do(guest, lambda visit: encoded(work(visit)), slow))
    if not key.strip() or len(key) > _MAX_KEY:
        raise InvalidInput(f"Idempotency-Key must have 1 to {_MAX_KEY} characters; use a new UUID for each request")
    lease = timedelta(seconds=2 * (desk.settings.long_seconds if slow else desk.settings.seconds))

    def once(visit: Visit) -> Answer:
        return visit.db.requests.once(visit.caller.scope, guest.name, key, told, lambda: encoded(work(visit)), lease)

    body, again = await desk.do(guest, once, slow)
    return _json(body, {"Idempotency-Replayed": "true"} if again else {})


def encoded(value: Any) -> bytes:
    """A result as JSON; what a service gave beside plain values, such as times, becomes text."""
    return msgspec.json.encode(value)


def _json(body: bytes, headers: Mapping[str, str] | None = None) -> Response:
    return Response(body, headers=headers, media_type="application/json")


def _call(asked: Asked, visit: Visit) -> Any:
    operation = visit.services.operation(asked.namespace, asked.operation)
    query = of_query(operation, asked.query)
    if asked.method in ("GET", "HEAD", "DELETE") and not asked.body:
        return operation(visit.caller, merged(query, asked.fixed), lenient=True)
    if query:
        raise InvalidInput(f"{next(iter(query))[:100]} stands in the query; give arguments in the body, as JSON")
    return operation(visit.caller, merged(of_body(asked.body), asked.fixed))


async def nowhere(request: Request) -> Response:
    """What is asked for an address that nothing is at."""
    await desk_of(request).admit(request)
    raise NotFound(_NOWHERE)

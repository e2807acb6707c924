"""The description of all addresses, OpenAPI 3.1, made from the table of operations. Its schemas are the table's own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from threefold import __version__
from threefold.model.scope import Scope
from threefold.services import Caller, Operation
from threefold.services.calls import ALL
from threefold.surfaces.http.aliases import ALIASES
from threefold.surfaces.http.desk import Visit, desk_of
from threefold.surfaces.http.operations import respond
from threefold.surfaces.http.others import OTHERS
from threefold.surfaces.http.problems import MEDIA
from threefold.surfaces.http.routing import Exact

_NAME: Final = re.compile(r"\{(\w+)\}")
_ABOUT: Final = (
    "Every operation of every namespace. Scope comes from the token, never from what is sent. What is wrong is told as "
    "problem+json; its `detail` says what and how to mend it."
)
_PROBLEM: Final = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "instance"],
    "properties": {
        "type": {"type": "string"}, "title": {"type": "string"}, "status": {"type": "integer"},
        "detail": {"type": "string"}, "instance": {"type": "string"},
    },
}  # fmt: skip
_KEY: Final = {
    "name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "minLength": 1, "maxLength": 255},
    "description": "the same key again, within 24 hours, gives the same answer and does nothing more",
}  # fmt: skip


class _Place(NamedTuple):
    """An operation at an address."""

    method: str
    path: str
    operation: Operation
    arguments: Mapping[str, str] = {}


def routes() -> list[Route]:
    """The route."""
    return [Exact("/v1/openapi.json", _answer)]


async def _answer(request: Request) -> Response:
    guest = await desk_of(request).admit(request)
    return await respond(request, guest, _described, "")


def _described(visit: Visit) -> dict[str, Any]:
    # All operations, whatever was granted: each says what it needs.
    everyone = visit.db.services(Caller(Scope(visit.caller.scope.user, visit.caller.scope.tenant)))
    return document(everyone.operations())


def document(operations: tuple[Operation, ...]) -> dict[str, Any]:
    """The description of these operations, and of what is beside them."""
    paths: dict[str, dict[str, Any]] = {}
    for place in _places(operations):
        paths.setdefault(place.path, {})[place.method.lower()] = _operation(place)
    for path, methods in OTHERS.items():
        for method, value in methods.items():
            paths.setdefault(path, {})[method] = _whole(value)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Threefold", "version": __version__, "description": _ABOUT},
        "servers": [{"url": "/"}],
        "security": [{"token": []}, {}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "tf_…"}},
            "schemas": {"Problem": _PROBLEM},
            "responses": {"Problem": {
                "description": "what is wrong, and the mend",
                "content": {MEDIA: {"schema": {"$ref": "#/components/schemas/Problem"}}},
            }},
        },
    }  # fmt: skip


def _places(operations: tuple[Operation, ...]) -> Iterator[_Place]:
    named = {(each.namespace, each.name): each for each in operations}
    for each in operations:
        path = f"/v1/{each.name}" if each.namespace == ALL else f"/v1/{each.namespace}/{each.name}"
        yield _Place("POST", path, each)
        if each.access == "read":
            yield _Place("GET", path, each)
    for alias in ALIASES:
        yield _Place(alias.method, alias.path, named[alias.namespace, alias.operation], alias.arguments)


def _operation(place: _Place) -> dict[str, Any]:
    operation, taken = place.operation, place.operation.takes["properties"]
    in_path = {name: place.arguments.get(name, name) for name in _NAME.findall(place.path)}
    left = {name: each for name, each in taken.items() if name not in in_path.values()}
    needed = [name for name in operation.takes.get("required", ()) if name in left]
    parameters = [_parameter(name, "path", taken[argument], True) for name, argument in in_path.items()]
    described: dict[str, Any] = {}
    if place.method in ("GET", "DELETE"):
        parameters += [_parameter(name, "query", each, name in needed) for name, each in left.items()]
    else:
        schema = {**operation.takes, "properties": left, "required": needed}
        described["requestBody"] = {"required": bool(needed), "content": {"application/json": {"schema": schema}}}
    if operation.access != "read":
        parameters.append(_KEY)
    needs = {"x-grant": operation.grant} if operation.grant else {}
    about = {"summary": operation.line, "description": operation.about, **needs}
    return _whole({
        "operationId": _id_of(place), "tags": [operation.namespace], **about,
        **({"parameters": parameters} if parameters else {}), **described,
        "responses": {"200": _json(dict(operation.gives))},
    })  # fmt: skip


def _id_of(place: _Place) -> str:
    """`mem_search` by POST to its own address; of all others where and how, too."""
    own = place.path.split("/")[2:] in ([place.operation.name], [place.operation.namespace, place.operation.name])
    if own:
        return place.operation.full_name + ("" if place.method == "POST" else "_get")
    return "_".join([place.method.lower(), *re.findall(r"\w+", place.path)[1:]])


def _parameter(name: str, where: str, schema: Mapping[str, Any], needed: bool) -> dict[str, Any]:
    about = {"description": schema["description"]} if "description" in schema else {}
    found = {"name": name, "in": where, "required": needed, **about}
    items = schema.get("items", {}) if schema.get("type") == "array" else schema
    plain = items.get("type") in ("string", "integer", "number", "boolean") or "enum" in items
    return {**found, "schema": schema} if plain else {**found, "content": {"application/json": {"schema": schema}}}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": "done", "content": {"application/json": {"schema": schema}}}


def _whole(described: Mapping[str, Any]) -> dict[str, Any]:
    """A description with what holds of all: how it is told that something is wrong."""
    problem = {"$ref": "#/components/responses/Problem"}
    return {**described, "responses": {**described["responses"], "4XX": problem, "5XX": problem}}

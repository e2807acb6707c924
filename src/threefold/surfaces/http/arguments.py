"""Arguments as they come over HTTP: of a query, lists by repetition and objects as JSON; of a body, one JSON object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.datastructures import QueryParams

from threefold.errors import InvalidInput
from threefold.services import Operation
from threefold.surfaces.http.problems import Refused

# What a value of a query is by the type in the schema; all else is text.
_TEXTS: Final = ("string", "integer", "number", "boolean")


def of_query(operation: Operation, query: QueryParams) -> dict[str, Any]:
    """The arguments that a query gives; numbers and the like are still text.

    Raises:
        InvalidInput: what is to be JSON is none, or a value that is one is given several times.
    """
    taken = operation.takes["properties"]
    return {name: _value(name, taken.get(name), query.getlist(name)) for name in dict.fromkeys(query)}


def _value(name: str, schema: Mapping[str, Any] | None, given: list[str]) -> Any:
    if schema is not None and schema.get("type") == "array":
        if len(given) == 1 and given[0].startswith("["):
            return _json(name, given[0])
        return [_one(name, schema.get("items", {}), each) for each in given]
    if len(given) > 1:
        raise InvalidInput(f"{name} is given {len(given)} times; give it once")
    return given[0] if schema is None else _one(name, schema, given[0])


def _one(name: str, schema: Mapping[str, Any], text: str) -> Any:
    return text if schema.get("type") in _TEXTS or "enum" in schema else _json(name, text)


def _json(name: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise InvalidInput(f"{name}: {text[:60]!r} is no JSON") from None


def of_body(body: bytes) -> dict[str, Any]:
    """The arguments that a body gives; without one there are none.

    Raises:
        Refused: 400: it is no JSON object.
    """
    if not body.strip():
        return {}
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise Refused(400, f"the body is no JSON: {str(error)[:200]}") from None
    if not isinstance(found, dict):
        raise Refused(400, 'the body must be a JSON object, such as {"query": "…"}')
    return found


def merged(given: dict[str, Any], fixed: Mapping[str, str]) -> dict[str, Any]:
    """The arguments with those that the path names.

    Raises:
        InvalidInput: both say something, and not the same.
    """
    for name, value in fixed.items():
        if given.get(name, value) != value:
            said = str(given[name])[:100]
            raise InvalidInput(f"{name} {said!r} is not the {value[:100]!r} of the path; leave it out")
    return {**given, **fixed}

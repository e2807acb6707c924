"""From annotations to structs that check values, and to JSON Schemas that any model or person can read. Pure."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from threefold.errors import InvalidInput

_AT: Final = "#/$defs/"
Parameter = tuple[str, Any, Any]


def struct_of(name: str, parameters: Sequence[Parameter]) -> type[msgspec.Struct]:
    """A struct with these parameters: (name, type, default), where `inspect.Parameter.empty` is no default.

    Raises:
        InvalidInput: a type is none that plain values can have.
    """
    fields = [
        (parameter, type_) if default is inspect.Parameter.empty else (parameter, type_, default)
        for parameter, type_, default in parameters
    ]
    try:
        made = msgspec.defstruct(name, fields, kw_only=True, frozen=True, forbid_unknown_fields=True)
        msgspec.json.schema(made)
    except TypeError as error:
        raise InvalidInput(f"operation {name}: {error}; take plain values: text, numbers, lists, objects") from None
    return made


def schema_of(type_: Any) -> dict[str, Any]:
    """The JSON Schema of a type, whole, without references; what may be left out is not told to be null as well."""
    (schema,), parts = msgspec.json.schema_components([type_], ref_template=_AT + "{name}")
    plain: dict[str, Any] = _plain(_whole(schema, parts))
    return plain


def _whole(schema: Any, parts: Mapping[str, Any]) -> Any:
    """A schema with its references replaced by what they name."""
    if isinstance(schema, list):
        return [_whole(each, parts) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        named = parts[schema["$ref"].removeprefix(_AT)]
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return _whole({**named, **beside}, parts)
    return {key: _whole(value, parts) for key, value in schema.items()}


def _plain(schema: Any) -> Any:
    """A schema as clients of every kind understand it."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _plain(value) for key, value in schema.items() if key != "title" or not isinstance(value, str)}
    if "anyOf" in found and found.get("default", 0) is None:
        choices = [each for each in found["anyOf"] if each != {"type": "null"}]
        del found["default"], found["anyOf"]
        found = {**(choices[0] if len(choices) == 1 else {"anyOf": choices}), **found}
    if "enum" in found and found.get("default", 0) is None:
        del found["default"]
        found["enum"] = [each for each in found["enum"] if each is not None]
    return found

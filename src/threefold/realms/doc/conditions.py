"""Narrowing by metadata: what a filter asks for, as labels that a store looks for, and as a question of values. Pure.

A filter narrows within the places that the handle sees; whatever its fields are called, it never says whose they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

from threefold.errors import InvalidInput
from threefold.model.codec import plain_json

OPERATIONS: Final = ("eq", "ne", "gt", "gte", "lt", "lte", "in", "exists")
_COMPARING: Final = ("gt", "gte", "lt", "lte")
# A label is a key of an index; longer ones are told by their hash.
_LONGEST: Final = 256
MAX_LABELS: Final = 500


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that must hold of one field: all that a filter names must."""

    field: str
    operation: str
    value: Any

    def holds(self, metadata: Mapping[str, Any]) -> bool:
        """Whether it holds; of a list, of one of its entries. A field that is missing is only not equal."""
        there = self.field in metadata
        if self.operation == "exists":
            return there is self.value
        values = _entries(metadata[self.field]) if there else ()
        if self.operation == "ne":
            return all(_key(value) != _key(self.value) for value in values)
        if self.operation in ("eq", "in"):
            wanted = {_key(each) for each in (self.value if self.operation == "in" else [self.value])}
            return any(_key(value) in wanted for value in values)
        return any(_compares(value, self.operation, self.value) for value in values)

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The labels of which a document has one where it holds; None where labels do not tell."""
        if self.operation in ("eq", "in"):
            return tuple(_meta(self.field, each) for each in (self.value if self.operation == "in" else [self.value]))
        return (label("has", _key(self.field)),) if self.operation == "exists" and self.value else None


def conditions(given: object) -> tuple[Condition, ...]:
    """The conditions of a filter: `{"kind": "memo", "year": {"gte": 2020, "lt": 2024}}`; all must hold.

    Raises:
        InvalidInput: it is no filter, or an operation is unknown or cannot be done with its value.
    """
    if given is None:
        return ()
    if not isinstance(given, Mapping) or not all(isinstance(field, str) for field in given):
        raise InvalidInput('filter must be an object of fields, such as {"year": {"gte": 2020, "lt": 2024}}')
    found: list[Condition] = []
    for field, value in plain_json(dict(given), "filter").items():
        if not isinstance(value, Mapping):
            found.append(Condition(field, "eq", value))
            continue
        if not value:
            raise InvalidInput(f"filter: {field!r} has no condition; write some of {', '.join(OPERATIONS)}")
        for operation, wanted in value.items():
            _check(field, operation, wanted)
            found.append(Condition(field, operation, wanted))
    return tuple(found)


def _check(field: str, operation: str, value: Any) -> None:
    if operation not in OPERATIONS:
        raise InvalidInput(
            f"filter: {operation!r} of {field!r} is no condition; known are {', '.join(OPERATIONS)}, "
            'and an object itself is asked for by {"eq": {…}}'
        )
    if operation == "in" and not (isinstance(value, list) and value):
        raise InvalidInput(f"filter: 'in' of {field!r} must be a list with at least one value")
    if operation == "exists" and not isinstance(value, bool):
        raise InvalidInput(f"filter: 'exists' of {field!r} must be true or false")
    if operation in _COMPARING and (isinstance(value, bool) or not isinstance(value, int | float | str)):
        raise InvalidInput(f"filter: {operation!r} of {field!r} compares numbers or texts, not {value!r}")


def labels_of(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """What a document with this metadata can be asked for by.

    Raises:
        InvalidInput: there are too many.
    """
    found = list(dict.fromkeys(_labels(metadata)))
    if len(found) > MAX_LABELS:
        raise InvalidInput(f"metadata has {len(found):,} fields and values, at most {MAX_LABELS} are kept")
    return tuple(found)


def _labels(metadata: Mapping[str, Any]) -> Iterator[str]:
    for field, value in metadata.items():
        yield label("has", _key(field))
        for entry in _entries(value):
            yield _meta(field, entry)


def label(kind: str, value: str) -> str:
    """A label, bounded."""
    whole = f"{kind}:{value}"
    return whole if len(whole) <= _LONGEST else f"{kind}#{blake2b(value.encode(), digest_size=16).hexdigest()}"


def _meta(field: str, value: Any) -> str:
    return label("meta", f"{_key(field)}={_key(value)}")


def _entries(value: Any) -> Sequence[Any]:
    """A value itself, and where it is a list its entries."""
    return [value, *value] if isinstance(value, list) else [value]


def _key(value: Any) -> str:
    """A value as text, the same for what is equal: 1 and 1.0 are, 1 and true and "1" are not."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return {key: _plain(each) for key, each in value.items()} if isinstance(value, Mapping) else value


def _compares(value: Any, operation: str, other: Any) -> bool:
    """Numbers with numbers, texts with texts, in order of their characters, as dates in ISO 8601 are to be."""
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (value, other))
    if not numbers and not (isinstance(value, str) and isinstance(other, str)):
        return False
    if operation == "gt":
        return bool(value > other)
    if operation == "gte":
        return bool(value >= other)
    return bool(value < other if operation == "lt" else value <= other)

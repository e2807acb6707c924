"""Operations: functions that are called by name with plain values, each checked against its schema and its grant."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from threefold.errors import Forbidden, InvalidInput
from threefold.model.scope import Scope
from threefold.services.schemas import schema_of, struct_of

Access = Literal["read", "propose", "write"]
"""What an operation does to what is kept: nothing; it suggests, and a person decides; it changes it."""

F = TypeVar("F", bound=Callable[..., Any])
ALL: Final = "all"
"""The namespace of what concerns all realms; it has no objects."""
_MARK: Final = "_threefold_operation"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: a scope, and the grants that were given; None for all, as in one's own program.

    A grant is `mem:read`, or `*:read` for every namespace, those that are published later too.
    """

    scope: Scope
    grants: frozenset[str] | None = None

    def may(self, grant: str) -> bool:
        """Whether a grant was given; what needs none has an empty one."""
        if not grant or self.grants is None:
            return True
        return grant in self.grants or f"*:{grant.rpartition(':')[2]}" in self.grants

    def need(self, grant: str) -> None:
        """Refuse without the grant.

        Raises:
            Forbidden: it was not given.
        """
        if not self.may(grant):
            given = ", ".join(sorted(self.grants or ())) or "none"
            raise Forbidden(f"this needs the grant {grant!r}; given are {given}: ask the person for it")


class Marked(msgspec.Struct, frozen=True):
    """What `operation` says of a function."""

    access: Access
    destructive: bool
    idempotent: bool
    free: bool = False


def operation(
    access: Access = "read", destructive: bool = False, idempotent: bool | None = None, free: bool = False
) -> Callable[[F], F]:
    """Make a method of a `Service` one that is called by name: `method(self, caller, …plain values…)`.

    Its schema comes from its annotations (`Annotated[str, "what it is"]` describes a parameter), its introduction from
    its docstring: the first line, and all of it. Whoever calls it, the grant `<namespace>:<access>` is needed.
    `destructive` says that something is lost for good, `idempotent` that a second call changes nothing more (reading
    never does). What is `free` needs no grant: whoever was let in may call it.
    """
    if access not in get_args(Access):
        raise InvalidInput(f"access {access!r} must be one of {', '.join(get_args(Access))}")
    marked = Marked(access, destructive, access == "read" if idempotent is None else idempotent, free)

    def mark(function: F) -> F:
        @functools.wraps(function)
        def granted(self: Any, caller: Caller, *values: Any, **named: Any) -> Any:
            if not free:
                caller.need(f"{self.namespace}:{access}")
            return function(self, caller, *values, **named)

        setattr(granted, _MARK, marked)
        return granted  # type: ignore[return-value]  # it is called as the function is

    return mark


@dataclass(frozen=True, slots=True)
class Operation:
    """One row of the table of operations. `takes` and `gives` are JSON Schemas of objects."""

    namespace: str
    name: str
    access: Access
    line: str
    about: str
    takes: Mapping[str, Any]
    gives: Mapping[str, Any]
    destructive: bool
    idempotent: bool
    free: bool
    _run: Callable[..., Any] = field(repr=False)
    _struct: type[msgspec.Struct] = field(repr=False)

    @property
    def grant(self) -> str:
        """What a caller needs; empty for nothing."""
        return "" if self.free else f"{self.namespace}:{self.access}"

    @property
    def full_name(self) -> str:
        """The name under which surfaces offer it, such as `mem_search`; what concerns all realms has its own alone."""
        return self.name if self.namespace == ALL else f"{self.namespace}_{self.name}"

    def __call__(self, caller: Caller, arguments: Mapping[str, Any], lenient: bool = False) -> Any:
        """Run it with plain values; `lenient` reads numbers and the like from text, as a command line has them.

        Raises:
            InvalidInput: an argument is missing, unknown or of another type. Forbidden: without the grant. Others as
                the operation itself.
        """
        try:
            given = msgspec.convert(dict(arguments), self._struct, strict=not lenient)
        except msgspec.ValidationError as error:
            raise InvalidInput(
                f"{self.namespace} {self.name}: {_told(error, self.takes)}; it takes {self._taken()}"
            ) from None
        values = {name: getattr(given, name) for name in self._struct.__struct_fields__}
        return self._run(caller, **values)

    def _taken(self) -> str:
        needed = set(self.takes.get("required", ()))
        names = [name if name in needed else f"[{name}]" for name in self.takes["properties"]]
        return ", ".join(names) or "nothing"


def operation_of(namespace: str, name: str, bound: Callable[..., Any], marked: Marked) -> Operation:
    """The row of the table that a marked method of a service is."""
    told = inspect.cleandoc(bound.__doc__ or "")
    hints = get_type_hints(bound, include_extras=True)
    parameters = list(inspect.signature(bound).parameters.values())[1:]
    for parameter in parameters:
        if parameter.name not in hints or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise InvalidInput(f"operation {namespace} {name}: annotate the parameter {parameter.name!r}, by name")
    if not told:
        raise InvalidInput(f"operation {namespace} {name} has no docstring; its first line introduces it")
    described = [(each.name, _described(hints[each.name]), each.default) for each in parameters]
    struct = struct_of(f"{namespace}_{name}", described)
    return Operation(
        namespace,
        name,
        marked.access,
        told.split("\n", 1)[0].rstrip("."),
        told,
        schema_of(struct),
        schema_of(hints.get("return", dict[str, Any])),
        marked.destructive,
        marked.idempotent,
        marked.free,
        bound,
        struct,
    )


def marked_as(function: object) -> Marked | None:
    """What `operation` said of a function, if it did."""
    found = getattr(function, _MARK, None)
    return found if isinstance(found, Marked) else None


def _described(hint: Any) -> Any:
    """A type with what was written beside it, as the schema has it."""
    if get_origin(hint) is not Annotated:
        return hint
    type_, *beside = get_args(hint)
    about = [msgspec.Meta(description=each) if isinstance(each, str) else each for each in beside]
    return Annotated[type_, *about]


def _told(error: msgspec.ValidationError, takes: Mapping[str, Any]) -> str:
    """The library's message with the argument first: "limit: Expected `int`, got `str`"."""
    said, at, path = str(error).replace(" | null`", "`").rpartition(" - at `$")
    where = path.rstrip("`").lstrip(".")
    if not at or not where:
        return str(error)
    chosen = takes["properties"].get(re.split(r"[.\[]", where)[0], {})
    values = chosen.get("enum") or chosen.get("items", {}).get("enum")
    return f"{where}: {said}" + (f", must be one of {', '.join(map(str, values))}" if values else "")

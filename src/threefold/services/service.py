"""A service: one namespace, what it says of itself, and what can be done in it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from threefold.errors import Forbidden, InvalidInput, NotFound, Unavailable
from threefold.model.ref import ConvRef, ObjectRef
from threefold.model.resolved import Resolved, Shown
from threefold.services.calls import Caller, Operation, marked_as, operation_of

Ref = ConvRef | ObjectRef


class Service:
    """Publishes a namespace: derive from it, and hand an instance to `Threefold.publish`.

    `namespace` is the first part of its references, `line` introduces it in a line, `about` at more length, `kinds` are
    the kinds of its objects and what each is. Methods that are marked `@operation` are what can be called. `resolve`
    gives the object that a reference names; with it references can be pinned, shown, read and cited everywhere. Both
    are given who calls, and refuse without the grant before any of the service's own code runs.
    """

    namespace: ClassVar[str] = ""
    line: ClassVar[str] = ""
    about: ClassVar[str] = ""
    kinds: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls) -> None:
        for name in ("resolve", "show"):
            if name in cls.__dict__:
                setattr(cls, name, _read(cls.__dict__[name]))

    @cached_property
    def operations(self) -> Mapping[str, Operation]:
        """What can be called, by name, in the order in which the class and those before it say it."""
        names = dict.fromkeys(name for cls in reversed(type(self).__mro__) for name in cls.__dict__)
        found = {}
        for name in names:
            marked = marked_as(getattr(type(self), name, None))
            if marked is not None:
                found[name] = operation_of(self.namespace, name, getattr(self, name), marked)
        return found

    def resolve(self, caller: Caller, ref: Ref) -> Resolved:  # noqa: ARG002 - for those that have objects
        """The object that a reference names, as far as the caller may see it.

        Raises:
            NotFound: it is not there, or not this caller's to know of. Forbidden: it is there and not theirs to see.
        """
        raise NotFound(f"{ref}: the service {self.namespace!r} has no objects")

    def show(self, caller: Caller, refs: Sequence[Ref], size: int) -> Mapping[str, Shown]:
        """What references name, by reference; as `resolve` says of each. Services with a quicker way override it."""
        return {str(ref): shown_of(ref, lambda ref=ref: self.resolve(caller, ref), size) for ref in refs}  # type: ignore[misc]


def namespace_of(ref: Ref) -> str:
    """Who owns what a reference names."""
    return "conv" if isinstance(ref, ConvRef) else ref.namespace


def shown_of(ref: Ref, resolve: Callable[[], Resolved], size: int) -> Shown:
    """What is shown of one object, or why it cannot be."""
    try:
        return resolve().shown(size)
    except (NotFound, Forbidden, Unavailable) as error:
        return Shown.missing(str(ref), error)


def _read(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def granted(self: Service, caller: Caller, *values: Any) -> Any:
        caller.need(f"{self.namespace}:read")
        return function(self, caller, *values)

    return granted


def check_service(service: object) -> Service:
    """The service, if it can be published.

    Raises:
        InvalidInput: it is no instance of `Service`, or does not introduce itself.
    """
    if not isinstance(service, Service):
        raise InvalidInput("publish an instance of a class that is derived from threefold.Service")
    if not service.line:
        raise InvalidInput(f"service {service.namespace!r} must introduce itself: set `line`, one sentence")
    if not service.operations and type(service).resolve is Service.resolve:
        raise InvalidInput(f"service {service.namespace!r} offers nothing: mark a method @operation, or write resolve")
    return service

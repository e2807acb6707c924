"""One caller's way to the services: what there is, what each does, and calling it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

from threefold.errors import NotFound
from threefold.services.calls import Caller, Operation
from threefold.services.objects import ScopedObjects
from threefold.services.registry import Registry
from threefold.services.service import Service


class Introduction(NamedTuple):
    """A service in a line."""

    namespace: str
    line: str


class Services:
    """All services as one caller may use them: what there is, what each does, and calling it."""

    def __init__(self, registry: Registry, caller: Caller) -> None:
        self._registry, self._caller = registry, caller

    @cached_property
    def objects(self) -> ScopedObjects:
        """What references name, as the caller may see it."""
        return ScopedObjects(self._registry, self._caller)

    def introductions(self) -> tuple[Introduction, ...]:
        """Every service that the caller may use, in a line each."""
        return tuple(Introduction(s.namespace, s.line) for s in self._registry if self._offered(s))

    def about(self, namespace: str) -> dict[str, Any]:
        """What a service is: its kinds, and each operation in a line with the grant that it needs.

        Raises:
            NotFound: nobody publishes it.
        """
        service = self._registry.find(namespace)
        return {
            "namespace": service.namespace,
            "line": service.line,
            "about": service.about or service.line,
            "kinds": dict(service.kinds),
            "operations": [
                {"name": each.name, "line": each.line, "grant": each.grant, "granted": self._caller.may(each.grant)}
                for each in service.operations.values()
            ],
        }

    def schema(self, namespace: str, operation: str) -> dict[str, Any]:
        """One operation at full length: what it does, takes and gives.

        Raises:
            NotFound: there is none.
        """
        found = self.operation(namespace, operation)
        return {
            "name": found.full_name,
            "about": found.about,
            "grant": found.grant,
            "destructive": found.destructive,
            "idempotent": found.idempotent,
            "input": dict(found.takes),
            "output": dict(found.gives),
        }

    def call(
        self,
        namespace: str,
        operation: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        lenient: bool = False,
        **named: Any,
    ) -> Any:
        """Run an operation with plain values; gives plain values. `lenient` reads numbers and the like from text.

        Raises:
            NotFound: there is none. InvalidInput: an argument is off. Forbidden: without the grant. Others as the
                operation itself.
        """
        return self.operation(namespace, operation)(self._caller, {**(arguments or {}), **named}, lenient)

    def operation(self, namespace: str, operation: str) -> Operation:
        """An operation of a service.

        Raises:
            NotFound: there is none.
        """
        offered = self._registry.find(namespace).operations
        found = offered.get(operation)
        if found is None:
            raise NotFound(f"service {namespace!r} has no operation {operation!r}; it has {', '.join(offered)}")
        return found

    def operations(self) -> tuple[Operation, ...]:
        """Every operation that the caller was granted."""
        return tuple(
            each for service in self._registry for each in service.operations.values() if self._caller.may(each.grant)
        )

    def _offered(self, service: Service) -> bool:
        grants = [each.grant for each in service.operations.values() if each.grant] or [f"{service.namespace}:read"]
        return any(map(self._caller.may, grants))

"""Which services there are."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from threefold.errors import Conflict, InvalidInput, NotFound
from threefold.model.ref import check_namespace
from threefold.services.service import Service, check_service


class Registry:
    """The services of an open store by namespace. One namespace has one service."""

    def __init__(self) -> None:
        self._services: dict[str, Service] = {}
        self._own: set[str] = set()
        self._watching: dict[object, Callable[[], None]] = {}
        self._lock = threading.Lock()

    def publish(self, service: Service, own: bool = False) -> None:
        """Offer a service; `own` ones are Threefold's realms.

        Raises:
            InvalidInput: it is none, or its namespace is no word or reserved. Conflict: the namespace is taken.
        """
        checked = check_service(service)
        name = checked.namespace if own else check_namespace(checked.namespace)
        with self._lock:
            taken = self._services.get(name)
            if taken is not None:
                raise Conflict(
                    f"namespace {name!r} is published by {type(taken).__qualname__}; choose another, or withdraw it"
                )
            self._services[name] = checked
            if own:
                self._own.add(name)
        self._changed()

    def is_own(self, namespace: str) -> bool:
        """Whether a namespace is a realm of Threefold."""
        return namespace in self._own

    def withdraw(self, namespace: str) -> None:
        """Offer a service no more; its references stay valid and say that nobody publishes them.

        Raises:
            NotFound: nobody does. InvalidInput: it is one of Threefold's realms.
        """
        self.find(namespace)
        if namespace in self._own:
            raise InvalidInput(f"namespace {namespace!r} is Threefold's own")
        with self._lock:
            self._services.pop(namespace, None)
        self._changed()

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` after each `publish` and `withdraw`, in the thread that did it; what is given ends that."""
        key = object()
        with self._lock:
            self._watching[key] = changed

        def end() -> None:
            with self._lock:
                self._watching.pop(key, None)

        return end

    def _changed(self) -> None:
        with self._lock:
            watching = list(self._watching.values())
        for each in watching:
            each()

    def find(self, namespace: str) -> Service:
        """The service of a namespace.

        Raises:
            NotFound: nobody publishes it.
        """
        found = self._services.get(namespace) if isinstance(namespace, str) else None
        if found is None:
            raise NotFound(f"service {namespace!r} is not published; there are {', '.join(self._services)}")
        return found

    def __contains__(self, namespace: object) -> bool:
        return namespace in self._services

    def __iter__(self) -> Iterator[Service]:
        return iter(list(self._services.values()))

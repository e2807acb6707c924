"""A store that is opened when it is first needed, so that nobody waits for it who does not need it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from threefold.app import Threefold
from threefold.errors import Unavailable
from threefold.surfaces.wording import places_of


class Opening:
    """A store to be opened, where its `name` says; one that could not be is tried again with the next call."""

    def __init__(self, open_: Callable[[], Threefold], name: str = ":memory:") -> None:
        self._open, self._name = open_, name
        self._db: Threefold | None = None
        self._watching = list[Callable[[], object]]()
        self._using, self._closed = 0, False
        self._free = threading.Condition()

    def open(self) -> Threefold:
        """The store.

        Raises:
            ThreefoldError: it cannot be opened, or was closed.
        """
        with self._free:
            if self._closed:
                raise Unavailable("the server is ending")
            if self._db is None:
                self._db = self._open()
                self._db.watch_services(self._changed)
            return self._db

    @contextmanager
    def used(self) -> Iterator[Threefold]:
        """The store, which is not closed meanwhile.

        Raises:
            as `open`.
        """
        with self._free:
            db = self.open()
            self._using += 1
        try:
            yield db
        finally:
            with self._free:
                self._using -= 1
                self._free.notify_all()

    def close(self, patience: float) -> bool:
        """Close the store once nobody uses it; False where that took longer than `patience` seconds: it stays open."""
        if not self._free.acquire(timeout=patience):
            return False
        with self._free:
            self._free.release()
            self._closed = True
            free = self._free.wait_for(lambda: not self._using, patience)
            if free and self._db is not None:
                self._db.close()
            return free

    @property
    def places(self) -> Mapping[str, str]:
        """Where the store is on this machine, and what to say instead."""
        return places_of(self._name, None if self._db is None else self._db.blobs_place)

    @contextmanager
    def watched(self, changed: Callable[[], object]) -> Iterator[None]:
        """Within it, `changed` is called after each `publish` and `withdraw`, in the thread that did it."""
        self._watching.append(changed)
        try:
            yield
        finally:
            self._watching.remove(changed)

    def _changed(self) -> None:
        for each in list(self._watching):
            each()

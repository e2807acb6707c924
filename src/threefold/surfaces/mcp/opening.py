"""A store that is opened when it is first needed, so that nobody waits for it who does not need it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from threefold.app import Threefold


class Opening:
    """A store to be opened; one that could not be is tried again with the next call."""

    def __init__(self, open_: Callable[[], Threefold]) -> None:
        self._open = open_
        self._db: Threefold | None = None
        self._watching = list[Callable[[], None]]()
        self._lock = threading.Lock()

    def db(self) -> Threefold:
        """The store.

        Raises:
            ThreefoldError: it cannot be opened.
        """
        with self._lock:
            if self._db is None:
                self._db = self._open()
                self._db.watch_services(self._changed)
            return self._db

    @property
    def opened(self) -> Threefold | None:
        """The store, if it was opened."""
        return self._db

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

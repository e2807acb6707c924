"""Boards in the store: read by name, listed, changed only as they were seen."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Final

from threefold.errors import Conflict, Forbidden
from threefold.model.board import Board
from threefold.model.commit import Commit, RecordTurn
from threefold.model.retention import Receipt, Target
from threefold.model.scope import Scope
from threefold.ports import CatalogQuery
from threefold.realms.cnv.keeping import REALM, TURN, board_of, from_record, to_record, unmade
from threefold.realms.cnv.merging import Kept
from threefold.realms.cnv.writing import not_there
from threefold.realms.wiring import Ports

# Seconds that a write waits for others, as it would for a lock; and between two tries at most, first and later.
_PATIENCE: Final = 30.0
_SHORTEST, _LONGEST = 0.002, 0.05
Labels = tuple[tuple[str, ...], ...]


class Shelf:
    """The boards that one scope may see."""

    def __init__(self, scope: Scope, ports: Ports) -> None:
        self._place, self._ports = replace(scope, realm=REALM), ports

    def find(self, name: str) -> Kept | None:
        """A board with its revisions, where it is there.

        Raises:
            Forbidden: it belongs to another app.
        """
        with _of_this_app(name):
            stored = self._ports.store.records(self._place, [(name, TURN)], self._ports.clock(), rows=False)
        return from_record(stored[0]) if stored else None

    def one(self, name: str) -> Kept:
        """A board that must be there.

        Raises:
            NotFound: it is not. Forbidden: it belongs to another app.
        """
        kept = self.find(name)
        if kept is None:
            raise not_there(name)
        return kept

    def boards(self, names: Iterable[str]) -> dict[str, Board]:
        """Those of the boards that are there, in the order of their names."""
        keys = [(name, TURN) for name in names]
        found = self._ports.store.replays(self._place, keys, self._ports.clock()) if keys else {}
        return {name: board_of(name, replay) for (name, _), replay in found.items()}

    def page(self, labels: Labels, limit: int, after: tuple[datetime, str] | None = None) -> tuple[Board, ...]:
        """Boards that have the labels, those last changed first."""
        cursor = None if after is None else (*after, TURN)
        query = CatalogQuery(
            self._ports.clock(), newest_first=True, limit=limit, after=cursor, labels=labels, bare=True
        )
        return tuple(
            self.boards(entry.conversation for entry in self._ports.store.catalog(self._place, query)).values()
        )

    def change(self, name: str, change: Callable[[Kept], Kept]) -> Board:
        """Change a board as it stands, or as one that is not there yet; where it is changed meanwhile, once more.

        Raises:
            what `change` raises; Conflict: too many change it at once. Forbidden: it belongs to another app.
        """
        wait, ends = _SHORTEST, time.monotonic() + _PATIENCE
        while True:
            before = self.find(name) or unmade(name, self._place.app, self._ports.clock())
            after = change(before)
            if after is before or self._put(after):
                return after.board
            if time.monotonic() > ends:
                raise Conflict(f"board {name!r} is being changed by many at once; try again")
            # At random, so that those who wait do not come back at the same moment.
            time.sleep(wait * random.random())  # noqa: S311
            wait = min(2 * wait, _LONGEST)

    def _put(self, kept: Kept) -> bool:
        """Keep a board in place of what had its digest; False where that was changed meanwhile."""
        write = RecordTurn(to_record(kept), replaces=kept.digest)
        try:
            with _of_this_app(kept.board.name):
                (outcome,) = self._ports.store.commit(Commit(self._place, (write,)))
        except Conflict:
            return False
        if outcome == "unchanged":  # somebody else wrote the very same in this moment
            return False
        self._ports.committed()
        return True

    def delete(self, name: str) -> Receipt:
        """Remove a board with its revisions from every file of the store.

        Raises:
            NotFound: it is not there. Forbidden: it belongs to another app. Unavailable: the store is busy.
        """
        self.one(name)
        return self._ports.store.purge(self._place, Target(conversation=name))


@contextmanager
def _of_this_app(name: str) -> Iterator[None]:
    """Says of what belongs to another app that it is a board."""
    try:
        yield
    except Forbidden:
        raise Forbidden(f"board {name!r} belongs to another app; use another name") from None

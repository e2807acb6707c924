"""Threads in the store: read with their summary, changed only as they were seen, listed."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from threefold.errors import Conflict, Forbidden, NotFound
from threefold.model.commit import Commit, RecordTurn
from threefold.model.record import CatalogEntry, TurnRecord
from threefold.model.scope import Scope
from threefold.ports import CatalogQuery
from threefold.realms.conv.threads.keeping import (
    ACTIVE,
    ARCHIVED,
    STATE,
    State,
    Summary,
    place_of,
    state_record,
    summary_record,
    summary_turn,
    to_state,
    to_summary,
)
from threefold.realms.wiring import Ports

# A thread that is written to moves up the list once in so long.
_MINUTE: Final = timedelta(minutes=1)


class Shelf:
    """What is kept of one thread, as one scope sees it."""

    def __init__(self, scope: Scope, ports: Ports, name: str) -> None:
        self._scope, self._ports, self._name = scope, ports, name
        self._place = place_of(scope)

    def kept(self) -> tuple[State | None, Summary | None]:
        """The state and the summary, where they are kept."""
        own = summary_turn(self._scope.app)
        keys = [(self._name, STATE), (self._name, own)]
        stored = self._ports.store.records(self._place, keys, self._ports.clock())
        found = {record.turn: record for record in stored}
        state, summary = found.get(STATE), found.get(own)
        return None if state is None else to_state(state), None if summary is None else to_summary(summary)

    def new(self) -> State:
        """The state of a thread that is made now: of the app that the conversation belongs to.

        Raises:
            Forbidden: that is another one.
        """
        now = self._ports.clock()
        return State(self._name, now, now, app=self.home())

    def put(self, state: State) -> bool:
        """Keep the state in place of the one that was read; False where another was kept meanwhile."""
        return self._commit(RecordTurn(self._touched(state), state.digest))

    def stale(self, state: State) -> bool:
        """Whether a thread that is written to now is to move up the list."""
        return self._ports.clock() - state.active >= _MINUTE

    def put_summary(self, state: State, summary: Summary, digest: str) -> tuple[State, str] | None:
        """Keep a summary in place of the one with that digest, if the thread is as it was read before the messages.

        Returns the state and the summary's digest as they are kept now; None where one was changed meanwhile.
        """
        touched = self._touched(state)
        record = summary_record(self._name, summary, self._scope.app, self._ports.clock())
        if not self._commit(RecordTurn(touched, state.digest), RecordTurn(record, digest)):
            return None
        return to_state(touched), record.digest

    def turn(self, newest: bool) -> CatalogEntry | None:
        """The first or the last turn of the conversation that the scope sees."""
        return self._turn(self._scope, newest)

    def check_there(self) -> None:
        """Refuse where nothing is recorded.

        Raises:
            NotFound: there is no such conversation. Forbidden: it belongs to another app.
        """
        if self.turn(newest=True) is None:
            self.home()
            raise NotFound(f"thread {self._name!r} does not exist; add a message, or create() it")

    def home(self) -> str | None:
        """The app that the conversation belongs to, which is this one where there is none yet.

        Raises:
            Forbidden: it belongs to another app.
        """
        first = self.turn(newest=False)
        if self._scope.app is None:
            return None if first is None else first.app
        if first is None and self._turn(self._scope.owner, False) is not None:
            raise Forbidden(f"conversation {self._name!r} belongs to another app; use another name")
        return self._scope.app

    def _turn(self, scope: Scope, newest: bool) -> CatalogEntry | None:
        query = CatalogQuery(self._ports.clock(), self._name, newest_first=newest, limit=1)
        return next(iter(self._ports.store.catalog(scope, query)), None)

    def _touched(self, state: State) -> TurnRecord:
        now = self._ports.clock()
        active = now if self.stale(state) else state.active
        return state_record(replace(state, active=active, expires=self._ends(state, now)), now)

    def _ends(self, state: State, now: datetime) -> datetime | None:
        """A thread lives as long as the last turn, an empty one as long as a turn that is recorded now; None: for ever.

        So its name is not kept longer than what was said.
        """
        last = self.turn(newest=True)
        keys = [] if last is None else [(last.conversation, last.turn)]
        records = self._ports.store.records(self._scope, keys, now) if keys else ()
        ends = [record.expires for record in records] or [self._ports.expires()]
        known = [end for end in (*ends, *([state.expires] if state.digest else [])) if end is not None]
        return None if None in ends else max(known)

    def _commit(self, *writes: RecordTurn) -> bool:
        try:
            self._ports.store.commit(Commit(self._place, writes))
        except Conflict:
            return False
        return True


def list_states(
    scope: Scope, ports: Ports, limit: int, after: tuple[datetime, str] | None, archived: bool
) -> list[State]:
    """Threads that were made, those last written to first; `after` is when and which the last one of the page was."""
    labels = ((ACTIVE, ARCHIVED),) if archived else ((ACTIVE,),)
    place, now = place_of(scope), ports.clock()
    cursor = None if after is None else (*after, STATE)
    query = CatalogQuery(now, newest_first=True, limit=limit, after=cursor, labels=labels)
    keys = [(entry.conversation, entry.turn) for entry in ports.store.catalog(place, query)]
    return [to_state(record) for record in ports.store.records(place, keys, now)] if keys else []

"""Watching a lane: the events of its turns, of this process or of another one, live or as they are recorded."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, Final

from threefold.errors import Expired, Forbidden, NotFound, Purged
from threefold.host.holding import Hold
from threefold.host.live import END, LaneEvent, Position, recorded, since
from threefold.host.logs import Logs
from threefold.host.people import Person
from threefold.host.pools import within
from threefold.realms.conv.lanes import Lanes
from threefold.realms.conv.lanes.realm import WATCHED
from threefold.realms.conv.lanes.values import Lane, LaneKey
from threefold.realms.conv.refs import turn_ref
from threefold.realms.conv.view import view_to_json

# How often a turn that another process runs is looked at, in seconds.
_ELSEWHERE: Final = 0.25
_OVER: Final = "its events are not kept any more; this is the turn as it is recorded"


class Viewer:
    """One viewer of one lane. `closed` says when the door is; the viewer ends then."""

    def __init__(
        self,
        lanes: Lanes,
        logs: Logs,
        key: LaneKey,
        person: Person,
        threads: Executor,
        hold: Hold,
        closed: Callable[[], bool],
    ) -> None:
        self._lanes, self._logs, self._key, self._person = lanes, logs, key, person
        self._threads, self._hold, self._closed = threads, hold, closed
        self._watched = float("-inf")

    async def events(self, seen: Position | None) -> AsyncGenerator[LaneEvent, None]:
        """What happens from now on, with the turn that runs from its beginning; or what came behind a position."""
        place = await self._first() if seen is None else seen
        while not self._closed():
            if place.entry >= END:
                following = await self._following(place.turn)
                if following is None:
                    await self._logs.wait(self._key, self._hold.poll)
                else:
                    place = Position(following)
                continue
            here = self._logs.get(self._key, place.turn)
            if here is not None and here.done and await self._forgotten(place.turn):
                self._logs.drop(self._key, place.turn)
                here = None
            found = (here.entries, here.done) if here is not None else await self._elsewhere(place.turn)
            if found is None:
                place = Position(place.turn, END)
                yield _told(place, await self._recorded(place.turn))
                continue
            entries, done = found
            fresh = list(since(entries, place))
            for place, event in fresh:
                yield _told(place, event)
            if done:
                place = Position(place.turn, END)
            elif here is not None and not fresh:
                await self._logs.wait(self._key, self._hold.poll)

    async def _lane(self) -> Lane:
        return await within(self._threads, self._lanes.lane, self._key)

    async def _forgotten(self, turn: str) -> bool:
        """Whether a turn that ended is not there any more: then it is not told out of memory either."""
        if turn not in (await self._lane()).ended:
            return True
        conv = self._person.conv
        try:
            await within(self._threads, conv.stored, conv.parse(turn_ref(self._key.conversation, turn)))
        except (Expired, Purged):
            return True
        except NotFound:
            return False  # it could not be recorded
        return False

    async def _first(self) -> Position:
        """Where who comes now begins: with the turn that runs, or behind the last one."""
        lane = await self._lane()
        if lane.running is not None:
            return Position(lane.running.turn)
        return Position(lane.ended[-1] if lane.ended else "", END)

    async def _following(self, turn: str) -> str | None:
        """The turn that came behind one, if it has begun."""
        lane = await self._lane()
        order = [*lane.ended, *(() if lane.running is None else (lane.running.turn,))]
        # Ids sort by the time of making; it is asked only of a turn that the lane does not remember.
        later = order[order.index(turn) + 1 :] if turn in order else [each for each in order if each > turn]
        return later[0] if later else None

    async def _elsewhere(self, turn: str) -> tuple[Sequence[Mapping[str, Any]], bool] | None:
        """Events of a turn that another process runs or ran, and whether these are all; None: they are not kept.

        Where there may be more in a moment, that is waited for first.
        """
        lane = await self._lane()
        running = lane.running
        runs = running is not None and running.turn == turn
        if lane.next == turn or (runs and running is not None and running.holder == self._hold.holder):
            await self._logs.wait(self._key, self._hold.poll)  # it is about to begin
            return (), False
        if runs:
            await self._watch()
        # Read behind the lane: of a turn that was over then, this is all.
        shared = await within(self._threads, self._lanes.log, self._key, turn)
        if shared is None:
            return ((), False) if runs else None
        return (shared["entries"], shared["done"]) if runs or shared["done"] else None

    async def _watch(self) -> None:
        """Have the process that runs the turn share its events, and wait for some."""
        if time.monotonic() - self._watched > WATCHED.total_seconds() / 2:
            self._watched = time.monotonic()
            await within(self._threads, self._lanes.watch, self._key)
        await self._logs.wait(self._key, _ELSEWHERE)

    async def _recorded(self, turn: str) -> dict[str, Any]:
        """The event that gives a turn as it is recorded."""
        conversation = self._key.conversation
        try:
            view = await within(self._threads, self._person.conv.turn, turn_ref(conversation, turn))
        except (NotFound, Forbidden) as error:
            return recorded(conversation, None, str(error))
        return recorded(conversation, view_to_json(view), _OVER)


def _told(place: Position, event: Mapping[str, Any]) -> LaneEvent:
    return LaneEvent(place.id, str(event["type"]), event)

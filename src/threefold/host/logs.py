"""The logs of turns that this process runs, and of the last ones that it ran; and waiting for more of them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import suppress
from typing import Final
from weakref import WeakValueDictionary

from threefold.host.live import Log
from threefold.realms.conv.lanes.values import LaneKey

# Logs of turns that ended are kept, the last so many, so that who comes back after a moment goes on where it was.
_KEPT: Final = 64


async def happened(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, or so long."""
    # Not `wait_for`, which on Python 3.11 may lose that its caller is cancelled.
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


class Logs:
    """Logs by lane and turn. Used in the event loop alone."""

    def __init__(self) -> None:
        self._running: dict[LaneKey, Log] = {}
        self._ended: OrderedDict[tuple[LaneKey, str], Log] = OrderedDict()
        # Each is there as long as somebody waits for it.
        self._changed: WeakValueDictionary[LaneKey, asyncio.Event] = WeakValueDictionary()

    def begin(self, key: LaneKey, turn: str) -> Log:
        """The log of a turn that begins."""
        log = self._running[key] = Log(turn)
        return log

    def end(self, key: LaneKey, log: Log) -> None:
        """No more is added to a log. One that is done is kept for a while; of another one the end is told elsewhere."""
        del self._running[key]
        if log.done:
            self._ended[key, log.turn] = log
        while len(self._ended) > _KEPT:
            self._ended.popitem(last=False)
        self.tell(key)

    def running(self, key: LaneKey) -> Log | None:
        """The log of the turn that runs here in a lane."""
        return self._running.get(key)

    def get(self, key: LaneKey, turn: str) -> Log | None:
        """The log of a turn, if it runs here or did a while ago."""
        running = self._running.get(key)
        return running if running is not None and running.turn == turn else self._ended.get((key, turn))

    def drop(self, key: LaneKey, turn: str) -> None:
        """Keep the log of a turn that ended no longer."""
        self._ended.pop((key, turn), None)

    def tell(self, key: LaneKey) -> None:
        """Wake whoever waits for a lane."""
        changed = self._changed.pop(key, None)
        if changed is not None:
            changed.set()

    def tell_all(self) -> None:
        """Wake everybody."""
        for key in list(self._changed):
            self.tell(key)

    async def wait(self, key: LaneKey, seconds: float) -> None:
        """Wait until something happens in a lane here, or so long."""
        changed = self._changed.setdefault(key, asyncio.Event())
        await happened(changed, seconds)

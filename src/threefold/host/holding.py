"""A turn that a door runs: what comes for it meanwhile, the hold on its lane, and its events for viewers elsewhere."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from threefold.errors import Conflict, IntegrityError, NotFound, ThreefoldError, Unavailable
from threefold.host.events import Outcome
from threefold.host.live import Log, Teller
from threefold.host.logs import Logs, happened
from threefold.host.pools import within
from threefold.host.sending import Batch, Closing, File
from threefold.host.work import Request
from threefold.realms.conv.lanes import Lanes
from threefold.realms.conv.lanes.changing import held
from threefold.realms.conv.lanes.values import Lane, LaneKey, Running, Sent

_log = logging.getLogger("threefold.host")
# What viewers at other processes are shown of a turn, in characters; beyond that they get it when it is recorded.
MAX_SHARED: Final = 2**20
# How often their events are put down while somebody watches, in seconds.
_SHARED_EVERY: Final = 0.25
# Seconds between the tries of a store that is busy.
PAUSES: Final = (0.2, 1.0, 3.0)


@dataclass(frozen=True, slots=True)
class Hold:
    """How lanes are held: by whom, how long at once, and how often one is looked at."""

    holder: str
    lease: timedelta
    poll: float


class Holding:
    """A turn that this process holds. It is the inbox of its request: what comes is loaded, then the agent may take it.

    `stopping` says why the turn is to stop, `lost` whether it is another's by now.
    """

    def __init__(
        self, lanes: Lanes, key: LaneKey, running: Running, hold: Hold, logs: Logs, log: Log, threads: Executor
    ) -> None:
        self._lanes, self._key, self._hold, self._threads = lanes, key, hold, threads
        self.turn, self.sent = running.turn, running.sent
        self._logs, self.log = logs, log
        self.teller = Teller(key.conversation, running.turn, lanes.clock, lanes.redact)
        self.stopping: str | None = None
        self.lost = False
        self._request: Request | None = None
        self._task: asyncio.Task[Outcome] | None = None
        self._came: list[Batch] = []
        self._taken, self._loaded = len(running.sent), len(running.sent)
        self._told_waiting: set[str] = set()
        self._taking = threading.Lock()  # `take` is called from the agent's thread
        self._noticing = asyncio.Lock()
        self._woken = asyncio.Event()
        self._shared, self._over = 0, False
        self._renewed = time.monotonic()

    @property
    def waiting(self) -> bool:
        """See `Inbox.waiting`."""
        return bool(self._came)

    def take(self) -> tuple[Batch, ...]:
        """See `Inbox.take`."""
        with self._taking:
            came, self._came = tuple(self._came), []
            self._taken += len(came)
            return came

    async def close(self, force: bool) -> Closing:
        """See `Inbox.close`."""
        async with self._noticing:
            closing = force or self.stopping is not None
            try:
                running = await self._patiently(closing)
            except Conflict:
                self.lost = True
                raise
            await self._load(running.sent[self._loaded :])
            came = self.take()
            # What came last is answered by nobody where the turn is to stop.
            why = "cancelled" if running.cancelled else self.stopping if came else None
            return Closing(running.closed, came, why)

    async def _patiently(self, force: bool) -> Running:
        for pause in PAUSES:
            with suppress(Unavailable):
                return await self._close(force)
            await asyncio.sleep(pause)
        return await self._close(force)

    async def _close(self, force: bool) -> Running:
        hold = self._hold
        return await within(
            self._threads, self._lanes.close, self._key, hold.holder, self.turn, self._taken, hold.lease, force
        )

    def begin(self, request: Request, task: asyncio.Task[Outcome]) -> None:
        """The request is worked on, by this task."""
        self._request, self._task = request, task
        if self.stopping is not None:
            self.stop(self.stopping)

    def stop(self, why: str) -> None:
        """Have the agent stop; a turn that is being recorded is not interrupted."""
        self.stopping = why
        if self._task is not None and self._request is not None and not self._request.ending:
            self._task.cancel(why)

    def notice(self) -> None:
        """Something was sent or withdrawn, or the turn cancelled: look at the lane at once."""
        self._woken.set()

    def told(self, events: Iterable[dict[str, Any]]) -> None:
        """Something happened: it goes into the log, and to who watches."""
        self.log.add(events)
        self._logs.tell(self._key)

    async def care(self) -> None:
        """Look after the turn until this is cancelled: what comes, the hold on the lane, viewers elsewhere."""
        watched = False
        while True:
            await happened(self._woken, _SHARED_EVERY if watched else self._hold.poll)
            self._woken.clear()
            try:
                async with self._noticing:
                    lane, watched = await within(self._threads, self._looked)
                    await self._noticed(lane)
                    if watched and not self._over:
                        await self.share()
            except Conflict:
                self.lost = True
                self.stop("another process took the turn over")
                return
            except ThreefoldError as error:
                _log.warning("lane of conversation %r: %s", self._key.conversation, error)

    def _looked(self) -> tuple[Lane, bool]:
        """The lane as it is, and whether somebody watches it elsewhere; the hold is renewed when it is time.

        Raises:
            Conflict: it is not held any more.
        """
        hold = self._hold
        lane = self._lanes.lane(self._key)
        held(lane, hold.holder, self.turn)
        if time.monotonic() - self._renewed >= hold.lease.total_seconds() / 3:
            lane = self._lanes.renew(self._key, hold.holder, self.turn, hold.lease)
            self._renewed = time.monotonic()
        return lane, self._lanes.watched(self._key)

    async def _noticed(self, lane: Lane) -> None:
        running = held(lane, self._hold.holder, self.turn)
        if self._over:
            return
        await self._load(running.sent[self._loaded :])
        self._tell_waiting(lane)
        if running.cancelled and self.stopping is None:
            self.stop("cancelled")

    def _tell_waiting(self, lane: Lane) -> None:
        """What waits for the next turn since a moment ago; and what does not any more was withdrawn.

        While this turn runs no other one takes it.
        """
        for place, sent in enumerate(lane.waiting):
            if sent.id not in self._told_waiting:
                self._told_waiting.add(sent.id)
                self.told(self.teller.accepted(sent, lane.next, "folded" if place else "queued"))
        for submission in sorted(self._told_waiting - {each.id for each in lane.waiting}):
            self._told_waiting.discard(submission)
            self.told(self.teller.withdrawn(submission))

    async def look_once_more(self) -> None:
        """Before the last events: what was sent or withdrawn until now. Then nothing is told or shared but those."""
        async with self._noticing:
            self._over = True
            try:
                self._tell_waiting(await within(self._threads, self._lanes.lane, self._key))
            except ThreefoldError as error:
                _log.warning("lane of conversation %r: %s", self._key.conversation, error)

    async def _load(self, sent: Sequence[Sent]) -> None:
        """Take in what came for this turn, with its bytes; told when the agent may take it."""
        batches = await load(self._lanes, self._key, sent, self._threads)
        with self._taking:
            self._came += batches
            self._loaded += len(batches)
        for each in sent:
            self.told(self.teller.accepted(each, self.turn, "steered"))

    async def share(self) -> None:
        """Put the events down for viewers at other processes, if there are new ones."""
        edition = self.log.edition
        if edition != self._shared:
            await self._share((), edition)
            self._shared = edition

    async def _share(self, last: Sequence[dict[str, Any]], edition: int) -> None:
        if self.log.size <= MAX_SHARED:
            body = {"entries": [*map(dict, self.log.entries), *last], "done": bool(last)}
            await within(self._threads, self._lanes.put_log, self._key, self.turn, body, edition)

    async def share_end(self, last: Sequence[dict[str, Any]]) -> None:
        """Put the events down with the last ones, if somebody watches elsewhere."""
        try:
            if await within(self._threads, self._lanes.watched, self._key):
                await self._share(last, self.log.edition + 1)
        except ThreefoldError as error:
            _log.warning("events of conversation %r: %s", self._key.conversation, error)


async def load(lanes: Lanes, key: LaneKey, sent: Sequence[Sent], threads: Executor) -> tuple[Batch, ...]:
    """What was sent, with the bytes of its files. One whose bytes are lost is told of as a context event.

    Raises:
        Unavailable: the place of bytes cannot be reached.
    """

    def read() -> tuple[Batch, ...]:
        return tuple(_batch(lanes, key, each) for each in sent)

    return await within(threads, read) if sent else ()


def _batch(lanes: Lanes, key: LaneKey, sent: Sent) -> Batch:
    files, context = [], list(sent.context)
    for file in sent.attachments:
        try:
            files.append(File(file.name, lanes.read(key, file.digest), file.mime))
        except (NotFound, IntegrityError) as error:
            context.append(("attachment.lost", {"name": file.name, "digest": file.digest, "why": str(error)}))
    return Batch(sent.kind, sent.text, sent.at, sent.id, sent.author, tuple(files), tuple(context), dict(sent.redacted))

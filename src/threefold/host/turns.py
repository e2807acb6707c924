"""Running the turns of a lane: from what was sent to the recorded turn, whatever happens on the way."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from threefold.context.intents import intent_of
from threefold.errors import Conflict, InvalidInput, NotFound, ThreefoldError, Unavailable
from threefold.host.ending import mark
from threefold.host.events import Outcome
from threefold.host.holding import Hold, Holding, load
from threefold.host.kernel import Kernel
from threefold.host.live import Log, Teller, shown
from threefold.host.logs import Logs
from threefold.host.pools import within
from threefold.host.sending import Batch, goal_of, put_in
from threefold.model.kinds import Status
from threefold.realms.conv.lanes import Lanes
from threefold.realms.conv.lanes.changing import forgotten
from threefold.realms.conv.lanes.values import LaneKey, Running
from threefold.realms.conv.recorder import TurnHandle
from threefold.realms.conv.refs import turn_ref
from threefold.realms.redacting import Pass

_log = logging.getLogger("threefold.host")
STOPPED = "the process that ran it stopped"


class Turns:
    """Runs turns that a door holds, and ends those that others left."""

    def __init__(self, kernel: Kernel, lanes: Lanes, hold: Hold, logs: Logs) -> None:
        self._kernel, self._lanes, self._hold, self._logs = kernel, lanes, hold, logs
        self.holdings: dict[LaneKey, Holding] = {}

    def notice(self, key: LaneKey) -> None:
        """The lane of a turn that may run here was changed: look at it at once."""
        holding = self.holdings.get(key)
        if holding is not None:
            holding.notice()

    async def run(self, key: LaneKey, running: Running) -> None:
        """Run a turn to its end, or end one that was left by its holder or cancelled before it began.

        Raises:
            Unavailable: the store is; the turn is taken over when nobody holds it any more.
        """
        if running.closed:
            await self._end_left(key, running)
            return
        threads = self._kernel.work.pools.store
        log = self._logs.begin(key, running.turn)
        holding = Holding(self._lanes, key, running, self._hold, self._logs, log, threads)
        self.holdings[key] = holding
        holding.told(holding.teller.opened())
        for place, sent in enumerate(running.sent):
            holding.told(holding.teller.accepted(sent, running.turn, "folded" if place else "opened"))
        caring = asyncio.ensure_future(holding.care())
        try:
            await self._run(key, holding)
        finally:
            del self.holdings[key]
            caring.cancel()
            await asyncio.wait((caring,))
            self._logs.end(key, log)

    async def _run(self, key: LaneKey, holding: Holding) -> None:
        status: Status = "failed"
        error: str | None = None
        outcome: Outcome | None = None
        try:
            outcome = await self._answered(key, holding)
            status, error = outcome.status, outcome.error
        except asyncio.CancelledError:
            if holding.stopping is None:
                raise  # it is this task that is cancelled
            status, error = "cancelled", holding.stopping
        except ThreefoldError as failed:
            error = str(failed)
        if holding.lost:
            # Only what was recorded here: another process may have taken the turn over, and its record stands.
            if outcome is not None and outcome.ref:
                await self._take_back(key, holding.turn)
            return
        if outcome is None or not outcome.ref:
            status, error = await self._record(key, holding.turn, status, error, holding.log)
        await holding.look_once_more()
        last = list(holding.teller.ended(status, error, self._result(key, holding.turn, outcome)))
        await holding.share_end(last)
        await self._end(key, holding.turn)
        # Told when the lane is free: who answers to this opens a turn.
        holding.told(last)
        holding.log.end()

    async def _answered(self, key: LaneKey, holding: Holding) -> Outcome:
        """Let an agent answer. Raises what kept it from that, and cancellation where it was stopped before it began."""
        work = self._kernel.work
        sent = await load(self._lanes, key, holding.sent, work.pools.store)
        intent = intent_of(goal_of(sent), key.conversation, self._kernel.budget, id_=holding.turn)
        user, tenant = key.scope.user, key.scope.tenant
        request = self._kernel.request(intent, user, sent, key.agent, tenant=tenant, inbox=holding)
        task = work.begin(request)
        holding.begin(request, task)
        while (event := await request.events.get()) is not None:
            holding.told(holding.teller.told(event))
        return task.result()

    async def _end_left(self, key: LaneKey, running: Running) -> None:
        """End a turn that its holder left, as it is known from what it shared with viewers; or one that never began."""
        threads = self._kernel.work.pools.store
        shared = await within(threads, self._lanes.log, key, running.turn)
        log = Log(running.turn)
        log.add(() if shared is None else shared["entries"])
        status: Status = "cancelled" if running.cancelled else "failed"
        error: str | None = "cancelled" if running.cancelled else STOPPED
        status, error = await self._record(key, running.turn, status, error, log)
        if shared is not None and not shared["done"]:
            teller = Teller(key.conversation, running.turn, self._lanes.clock, self._lanes.redact)
            log.add(teller.ended(status, error, self._result(key, running.turn, None)))
            body = {"entries": log.entries, "done": True}
            # Behind all that the holder put there.
            await within(threads, self._lanes.put_log, key, running.turn, body, len(log.entries) + log.size)
        await self._end(key, running.turn)
        self._logs.tell(key)

    async def _end(self, key: LaneKey, turn: str) -> None:
        """Let a turn be over, which is recorded.

        Raises:
            Conflict: it is not held any more.
        """
        try:
            await within(self._kernel.work.pools.store, self._lanes.end, key, self._hold.holder, turn)
        except Conflict:
            await self._take_back(key, turn)
            raise

    async def _take_back(self, key: LaneKey, turn: str) -> None:
        """Remove a turn that was recorded, and what was shared of it, if its lane was forgotten meanwhile."""
        threads = self._kernel.work.pools.store
        if forgotten(await within(threads, self._lanes.lane, key), turn):
            person = self._kernel.person(key.scope.user, key.scope.tenant)
            await within(threads, person.conv.forget, key.conversation, turn)

    async def _record(
        self, key: LaneKey, turn: str, status: Status, error: str | None, log: Log
    ) -> tuple[Status, str | None]:
        """Record a turn that its request did not record: with what was sent, and what had been shown of it.

        Of both what cannot be kept is left out. Where the turn was recorded after all, that stands. Returns the status
        and the error of what is recorded, which is cancelled where that was said while it was open.

        Raises:
            Conflict: it is not held any more. Unavailable: the store is.
        """
        threads, hold = self._kernel.work.pools.store, self._hold
        running = await within(threads, self._lanes.close, key, hold.holder, turn, 0, hold.lease, True)
        if running.cancelled and status != "cancelled":
            status, error = "cancelled", "cancelled"
        person = self._kernel.person(key.scope.user, key.scope.tenant, key.agent)
        batches = await load(self._lanes, key, running.sent, threads)
        handle = person.turn(key.conversation, turn, once=True)
        try:
            put_in(handle, [_keepable(batch, lambda: person.turn(key.conversation, turn)) for batch in batches])
            _put_shown(handle, log.entries)
            mark(handle, status, error)
            await within(threads, handle.record)
        except (Conflict, Unavailable) as problem:
            if isinstance(problem, Unavailable):
                raise
        except ThreefoldError as problem:
            _log.error("turn %r of conversation %r cannot be recorded: %s", turn, key.conversation, problem)
            return status, error
        try:
            view = await within(threads, person.conv.turn, turn_ref(key.conversation, turn))
        except NotFound:
            return status, error  # forgotten meanwhile
        return view.status, view.error

    def _result(self, key: LaneKey, turn: str, outcome: Outcome | None) -> dict[str, Any]:
        """What is told of a turn that is over."""
        result: dict[str, Any] = {"ref": turn_ref(key.conversation, turn)}
        if outcome is not None:
            done = Pass(self._lanes.redact)
            result |= {"agent": outcome.agent, "citations": dict(outcome.citations), "tokens": dict(outcome.tokens),
                       "warnings": [done.text(each) for each in outcome.warnings]}  # fmt: skip
        return result


def _keepable(batch: Batch, blank: Callable[[], TurnHandle]) -> Batch:
    """What of a batch a turn can keep: its text, and all else that a `blank` one takes."""
    bare = replace(batch, author=None, attachments=(), context=())

    def fits(**part: Any) -> bool:
        try:
            put_in(blank(), (replace(bare, **part),))
        except InvalidInput as problem:
            _log.error("submission %r is recorded without its %s: %s", batch.id, *part, problem)
            return False
        return True

    return replace(
        bare,
        author=batch.author if fits(author=batch.author) else None,
        attachments=tuple(file for file in batch.attachments if fits(attachments=(file,))),
        context=tuple(each for each in batch.context if fits(context=(each,))),
    )


def _put_shown(turn: TurnHandle, entries: Sequence[Mapping[str, Any]]) -> None:
    """Have a turn record what had been shown of it."""
    messages, steps = shown(entries)
    for name, status, arguments, result in steps:
        given = None if arguments is None else json.loads(arguments)
        try:
            turn.step(name, given, result, status)  # type: ignore[arg-type]  # as it was told
        except InvalidInput as problem:
            _log.error("turn %r is recorded without step %r: %s", turn.id, name, problem)
    for text in messages[:-1]:
        turn.partial(text)
    if messages:
        turn.answer(messages[-1])

"""The door: what people send is accepted into durable lanes, turns run from there, and viewers follow them live."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from datetime import timedelta
from typing import Any, Final, ParamSpec, Self, TypeVar

from threefold.errors import Conflict, InvalidInput, ThreefoldError, TooMany, Unavailable
from threefold.host.holding import Hold
from threefold.host.kernel import Kernel
from threefold.host.live import LaneEvent, Position
from threefold.host.logs import Logs, happened
from threefold.host.pools import within
from threefold.host.turns import Turns
from threefold.host.viewing import Viewer
from threefold.model.kinds import SubmissionKind
from threefold.model.scope import check_id
from threefold.realms.conv.lanes.arriving import Draft, File, draft
from threefold.realms.conv.lanes.values import Accepted, LaneKey, LaneView, Sent
from threefold.realms.conv.recorder import new_turn_id

_P = ParamSpec("_P")
_T = TypeVar("_T")
_log = logging.getLogger("threefold.host")
# Lanes that are looked at at once.
_PAGE: Final = 100


class Door:
    """Accepts what people send to conversations while a `Kernel` answers, one turn at a time in each lane.

        async with Kernel(db) as kernel, threefold.Door(kernel) as door:
            accepted = await door.submit("Plan a weekend", owner="alice", conversation="trip")
            async for event in door.events("alice", "trip"):
                ...

    A lane is a conversation of a user, and of an agent where one is named. What was accepted survives the process: a
    turn whose process died is recorded as failed by whoever has a door open on the store, and what waited goes on.

    Args:
        kernel: what answers; it is closed after the door.
        waiting: submissions that may wait in a lane, and that may interrupt a turn.
        lanes: lanes that run in this process at once; `user_lanes`: those of one user.
        lease: seconds after which a lane is free whose process said nothing more.
        poll: seconds between looks at a lane that another process may change.
        look: seconds between looks for lanes that nobody runs.
    """

    def __init__(
        self,
        kernel: Kernel,
        *,
        waiting: int = 20,
        lanes: int = 8,
        user_lanes: int = 4,
        lease: float = 30.0,
        poll: float = 0.5,
        look: float = 10.0,
    ) -> None:
        named = {"waiting": waiting, "lanes": lanes, "user_lanes": user_lanes, "lease": lease, "poll": poll,
                 "look": look}  # fmt: skip
        for name, value in named.items():
            if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
                raise InvalidInput(f"{name} {value!r} must be more than nothing")
        self._kernel, self._lanes = kernel, kernel.lanes
        self._waiting, self._most, self._most_of_user = int(waiting), int(lanes), int(user_lanes)
        self._hold = Hold(os.urandom(8).hex(), timedelta(seconds=lease), poll)
        self._look_every = look
        self._logs = Logs()
        self._turns = Turns(kernel, self._lanes, self._hold, self._logs)
        self._tasks: dict[LaneKey, asyncio.Task[None]] = {}
        self._wanted: set[LaneKey] = set()
        self._looking: asyncio.Task[None] | None = None
        self._free = asyncio.Event()
        self._closed = True

    async def start(self) -> Self:
        """Begin, also after a `close`: look for lanes that are free to run, now and then."""
        if self._closed:
            self._closed = False
            self._looking = asyncio.ensure_future(self._look_on())
        return self

    async def close(self, seconds: float = 10.0) -> None:
        """Accept no more and let turns that run end; after so many `seconds` cancel them, which is recorded.

        What waits stays for the next start, here or at another process. Safe to call twice.
        """
        self._closed = True
        self._logs.tell_all()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait((self._looking,))
            self._looking = None
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=seconds)
        while self._tasks:
            for holding in self._turns.holdings.values():
                holding.stop("the door was closed")
            await asyncio.wait(self._tasks.values(), timeout=1.0)  # one may just have begun

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def submit(
        self,
        text: str,
        owner: str,
        conversation: str,
        kind: SubmissionKind = "prompt",
        agent: str | None = None,
        tenant: str | None = None,
        attachments: Sequence[File] = (),
        context: Sequence[Mapping[str, Any]] = (),
        key: str | None = None,
        author: str | None = None,
    ) -> Accepted:
        """Accept what somebody sends; when this returns it is kept, whatever happens to the process.

        A `prompt` opens a turn where none runs. While one runs, a `followup` or a further `prompt` waits, and all that
        wait are the next turn together; a `steer` interrupts the turn at a safe point, which goes on with it.

        Args:
            text: what is said. owner: who says it. conversation: where.
            kind: `prompt`, `followup` or `steer`.
            agent: which agent answers, which has a lane of its own; else one is chosen.
            tenant: of which tenant the owner is; else the kernel's.
            attachments: files, as (name, bytes) or (name, bytes, MIME type).
            context: what was around, such as `{"type": "page", "url": …}`.
            key: the same submission again under the same key changes nothing, and is answered the same.
            author: the speaker's name, where several speak.

        Raises:
            InvalidInput: an argument is malformed or too large. NotFound: no such agent. Forbidden: the conversation is
            another app's. TooMany (a Conflict): too much waits, or too many lanes of the owner run. Conflict: its
            thread is archived, or the key was used for something else. Unavailable: too many lanes run, the door is
            closed, or the store is busy.
        """
        if self._closed:
            raise Unavailable("the door is closed; start it, or send this again to another process")
        lane = self._key(owner, conversation, agent, tenant)
        if agent is not None:
            self._kernel.agents.get(agent)
        now, rule = self._lanes.clock(), self._lanes.redact
        made = await self._within(draft, new_turn_id(), kind, text, now, attachments, context, key, author, rule)
        accepted = await self._within(self._accepted, lane, made)
        self._turns.notice(lane)
        self._run(lane)
        return accepted

    def _accepted(self, key: LaneKey, made: Draft) -> Accepted:
        self._kernel.thread(key.conversation, key.scope.user, key.scope.tenant).check_open()

        def opening() -> None:
            if key not in self._tasks:
                self._check_room(key)

        accepted, _ = self._lanes.submit(key, made, self._waiting, opening)
        return accepted

    async def cancel(
        self,
        owner: str,
        conversation: str,
        turn: str | None = None,
        tenant: str | None = None,
        agent: str | None = None,
    ) -> bool:
        """Stop the turn that runs, if it is this one; it is recorded as cancelled. False where there is none to stop.

        Where none runs, it is what waits that is recorded as cancelled. What waits behind a turn that is stopped stays.
        """
        key = self._key(owner, conversation, agent, tenant)
        if await self._within(self._lanes.cancel, key, turn):
            self._turns.notice(key)
            return True
        stopped = await self._within(self._lanes.stop, key, self._hold.holder, self._hold.lease, turn)
        if stopped is None:
            return False
        await self._turns.run(key, stopped)
        self._run(key)
        return True

    async def withdraw(
        self, owner: str, conversation: str, submission: str, tenant: str | None = None, agent: str | None = None
    ) -> Sent:
        """Take back one submission that waits, and give it; what waits beside it stays. Its key stays used.

        Raises:
            Conflict: a turn has it already. NotFound: nothing waits under this id (any more). InvalidInput: an argument
            is malformed. Forbidden: the conversation is another app's.
        """
        key = self._key(owner, conversation, agent, tenant)
        sent = await self._within(self._lanes.withdraw, key, check_id(submission, "submission"))
        self._turns.notice(key)
        return sent

    def lane(self, owner: str, conversation: str, tenant: str | None = None, agent: str | None = None) -> LaneView:
        """What runs in a lane, since when and with which submissions, and what waits. A plain call, not awaited."""
        return self._lanes.view(self._key(owner, conversation, agent, tenant))

    async def events(
        self,
        owner: str,
        conversation: str,
        tenant: str | None = None,
        after: str | None = None,
        agent: str | None = None,
    ) -> AsyncGenerator[LaneEvent, None]:
        """What happens in a lane, as it happens, until the viewer leaves or the door is closed.

        Who comes late gets the turn that runs from its beginning, then what follows; every viewer of a lane gets the
        same, at any process. `after` is the id of the last event that was received: what came behind it is given,
        nothing twice and nothing left out, as long as no more than twenty turns ended since. A turn whose events are
        not kept any more comes as one event, `threefold.recorded`, as it is recorded.

        Raises:
            InvalidInput: an argument is malformed. Forbidden: the conversation is another app's. Unavailable: the store
            is busy.
        """
        key = self._key(owner, conversation, agent, tenant)
        seen = None if after is None else Position.of(after)
        person = self._kernel.person(owner, tenant)
        threads = self._kernel.work.pools.store
        viewer = Viewer(self._lanes, self._logs, key, person, threads, self._hold, lambda: self._closed)
        async with aclosing(viewer.events(seen)) as events:
            async for event in events:
                yield event

    async def look(self) -> int:
        """Look now for lanes that nobody runs and begin with them; returns how many. This is done by itself too."""
        app = self._kernel.app
        running = Counter(key.scope.owner for key in self._tasks)
        busy = {owner for owner, lanes in running.items() if lanes >= self._most_of_user}
        agents = [agent.name for agent in self._kernel.agents.list()]
        left = await self._within(self._lanes.left, app, _PAGE, busy)
        free = await self._within(self._lanes.free, app, _PAGE, agents, busy)
        return sum([self._run(key) for key in (*left, *free)])

    async def _look_on(self) -> None:
        while True:
            try:
                await self.look()
            except ThreefoldError as error:
                _log.warning("looking for lanes: %s", error)
            await happened(self._free, self._look_every)
            self._free.clear()

    def _key(self, owner: str, conversation: str, agent: str | None, tenant: str | None) -> LaneKey:
        scope = self._kernel.person(owner, tenant).scope
        named = None if agent is None else check_id(agent, "agent")
        return self._lanes.key(scope, check_id(conversation, "conversation"), named)

    def _knows(self, key: LaneKey) -> bool:
        """Whether the agent of a lane is here. Without it no turn is opened; one that was left is still ended."""
        return key.agent is None or any(agent.name == key.agent for agent in self._kernel.agents.list())

    def _has_room(self, key: LaneKey) -> bool:
        """Whether this process may run one more lane."""
        with suppress(Conflict, Unavailable):
            self._check_room(key)
            return True
        return False

    def _check_room(self, key: LaneKey) -> None:
        """Refuse to run one more lane than is allowed.

        Raises:
            Unavailable: too many run. TooMany: too many of the owner do.
        """
        mine = sum(each.scope.key == key.scope.key for each in self._tasks.copy())
        if mine >= self._most_of_user:
            raise TooMany(f"{mine} conversations of {key.scope.user!r} run already; let one end, or cancel it")
        if len(self._tasks) >= self._most:
            raise Unavailable(f"{self._most} conversations run in this process already; try again in a moment")

    def _run(self, key: LaneKey) -> bool:
        """Run the turns of a lane, unless there is no room: then it waits for one that ends."""
        if key in self._tasks:
            self._wanted.add(key)
            return False
        if self._closed or not self._has_room(key):
            return False
        task = self._tasks[key] = asyncio.ensure_future(self._run_on(key))
        task.add_done_callback(lambda _: self._ran(key, task))
        return True

    async def _run_on(self, key: LaneKey) -> None:
        """Turn after turn, as long as something waits."""
        hold = self._hold
        while not self._closed:
            self._wanted.discard(key)
            running = await self._within(self._lanes.next, key, hold.holder, hold.lease, self._knows(key))
            if running is not None:
                await self._turns.run(key, running)
            elif key not in self._wanted:
                return

    def _ran(self, key: LaneKey, task: asyncio.Task[None]) -> None:
        del self._tasks[key]
        error = None if task.cancelled() else task.exception()
        if error is not None:
            # Nothing is lost: the turn is taken over when nobody holds it any more. Not at once: it may fail again.
            _log.error("lane of conversation %r: %s: %s", key.conversation, type(error).__name__, error)
            return
        if key in self._wanted:
            self._run(key)
        self._free.set()

    async def _within(self, call: Callable[_P, _T], *values: _P.args, **named: _P.kwargs) -> _T:
        return await within(self._kernel.work.pools.store, call, *values, **named)

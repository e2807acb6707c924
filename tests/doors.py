"""Doors for tests: a play over a store, agents that wait for what a test says, and a viewer that is waited with."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import threefold
from threefold import Door, Kernel
from threefold.host.live import LaneEvent

WAIT = 120
ENDS = ("RUN_FINISHED", "RUN_ERROR")


def played(db: threefold.Threefold, play: Callable[[Kernel, Door], Awaitable[Any]], **settings: Any) -> Any:
    """What a play with a door over a store gives."""
    kernel_settings = {name: settings.pop(name) for name in ("app", "tenant", "chat") if name in settings}

    async def run() -> Any:
        async with Kernel(db, **kernel_settings) as kernel, Door(kernel, **settings) as door:
            return await play(kernel, door)

    return asyncio.run(asyncio.wait_for(run(), WAIT))


def still(door: Door) -> None:
    """Have a door look for lanes that nobody runs only when it is told to."""
    assert door._looking is not None
    door._looking.cancel()


class Gate:
    """An agent that says its goal in two pieces, and waits in between where the goal asks for it."""

    def __init__(self, word: str = "wait") -> None:
        self.word, self.begun, self.open = word, asyncio.Event(), asyncio.Event()
        self.goals: list[str] = []

    async def __call__(self, run: Any):
        self.goals.append(run.goal)
        yield "heard "
        self.begun.set()
        if run.goal.endswith(self.word):
            await self.open.wait()
        yield run.goal


class Viewer:
    """A viewer of a conversation: what it was told, and waiting for more of it."""

    def __init__(self, door: Door, owner: str, conversation: str, **options: Any) -> None:
        self.told: list[LaneEvent] = []
        self._more = asyncio.Event()
        self._task = asyncio.ensure_future(self._look(door.events(owner, conversation, **options)))

    async def _look(self, events: Any) -> None:
        try:
            async for event in events:
                self.told.append(event)
                self._more.set()
        finally:
            await events.aclose()

    async def until(self, right: Callable[[LaneEvent], bool], count: int = 1) -> list[LaneEvent]:
        """All that was told, when so many events are right."""
        while sum(map(right, self.told)) < count:
            if self._task.done():
                self._task.result()
                raise AssertionError(f"the viewer ended after {[event.type for event in self.told]}")
            self._more.clear()
            waiting = asyncio.ensure_future(self._more.wait())
            await asyncio.wait((waiting, self._task), timeout=WAIT, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
        return self.told

    async def ends(self, turns: int = 1) -> list[LaneEvent]:
        """All that was told, when so many turns have ended."""
        return await self.until(lambda event: event.type in ENDS, turns)

    async def leave(self) -> None:
        self._task.cancel()
        await asyncio.wait((self._task,))


async def sent(door: Door, text: str, owner: str = "alice", conversation: str = "trip", **options: Any) -> Any:
    """The acknowledgement of a submission, and a viewer that follows its turn from the beginning."""
    accepted = await door.submit(text, owner, conversation, **options)
    followed = {name: options[name] for name in ("agent", "tenant") if name in options}
    return accepted, Viewer(door, owner, conversation, after=accepted.after, **followed)


def texts(told: list[LaneEvent]) -> list[str]:
    """The messages that were told, whole."""
    messages: dict[str, str] = {}
    for event in told:
        if event.type == "TEXT_MESSAGE_CONTENT":
            messages[event.data["messageId"]] = messages.get(event.data["messageId"], "") + event.data["delta"]
    return list(messages.values())


def custom(told: list[LaneEvent], name: str) -> list[Any]:
    """The values of CUSTOM events of a name."""
    return [event.data["value"] for event in told if event.data.get("name") == f"threefold.{name}"]


def turns(db: threefold.Threefold, conversation: str = "trip", user: str = "alice") -> list[Any]:
    """The recorded turns of a conversation, in order."""
    conv = db.user(user).conv
    found = conv.turns(conversation, limit=1000)
    return [conv.turn(f"conv:ar:conv_{conversation}.turn_{each.turn}.turn.log") for each in found]


def said(turn: Any) -> list[tuple[str, str]]:
    """Who said what in a turn."""
    return [(message.kind, message.text) for message in turn.messages]

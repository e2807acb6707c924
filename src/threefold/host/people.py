"""What a host needs of a store: people's handles and the context engines. `Threefold` has all of it."""

from __future__ import annotations

from typing import Protocol

from threefold.context.manager import Contexts
from threefold.context.sources import Sources
from threefold.model.scope import Scope
from threefold.ports import ChatModel
from threefold.realms.conv import Conv
from threefold.realms.conv.lanes import Lanes
from threefold.realms.conv.recorder import TurnHandle
from threefold.realms.conv.threads import Thread
from threefold.realms.mem import Mem


class Person(Protocol):
    """A handle bound to one scope: see `threefold.Handle`."""

    @property
    def mem(self) -> Mem:
        """Curated memory."""
        ...

    @property
    def scope(self) -> Scope:
        """Whose it is."""
        ...

    @property
    def conv(self) -> Conv:
        """The record."""
        ...

    @property
    def sources(self) -> Sources:
        """What contexts are made of."""
        ...

    def turn(self, conversation: str, turn: str | None = None, *, once: bool = False) -> TurnHandle:
        """Open a turn; one that is recorded already is left as it is with `once`."""
        ...

    def thread(self, name: str) -> Thread:
        """A thread by name."""
        ...


class House(Protocol):
    """An open store: see `threefold.Threefold`."""

    @property
    def contexts(self) -> Contexts:
        """The context engines."""
        ...

    @property
    def lanes(self) -> Lanes:
        """What was sent to live turns and is not recorded yet."""
        ...

    @property
    def chat(self) -> ChatModel | None:
        """The chat model that the store was opened with."""
        ...

    def user(self, user: str, tenant: str = "default", app: str | None = None, agent: str | None = None) -> Person:
        """A handle bound to one scope."""
        ...

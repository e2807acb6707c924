"""Removing things: what is aimed at, and the receipt that says what was touched."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from threefold.errors import InvalidInput

Gone = Literal["expired", "purged"]


def tombstone(conversation: str, turn: str) -> bytes:
    """The hash (16 bytes) under which a store remembers a removed turn."""
    text = f"{len(conversation)}:{conversation}:{turn}"
    return hashlib.sha256(text.encode()).digest()[:16]


@dataclass(frozen=True, slots=True)
class Target:
    """What a purge removes within its scope. Nothing set: all of the user; `tenant`: every user of the tenant.

    Raises:
        InvalidInput: a turn without its conversation, or a part of a tenant.
    """

    conversation: str | None = None
    turn: str | None = None
    tenant: bool = False

    def __post_init__(self) -> None:
        if self.turn is not None and self.conversation is None:
            raise InvalidInput("a turn is removed within its conversation; give both")
        if self.tenant and self.conversation is not None:
            raise InvalidInput("a tenant is removed whole; leave conversation and turn out")

    @property
    def kind(self) -> str:
        """`turn`, `conversation`, `user` or `tenant`."""
        if self.tenant:
            return "tenant"
        if self.turn is not None:
            return "turn"
        return "conversation" if self.conversation is not None else "user"


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a purge removed, store by store. `stores` names every place that was touched and how many entries went.

    `leftovers` says in a sentence what could not be finished yet (another process still reads the log); it is finished
    by the next maintenance. Empty: nothing of it is in any file of the store.
    """

    kind: str
    stores: Mapping[str, int] = field(default_factory=dict)
    leftovers: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The receipt as plain JSON values."""
        return {"forgot": self.kind, "stores": dict(self.stores), "leftovers": list(self.leftovers)}

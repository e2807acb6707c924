"""Threefold: a context database for agents. `threefold.open()` is the door; the rest follows from its handle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from threefold.app import (
    Threefold,
    compare_stores,
    copy_store,
    open,  # noqa: A004 - `threefold.open()` reads as it is meant
    restore,
)
from threefold.config import Config
from threefold.errors import (
    Conflict,
    Expired,
    Forbidden,
    IntegrityError,
    InvalidInput,
    NotFound,
    Purged,
    ThreefoldError,
    TooMany,
    Unavailable,
)
from threefold.handle import Commons, Handle
from threefold.search.rank import Ranking

if TYPE_CHECKING:
    from threefold.host.agents import Act, Agent, Capability
    from threefold.host.door import Door
    from threefold.host.kernel import Kernel
    from threefold.model.chat import Tool
    from threefold.model.resolved import Resolved
    from threefold.services import Caller, Service, operation

__version__ = "0.1.0"

# What runs agents and publishes services needs more than the record: it is loaded by those who name it.
_LATER = {"Kernel": "host.kernel", "Door": "host.door", "Act": "host.agents", "Agent": "host.agents",
          "Capability": "host.agents", "Tool": "model.chat", "Resolved": "model.resolved", "Caller": "services",
          "Service": "services", "operation": "services"}  # fmt: skip

__all__ = [
    "Act",
    "Agent",
    "Caller",
    "Capability",
    "Commons",
    "Config",
    "Conflict",
    "Door",
    "Expired",
    "Forbidden",
    "Handle",
    "IntegrityError",
    "InvalidInput",
    "Kernel",
    "NotFound",
    "Purged",
    "Ranking",
    "Resolved",
    "Service",
    "Threefold",
    "ThreefoldError",
    "TooMany",
    "Tool",
    "Unavailable",
    "compare_stores",
    "copy_store",
    "open",
    "operation",
    "restore",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'threefold' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"threefold.{_LATER[name]}"), name)

"""Threefold: a context database for agents. `threefold.open()` is the door; the rest follows from its handle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from threefold.app import (
    Commons,
    Config,
    Handle,
    Threefold,
    compare_stores,
    copy_store,
    open,  # noqa: A004 - `threefold.open()` reads as it is meant
    restore,
)
from threefold.errors import (
    Conflict,
    Expired,
    Forbidden,
    IntegrityError,
    InvalidInput,
    NotFound,
    Purged,
    ThreefoldError,
    Unavailable,
)
from threefold.search.rank import Ranking

if TYPE_CHECKING:
    from threefold.host.agents import Act, Agent, Capability
    from threefold.host.kernel import Kernel
    from threefold.model.chat import Tool

__version__ = "0.1.0"

# What runs agents needs an event loop and more: it is loaded by those who name it.
_HOST = {"Kernel": "host.kernel", "Act": "host.agents", "Agent": "host.agents", "Capability": "host.agents",
         "Tool": "model.chat"}  # fmt: skip

__all__ = [
    "Act",
    "Agent",
    "Capability",
    "Commons",
    "Config",
    "Conflict",
    "Expired",
    "Forbidden",
    "Handle",
    "IntegrityError",
    "InvalidInput",
    "Kernel",
    "NotFound",
    "Purged",
    "Ranking",
    "Threefold",
    "ThreefoldError",
    "Tool",
    "Unavailable",
    "compare_stores",
    "copy_store",
    "open",
    "restore",
]


def __getattr__(name: str) -> Any:
    if name not in _HOST:
        raise AttributeError(f"module 'threefold' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"threefold.{_HOST[name]}"), name)

"""Threefold: a context database for agents. `threefold.open()` is the door; the rest follows from its handle."""

from threefold.app import Config, Handle, Threefold, open, restore  # noqa: A004 - `threefold.open()` reads as it is meant
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

__version__ = "0.1.0"

__all__ = [
    "Config",
    "Conflict",
    "Expired",
    "Forbidden",
    "Handle",
    "IntegrityError",
    "InvalidInput",
    "NotFound",
    "Purged",
    "Ranking",
    "Threefold",
    "ThreefoldError",
    "Unavailable",
    "open",
    "restore",
]

"""Threefold: a context database for agents. `threefold.open()` is the door; the rest follows from its handle."""

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

__version__ = "0.1.0"

__all__ = [
    "Commons",
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
    "compare_stores",
    "copy_store",
    "open",
    "restore",
]

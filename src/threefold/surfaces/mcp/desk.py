"""Where one caller's requests are worked on: every call in a thread of its own, errors told without what is ours."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import anyio
import anyio.to_thread
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from threefold.app import Handle
from threefold.errors import Forbidden, InvalidInput, NotFound, ThreefoldError
from threefold.services import Caller, Services
from threefold.surfaces.mcp.opening import Opening
from threefold.surfaces.mcp.telling import Told

T = TypeVar("T")
logger = logging.getLogger("threefold.mcp")
# Calls that run at once; more wait. What writes to the wire has threads of its own.
_CALLS: Final = 16
# What is told of an error is at most so long.
_TOLD: Final = 2_000


class At(NamedTuple):
    """The store at hand, as the caller may use it."""

    services: Services
    handle: Handle
    caller: Caller


class Desk:
    """Where one caller's requests are worked on."""

    def __init__(self, opening: Opening, caller: Caller, told: Told) -> None:
        self._opening, self._caller, self.told = opening, caller, told
        self._limiter = anyio.CapacityLimiter(_CALLS)

    async def do(self, work: Callable[[At], T]) -> T:
        """Run `work` in a thread. Who cancels is answered at once; the thread ends what it had begun.

        Raises:
            whatever `work` raises. ThreefoldError: the store cannot be opened.
        """
        return await anyio.to_thread.run_sync(
            partial(self._work, work), abandon_on_cancel=True, limiter=self._limiter
        )

    async def ask(self, work: Callable[[At], T]) -> T:
        """Run `work` for what has no other way to tell of errors than the protocol's.

        Raises:
            MCPError: it failed.
        """
        try:
            return await self.do(work)
        except MCPError:
            raise
        except ThreefoldError as error:
            theirs = isinstance(error, InvalidInput | NotFound | Forbidden)
            raise MCPError(INVALID_PARAMS if theirs else INTERNAL_ERROR, self.message(error)) from None
        except Exception as error:
            # Services are foreign code and may raise anything; the log has it, the client is told that it was so.
            raise MCPError(INTERNAL_ERROR, self.failed("the request", error)) from None

    def message(self, error: Exception) -> str:
        """An error's message, bounded and without places of this machine."""
        text = str(error).encode("utf-8", "replace").decode()
        for place, name in self._places():
            text = text.replace(place, name)
        return text if len(text) <= _TOLD else text[: _TOLD - 1] + "…"

    def failed(self, what: str, error: Exception) -> str:
        """Log what nobody foresaw, and what is told of it."""
        logger.error("%s failed", what, exc_info=error)
        return f"{what} failed: {type(error).__name__}; the log of the server has more"

    def _work(self, work: Callable[[At], T]) -> T:
        db, scope = self._opening.db(), self._caller.scope
        handle = db.user(scope.user, scope.tenant, scope.app, scope.agent)
        return work(At(db.services(self._caller), handle, self._caller))

    def _places(self) -> Iterator[tuple[str, str]]:
        db = self._opening.opened
        if db is not None and db.name != ":memory:":
            yield db.blobs_place, "the files of the store"
            yield str(Path(db.name).expanduser()), "the store"
            yield db.name, "the store"
        yield str(Path.home()), "~"

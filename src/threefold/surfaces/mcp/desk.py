"""Where requests are worked on as who calls: every call in a thread of its own, errors told without what is ours."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, TypeVar

import anyio
import anyio.to_thread
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from threefold.errors import Forbidden, InvalidInput, NotFound, ThreefoldError
from threefold.handle import Handle
from threefold.services import Caller, Services
from threefold.surfaces.mcp.opening import Opening
from threefold.surfaces.mcp.telling import Told
from threefold.surfaces.wording import told

T = TypeVar("T")
logger = logging.getLogger("threefold.mcp")
# Calls that run at once; more wait. What writes to the wire has threads of its own.
_CALLS: Final = 16


class At(NamedTuple):
    """The store at hand, as the caller may use it."""

    services: Services
    handle: Handle
    caller: Caller


class _Failed(ThreefoldError):
    """A service raised what it should not."""


class Desk:
    """Where requests are worked on as the one who calls."""

    def __init__(self, opening: Opening, caller: Callable[[], Caller], told: Told) -> None:
        self._opening, self._caller, self.told = opening, caller, told
        self._limiter = anyio.CapacityLimiter(_CALLS)

    async def do(self, work: Callable[[At], T]) -> T:
        """Run `work` in a thread. Who cancels is answered at once; the thread ends what it had begun.

        Raises:
            MCPError: `work` raised it. ThreefoldError: so did `work`, or something that became an error of ours.
        """
        return await anyio.to_thread.run_sync(partial(self._work, work), abandon_on_cancel=True, limiter=self._limiter)

    async def ask(self, work: Callable[[At], T]) -> T:
        """Run `work` for what has no other way to tell of errors than the protocol's.

        Raises:
            MCPError: it failed.
        """
        try:
            return await self.do(work)
        except ThreefoldError as error:
            theirs = isinstance(error, InvalidInput | NotFound | Forbidden)
            raise MCPError(INVALID_PARAMS if theirs else INTERNAL_ERROR, self.message(error)) from None

    def message(self, error: ThreefoldError) -> str:
        """An error's message, bounded and without places of this machine."""
        return told(error, self._opening.places)

    def _work(self, work: Callable[[At], T]) -> T:
        caller = self._caller()
        scope = caller.scope
        try:
            with self._opening.used() as db:
                handle = db.user(scope.user, scope.tenant, scope.app, scope.agent)
                return work(At(db.services(caller), handle, caller))
        except (ThreefoldError, MCPError):
            raise
        except Exception as error:
            # Services are foreign code and may raise anything; the log has it, the client is told that it was so.
            logger.exception("a request failed")
            raise _Failed(f"it failed: {type(error).__name__}; the log of the server has more") from error

"""Where requests are worked on: who comes in, as whom the work is done, and in which thread."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

from starlette.requests import Request

from threefold.app import Threefold
from threefold.errors import ThreefoldError
from threefold.handle import Handle
from threefold.services import Caller, Services
from threefold.surfaces.http.gate import UNKNOWN, Guest, by_place, by_token, check_site, token_of
from threefold.surfaces.http.limits import Rates
from threefold.surfaces.http.problems import Refused
from threefold.surfaces.http.settings import Settings
from threefold.surfaces.http.streams import Streams
from threefold.surfaces.http.work import Work
from threefold.surfaces.wording import places_of

T = TypeVar("T")
logger = logging.getLogger("threefold.http")
READING = frozenset({"GET", "HEAD", "OPTIONS"})


class Failed(ThreefoldError):
    """Something raised what it should not; the log has where."""


class Visit(NamedTuple):
    """The store at hand, as the one who came in may use it."""

    db: Threefold
    caller: Caller
    services: Services
    handle: Handle


class Desk:
    """Where requests are worked on."""

    def __init__(self, db: Threefold, settings: Settings) -> None:
        self.db, self.settings = db, settings
        self.work = Work(settings.threads)
        # Who moves files keeps nobody waiting who asks a question.
        self._slow = Work(settings.threads)
        self.rates = Rates(settings.rate)
        self.streams = Streams(settings.streams, settings.own_streams)

    @property
    def places(self) -> Mapping[str, str]:
        """Where the store is on this machine, and what to say instead."""
        return places_of(self.db.name, self.db.blobs_place)

    async def admit(self, request: Request) -> Guest:
        """Who comes with a request.

        Raises:
            Refused: 401, 403, 421: nobody who may. 429: too often. 503, 504: the store does not answer.
        """
        check_site(request.headers, self.settings)
        secret = token_of(request.headers)
        if secret is None:
            guest = by_place(request.headers, self.settings, _asked_for(request), _client(request))
        else:
            guest = await self._by_token(secret)
        self.rates.take(guest.name, guest.rate)
        return guest

    async def holds(self, request: Request) -> bool:
        """Whether who came with a request might still come; where the store does not answer, it is taken to be so."""
        secret = token_of(request.headers)
        try:
            if secret is not None:
                await self._by_token(secret)
        except Refused as refused:
            return refused.status != UNKNOWN
        except ThreefoldError:
            return True
        return True

    async def _by_token(self, secret: str) -> Guest:
        return await self.work.do(partial(by_token, secret, self.db.tokens), self.settings.seconds)

    async def do(self, guest: Guest, work: Callable[[Visit], T], slow: bool = False) -> T:
        """What `work` gives, done as the guest in a thread; `slow` is what moves files.

        Raises:
            Refused: 503, 504: it took too long. ThreefoldError, Refused: as `work` does.
                Failed: it raised anything else.
        """
        done = partial(self._do, guest.caller, work)
        if slow:
            return await self._slow.do(done, self.settings.long_seconds)
        return await self.work.do(done, self.settings.seconds)

    def end(self, patience: float) -> None:
        """Take no more work, and wait so many seconds for what began."""
        for each in (self.work, self._slow):
            if not each.end(patience):
                logger.warning("some work did not end within %g seconds; what was acknowledged is kept", patience)

    def _do(self, caller: Caller, work: Callable[[Visit], T]) -> T:
        scope = caller.scope
        try:
            handle = self.db.user(scope.user, scope.tenant, scope.app, scope.agent)
            return work(Visit(self.db, caller, self.db.services(caller), handle))
        except (ThreefoldError, Refused):
            raise
        except Exception as error:
            # Services are foreign code and may raise anything; the log has where it was, and not what it said.
            log_failure(error)
            raise Failed(type(error).__name__) from error


def log_failure(error: BaseException) -> None:
    """Note where something failed: its kind and the lines of code, not its words, which may be somebody's."""
    logger.error("%s at\n%s", type(error).__name__, "".join(traceback.format_tb(error.__traceback__)).rstrip())


def is_json(request: Request) -> bool:
    """Whether the body is said to be JSON."""
    return media_of(request) == "application/json"


def _client(request: Request) -> str | None:
    """The address that a request came from, where it came from one."""
    return None if request.client is None else request.client.host


def _asked_for(request: Request) -> bool:
    """Whether no page of another site can send this request without asking first whether it may."""
    plain = request.method not in READING and "content-type" not in request.headers and request.method != "POST"
    return request.method in READING or is_json(request) or plain


def media_of(request: Request) -> str:
    """The media type of the body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def desk_of(request: Request) -> Desk:
    """The desk of the application that a request came to."""
    found: Desk = request.app.state.desk
    return found

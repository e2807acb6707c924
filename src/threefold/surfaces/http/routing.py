"""Routes whose names may hold any character, such as a reference or the source of a document."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final
from urllib.parse import quote, unquote

from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from threefold.surfaces.http.problems import Refused

_PLAIN: Final = "-._~!$&'()*+,;=:@"


class Exact(Route):
    """A route that is matched as it was sent: an escaped slash is a part of a name and separates nothing.

    Nothing else is looked for where its methods are others: the address is this one's.
    """

    def __init__(
        self, path: str, endpoint: Callable[..., Awaitable[Response | None]], methods: Sequence[str] = ("GET",)
    ) -> None:
        super().__init__(path, endpoint, methods=methods)
        self._allowed, self.methods = frozenset(self.methods or ()), None

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """See `Route.matches`; names are given without their escapes."""
        if scope["type"] != "http":
            return Match.NONE, {}
        match, child = super().matches({**scope, "path": _as_sent(scope)})
        if match is not Match.NONE:
            child["path_params"] = {name: unquote(value) for name, value in child["path_params"].items()}
        return match, child

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See `Route.handle`."""
        check_method(scope["method"], self._allowed)
        await super().handle(scope, receive, send)


def check_method(method: str, allowed: Collection[str]) -> None:
    """Refuse a method that an address does not have.

    Raises:
        Refused: 405.
    """
    if method not in allowed:
        said = ", ".join(sorted(allowed))
        raise Refused(405, f"{method[:20]} is not for this address; {said} are", {"Allow": said})


def _as_sent(scope: Scope) -> str:
    """The path with the slashes that were sent, and everything else escaped in one way."""
    raw = scope.get("raw_path")
    sent = quote(scope["path"], _PLAIN + "/") if raw is None else raw.decode("latin-1").partition("?")[0]
    return "/".join(quote(unquote(part), _PLAIN) for part in sent.split("/"))

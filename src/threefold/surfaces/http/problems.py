"""Errors as they are answered: problem+json (RFC 9457), one table from error to status. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec
from starlette.responses import Response

from threefold.errors import (
    Conflict,
    Expired,
    Forbidden,
    InvalidInput,
    NotFound,
    Purged,
    ThreefoldError,
    TooMany,
    Unavailable,
)
from threefold.surfaces.wording import told

MEDIA: Final = "application/problem+json"
RETRY: Final = {"Retry-After": "1"}
LATER: Final = {"Retry-After": "10"}


class Kind(NamedTuple):
    """A kind of problem: its status, its name, its title, and headers that go with it."""

    status: int
    name: str
    title: str
    headers: Mapping[str, str] = {}


# The first that an error is an instance of counts.
STATUSES: Final[Mapping[type[ThreefoldError], Kind]] = {
    Expired: Kind(410, "expired", "Its time to live is over"),
    Purged: Kind(410, "purged", "It was removed"),
    NotFound: Kind(404, "not-found", "Not found"),
    Forbidden: Kind(403, "forbidden", "Forbidden"),
    TooMany: Kind(429, "too-many", "Too many at once", LATER),
    Conflict: Kind(409, "conflict", "Conflict"),
    InvalidInput: Kind(422, "invalid-input", "Invalid input"),
    Unavailable: Kind(503, "unavailable", "Unavailable", RETRY),
}
FAILED: Final = Kind(500, "failed", "It failed")
_OTHERS: Final = {
    kind.status: kind
    for kind in (
        Kind(400, "malformed", "Malformed request"),
        Kind(401, "unauthorized", "A token is needed"),
        Kind(403, "forbidden", "Forbidden"),
        Kind(404, "not-found", "Not found"),
        Kind(405, "method-not-allowed", "Method not allowed"),
        Kind(408, "too-slow", "The request came too slowly"),
        Kind(411, "length-required", "Length required"),
        Kind(413, "too-large", "Too large"),
        Kind(415, "media-type", "Unsupported media type"),
        Kind(416, "range", "Range not satisfiable"),
        Kind(421, "misdirected", "Misdirected request"),
        Kind(429, "too-many", "Too many requests"),
        Kind(503, "unavailable", "Unavailable", RETRY),
        Kind(504, "timeout", "It took too long"),
    )
}


class Refused(Exception):
    """A request is refused by the surface itself, with a status of HTTP and the mend."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})


def kind_of(error: ThreefoldError) -> Kind:
    """What kind of problem an error is."""
    return next((kind for type_, kind in STATUSES.items() if isinstance(error, type_)), FAILED)


def problem(kind: Kind, detail: str, request: str, headers: Mapping[str, str] | None = None) -> Response:
    """The answer that tells of a problem; `request` is the id under which the log has it."""
    body: dict[str, Any] = {
        "type": f"urn:threefold:problem:{kind.name}",
        "title": kind.title,
        "status": kind.status,
        "detail": detail,
        "instance": f"urn:threefold:request:{request}",
    }
    given = {**kind.headers, **(headers or {})}
    return Response(msgspec.json.encode(body), kind.status, given, media_type=MEDIA)


def of_error(error: ThreefoldError, request: str, places: Mapping[str, str]) -> Response:
    """The answer that tells of one of our errors."""
    kind = kind_of(error)
    # What an engine or an agent raised is foreign, and so are its words.
    said = f"{type(error).__name__}; the log of the server has more" if kind is FAILED else told(error, places)
    return problem(kind, said, request)


def of_refusal(refused: Refused, request: str) -> Response:
    """The answer that tells why a request is refused."""
    return problem(of_status(refused.status), refused.detail, request, refused.headers)


def of_status(status: int) -> Kind:
    """The kind of problem that a status stands for."""
    return _OTHERS.get(status) or Kind(status, "failed", "It failed")

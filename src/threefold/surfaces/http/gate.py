"""Who may come in: by a token, or, on this machine alone, as its one user. The rules are pure; tokens are looked up."""

from __future__ import annotations

import ipaddress
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from threefold.realms.access.tokens import Tokens
from threefold.services import Caller
from threefold.surfaces.http.problems import Refused
from threefold.surfaces.http.settings import Settings

MARK: Final = "x-threefold-request"
"""A header that no page of another site can send; what is no JSON and changes something must have it, or a token."""
UNKNOWN: Final = 401
LOCAL: Final = "local"
"""By what the one user of this machine comes in."""
_PROXIED: Final = ("forwarded", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip", "via")
_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="threefold"'}
_WRONG: Final = {"WWW-Authenticate": 'Bearer realm="threefold", error="invalid_token"'}


class Guest(NamedTuple):
    """Who came in: as whom requests are done, by what (a token's id, or `local`), and how often they may in a minute,
    where that is their own.
    """

    caller: Caller
    name: str
    rate: int | None = None


def is_loopback(host: str) -> bool:
    """Whether a name or address is this machine's own, wherever it is asked from."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def check_site(headers: Headers, settings: Settings) -> None:
    """Refuse names that the server does not go by, and pages of other sites.

    Raises:
        Refused: 421, 403.
    """
    host = host_of(headers.get("host", ""))
    if settings.hosts and "*" not in settings.hosts and not is_loopback(host) and host not in settings.hosts:
        raise Refused(421, f"this server does not go by the name {host[:100]!r}; --allowed-host names what it goes by")
    origin = headers.get("origin")
    if origin is not None and not _same_origin(origin, headers.get("host", ""), settings):
        raise Refused(403, "a page of another site asks; pages of this server may, and programs that send no Origin")


def token_of(headers: Headers) -> str | None:
    """The token that a request brings, or None where it brings none.

    Raises:
        Refused: 401: it brings another kind of credentials.
    """
    given = headers.get("authorization")
    if given is None:
        return None
    scheme, _, secret = given.partition(" ")
    if scheme.lower() != "bearer":
        raise Refused(UNKNOWN, "send 'Authorization: Bearer tf_…'; `threefold tokens create` makes a token", _CHALLENGE)
    return secret.strip()


def by_token(secret: str, tokens: Tokens) -> Guest:
    """Who comes with a token.

    Raises:
        Refused: 401: it does not hold (any more).
    """
    found = tokens.find(secret)
    if found is None:
        raise Refused(UNKNOWN, "the token does not hold (any more); `threefold tokens create` makes another", _WRONG)
    return Guest(Caller(found.scope, found.grants), found.id, found.rate)


def by_place(headers: Headers, settings: Settings, json: bool, client: str | None = None) -> Guest:
    """Who comes without a token: the one user of this machine, from this machine, by no page of another site.

    `json` says that the request reads, or that its body is JSON, which a page of another site cannot send unasked;
    `client` is the address that it came from, where there is one.

    Raises:
        Refused: 401 where a token is needed. 403 where a page of another site might be asking.
    """
    needed = "a token is needed: send 'Authorization: Bearer tf_…'; `threefold tokens create` makes one"
    if settings.local is None:
        raise Refused(UNKNOWN, needed, _CHALLENGE)
    if not is_loopback(host_of(headers.get("host", ""))) or (client is not None and not is_loopback(client)):
        raise Refused(UNKNOWN, f"{needed}; without one this machine alone may ask, as localhost", _CHALLENGE)
    if any(name in _PROXIED or name.startswith("x-forwarded-") for name in headers):
        raise Refused(UNKNOWN, f"{needed}; without one nothing may come through a proxy", _CHALLENGE)
    site = headers.get("sec-fetch-site", "none")
    if site not in ("none", "same-origin"):
        raise Refused(403, "a page of another site asks; pages of this server may")
    if not json and site != "same-origin" and MARK not in headers:
        raise Refused(403, f"send 'Content-Type: application/json', or with what is no JSON the header '{MARK}: 1'")
    return Guest(Caller(settings.local), LOCAL)


def host_of(netloc: str) -> str:
    """The name or address in `name:port`, in lower case, without brackets."""
    try:
        return (urlsplit(f"//{netloc}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _same_origin(origin: str, host: str, settings: Settings) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return False
    return parts.netloc.lower() == host.lower() or host_of(parts.netloc) in settings.hosts

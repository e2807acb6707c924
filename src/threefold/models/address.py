"""Addresses and keys of chat models, checked before anything is asked. Pure."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from threefold.errors import InvalidInput

_KEY: Final = re.compile(r"[\x21-\x7e]+")


def base_of(url: str, *ends: str) -> str:
    """The address below which a server's paths are: `/v1` where it names none, without one of `ends`.

    Raises:
        InvalidInput: it is malformed, or holds a password, which would stand in logs.
    """
    try:
        parsed = urlsplit(url)
        host, _ = parsed.hostname or "", parsed.port
        host.encode("idna")
    except ValueError as error:
        raise InvalidInput(f"chat address is malformed ({error}); give http(s)://host:port/v1") from None
    if parsed.scheme not in {"http", "https"} or not host:
        raise InvalidInput("chat address must be http(s)://host:port/v1")
    if "@" in parsed.netloc:
        raise InvalidInput("chat address must not hold a name or a password; give chat_key")
    if parsed.query or parsed.fragment:
        raise InvalidInput("chat address must end with its path; a key goes into chat_key")
    if re.search(r"[\x00-\x20\x7f-\uffff]", parsed.path):
        raise InvalidInput("chat address holds characters that must be escaped as %XX")
    path = parsed.path.rstrip("/")
    for end in ends:
        path = path.removesuffix(end)
    return urlunsplit((parsed.scheme, parsed.netloc, path or "/v1", "", ""))


def checked_key(key: str | None) -> str | None:
    """The key, which goes into a header.

    Raises:
        InvalidInput: it cannot.
    """
    if key is not None and not _KEY.fullmatch(key):
        raise InvalidInput("chat_key must be printable ASCII without spaces or line ends, or None")
    return key


def checked_model(model: str | None) -> str:
    """The name of a model.

    Raises:
        InvalidInput: there is none.
    """
    if not isinstance(model, str) or not model.strip():
        raise InvalidInput("chat_model must name a model of the server, such as 'qwen3:8b' or 'claude-sonnet-4-5'")
    return model

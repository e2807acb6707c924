"""Pieces of answers, which servers write in more than one way. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from threefold.model.chat import Call, Finish
from threefold.models.failures import Failed


def json_of(data: str | bytes, what: str) -> Any:
    """The value of a JSON text.

    Raises:
        Failed: it is none; `what` it is stands in the message.
    """
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise Failed(f"sent {what} that is not JSON: check that the address ends in /v1", again=False) from None


def text_of(content: Any) -> str:
    """Text, or the text in a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(text_of(part.get("text")) for part in content if isinstance(part, dict))
    return ""


def dict_of(value: Any) -> Mapping[str, Any]:
    """An object, empty where it is none: servers leave out, or give null."""
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """A list, empty where it is none."""
    return value if isinstance(value, list) else []


def name_of(value: Any) -> str | None:
    """A name, None where it is none, or empty."""
    return value or None if isinstance(value, str) else None


def number(value: Any) -> int:
    """A count, 0 where it is none."""
    return value if isinstance(value, int) and value > 0 else 0


def ended(finish: Finish, calls: Sequence[Call]) -> Finish:
    """Why it stopped, where a server's word on tools does not go with what it calls."""
    if finish in {"stop", "tools"}:
        return "tools" if calls else "stop"
    return finish


def arguments_of(name: str, said: str, finish: Finish) -> Mapping[str, Any]:
    """The arguments of a call, which are a JSON object, or nothing at all.

    Raises:
        Failed: they are something else, as where the limit of tokens cut them.
    """
    if not said.strip():
        return {}
    try:
        found = json.loads(said, strict=False)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, str):  # some servers encode them twice
        return arguments_of(name, found, finish)
    if not isinstance(found, dict):
        cut = ", cut at the limit of tokens: give more max_tokens" if finish == "length" else ""
        raise Failed(f"calls the tool {name[:80]!r} with arguments that are no JSON object{cut}", again=False)
    return found

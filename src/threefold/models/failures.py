"""What can go wrong with a server of models, before it is told: in passing, or for good. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from threefold.model.times import retry_after

# Those that both OpenAI's and Anthropic's own clients ask again, and those of proxies in front of a server.
AGAIN: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
# What the two wires call an error, as the status it would have had before the stream began.
_STATUS_OF: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
# A 429 that no waiting mends.
_SPENT: Final = "insufficient_quota"
# Some servers fall over parts of a request that they do not know, with status 500; no waiting mends that either.
_NOT_KNOWN: Final = re.compile(r"response_format|stream_options|max_completion_tokens|validation error")
_LONGEST_WORD: Final = 300


@dataclass(slots=True)
class Failed(Exception):
    """A try that failed: why, whether another may help, and after how many seconds the server wants it."""

    why: str
    again: bool = True
    after: float | None = None


@dataclass(slots=True)
class Rejected(Exception):
    """The server understood and will not: the key, the model's name, or the content. `said` is its word on it."""

    status: int
    said: str


def failure(status: int, said: str, after: str | None = None) -> Failed | Rejected:
    """What an answer of this status means; `after` is its header `Retry-After`."""
    if status in AGAIN and _NOT_KNOWN.search(said):
        return Rejected(status, said)
    if status in AGAIN or status >= 500:
        return Failed(f"answered {status}{_told(said)}", status in AGAIN and _SPENT not in said, retry_after(after))
    if status < 300:
        return Failed(f"answered {status}, without an answer{_told(said)}", again=False)
    return Rejected(status, said)


def failure_inside(error: Any) -> Failed | Rejected:
    """What an error means that stands in an answer of status 200, or in the middle of a stream."""
    status, said = 500, message_of(error)
    if isinstance(error, dict):
        named = [error.get(name) for name in ("code", "status", "type")]
        numbers = [each for each in named if isinstance(each, int) and 300 <= each < 600]
        known = [_STATUS_OF[each] for each in named if isinstance(each, str) and each in _STATUS_OF]
        status = (numbers or known or [500])[0]
        said = next((f"{each}: {said}" for each in named if isinstance(each, str) and each not in said), said)
    return failure(status, said)


def message_of(answer: Any) -> str:
    """What a server says about an error, on a line."""
    for name in ("error", "message", "detail"):
        if isinstance(answer, dict) and answer.get(name):
            answer = answer[name]
    if isinstance(answer, dict | list):
        answer = json.dumps(answer, ensure_ascii=False)
    return " ".join(str(answer or "").split())


def shortened(said: str) -> str:
    """A server's word, cut to what a message can hold. Secrets must be out of it by then: a cut would hide them."""
    return said if len(said) <= _LONGEST_WORD else said[:_LONGEST_WORD] + "…"


def _told(said: str) -> str:
    return f" ({said})" if said else ""

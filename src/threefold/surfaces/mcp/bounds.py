"""Results as they go over the wire: plain values and the same as one JSON text, of bounded size. Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from threefold.errors import InvalidInput, ThreefoldError
from threefold.model.ref import parse_ref
from threefold.model.resolved import cut

# Characters of JSON that a result has at most.
MOST: Final = 60_000
# What is said of the cut takes less.
_ROOM: Final = MOST - 400
# Texts are not cut shorter than this; then lists are.
_SHORTEST: Final = 250
# A page's end is no text.
_WHOLE: Final = frozenset({"next", "cursor"})
_REST = "texts are cut at {size} characters{lists}: get what is missing by its reference, or ask for less, or in parts"


def sized(value: Any, most: int = MOST) -> tuple[Any, str]:
    """A result and its JSON text; where that is longer than `most`, cut at its longest texts, and told so.

    Raises:
        InvalidInput: it is too long even so.
    """
    plain, text = _plain(value)
    if len(text) <= most:
        return plain, text
    size, entries = _fitting(plain, most - (MOST - _ROOM))
    lists = "" if entries is None else f", lists after {entries} entries"
    return _plain({**_cut(plain, size, entries), "cut": True, "rest": _REST.format(size=size, lists=lists)})


def _plain(value: Any) -> tuple[Any, str]:
    """Values as JSON has them: what a service gave beside, such as times, becomes text."""
    encoded = msgspec.json.encode(value)
    return msgspec.json.decode(encoded), encoded.decode()


def _fitting(value: Any, most: int) -> tuple[int, int | None]:
    """How long texts may be, and if that is not enough how many entries lists may have."""
    if _length(_cut(value, _SHORTEST, None)) <= most:
        low, high = _SHORTEST, most
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if _length(_cut(value, middle, None)) <= most else (low, middle - 1)
        return low, None
    entries = most
    while entries := entries // 2:
        if _length(_cut(value, _SHORTEST, entries)) <= most:
            return _SHORTEST, entries
    raise InvalidInput("the answer is too long to be given: ask for less, such as with a smaller limit")


def _length(value: Any) -> int:
    return len(msgspec.json.encode(value).decode())


def _cut(value: Any, size: int, entries: int | None) -> Any:
    if isinstance(value, str):
        return value if len(value) <= size or _is_ref(value) else cut(value, size)
    if isinstance(value, dict):
        return {key: each if key in _WHOLE else _cut(each, size, entries) for key, each in value.items()}
    if isinstance(value, list):
        return [_cut(each, size, entries) for each in value[:entries]]
    return value


def _is_ref(text: str) -> bool:
    """A reference that is cut would name something else, or nothing."""
    if ":" not in text[:65]:
        return False
    try:
        parse_ref(text)
    except ThreefoldError:
        return False
    return True

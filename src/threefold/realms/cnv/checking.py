"""What may be asked of a board. Every refusal names the argument and the mend. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from hashlib import blake2b
from typing import Any, Final

from threefold.errors import InvalidInput
from threefold.model.board import Card
from threefold.model.clean import storable
from threefold.model.ref import ConvRef, parse_ref
from threefold.model.scope import check_id

MAX_CARDS: Final = 500
MAX_COMMENTS: Final = 100
MAX_ATTACHED: Final = 100
MAX_ORDERS: Final = 500
MAX_TEXT: Final = 4_000
MAX_TITLE: Final = 200
MAX_LIMIT: Final = 1_000
# Coordinates and sizes are from -FARTHEST to FARTHEST.
FARTHEST: Final = 1e6


def reference(value: object, name: str, conversation: str | None = None) -> str:
    """The long form of a reference; `conversation` completes a short one."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be a reference as text, not {type(value).__name__}")
    parsed = parse_ref(storable(value), conversation)
    if isinstance(parsed, ConvRef) and parsed.conversation is None:
        raise InvalidInput(f"{name} {value!r} is a short reference; give the conversation too, or the long form")
    return str(parsed)


def card_of(ref: str) -> str:
    """The id of the card that stands for what a reference (long form) names."""
    return blake2b(ref.encode(), digest_size=8).hexdigest()


def card_id(value: object) -> str:
    """The id of a card, given as a card, as that id, or as the reference that it stands for."""
    if isinstance(value, Card):
        return value.id
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"card {value!r} must be a card, its id, or the reference that it stands for")
    return card_of(reference(value, "card")) if ":" in value else value


def coordinate(value: object, name: str) -> float:
    """A number on the board."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= FARTHEST:
        raise InvalidInput(f"{name} {value!r} must be a finite number from -{FARTHEST:,.0f} to {FARTHEST:,.0f}")
    return float(value) + 0.0  # there is one zero


def extent(value: object, name: str) -> float:
    """A width or height."""
    found = coordinate(value, name)
    if not found > 0:
        raise InvalidInput(f"{name} {value!r} must be greater than 0")
    return found


def text(value: object, name: str, least: int = 0, most: int = MAX_TEXT) -> str:
    """A text that is kept with a board."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be text, not {type(value).__name__}")
    found = storable(value).strip()
    if len(found) < least:
        raise InvalidInput(f"{name} is empty; say something")
    if len(found) > most:
        raise InvalidInput(f"{name} has {len(found):,} characters, at most {most:,} are kept; make it shorter")
    return found


def title(value: object) -> str:
    """A title: one line."""
    if not isinstance(value, str):
        raise InvalidInput(f"title must be text, not {type(value).__name__}")
    return text(" ".join(value.split()), "title", 1, MAX_TITLE)


def named_boards(value: object) -> tuple[str, ...] | None:
    """Names of boards, each once; None for all."""
    if value is None:
        return None
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, Collection) or not names:
        raise InvalidInput("boards must be a list with at least one name, or None for all")
    return tuple(dict.fromkeys(check_id(name, "boards") for name in names))


def limit(value: object) -> int:
    """How many are asked for."""
    return _whole(value, "limit", 1, MAX_LIMIT)


def size(value: object) -> int:
    """How many characters are to be shown."""
    return _whole(value, "size", 1, 1_000_000)


def budget(value: object) -> int | None:
    """How many tokens a text may have; None for any."""
    return None if value is None else _whole(value, "budget", 1, 10_000_000)


def revision(value: object) -> int | None:
    """A revision; None for the one that is there."""
    return None if value is None else _whole(value, "revision", 0, 10**18)


def _whole(value: object, name: str, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidInput(f"{name} {value!r} must be a whole number from {least} to {most}")
    return value


ARGUMENTS: Final[Mapping[str, Callable[[object], Any]]] = {
    "card": card_id,
    "ref": lambda value: value,  # known with the conversation
    "source": lambda value: value,
    "conversation": lambda value: check_id(value, "conversation"),
    "x": lambda value: coordinate(value, "x"),
    "y": lambda value: coordinate(value, "y"),
    "w": lambda value: extent(value, "w"),
    "h": lambda value: extent(value, "h"),
    "note": lambda value: text(value, "note"),
    "text": lambda value: text(value, "text", 1),
    "why": lambda value: text(value, "why"),
    "title": title,
}
"""What is asked of each argument of an act."""
TEXTS: Final = ("note", "text", "why", "title")
"""Which of them are texts, and redacted."""

"""What may stand in a memory. Every refusal names the argument and the mend. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeVar, cast

from threefold.errors import InvalidInput
from threefold.model.clean import storable
from threefold.model.codec import plain_json
from threefold.model.memory import LAYERS, STATUSES, VISIBILITIES, Layer, Status, Visibility
from threefold.model.scope import check_id

T = TypeVar("T", bound=str)
# A memory is a compact note; what is longer is a document, and belongs to `doc`.
MAX_MEMORY, MAX_CONTEXT, MAX_TAGS = 4_000, 20_000, 50


def note_text(value: object) -> str:
    """The note of a memory."""
    return _text(value, "memory", 1, MAX_MEMORY)


def context_text(value: object) -> str:
    """Why it is there; may be empty."""
    return _text(value, "context", 0, MAX_CONTEXT)


def _text(value: object, name: str, least: int, most: int) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be text, not {type(value).__name__}")
    text = storable(value).strip()
    if len(text) < least:
        raise InvalidInput(f"{name} is empty; say what is to be remembered")
    if len(text) > most:
        raise InvalidInput(f"{name} has {len(text):,} characters, at most {most:,} are kept; make it shorter")
    return text


def kind_name(value: object) -> str:
    """A kind: any short name."""
    return check_id(value, "kind").strip()


def tag_names(values: object) -> tuple[str, ...]:
    """Tags, each once, in their order."""
    if isinstance(values, str) or not isinstance(values, Collection):
        raise InvalidInput("tags must be a list of texts")
    tags = tuple(dict.fromkeys(check_id(value, "tags").strip() for value in values))
    if len(tags) > MAX_TAGS:
        raise InvalidInput(f"tags has {len(tags)} entries, at most {MAX_TAGS} are kept")
    return tags


def share(value: object, name: str) -> float:
    """A number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise InvalidInput(f"{name} {value!r} must be a number from 0 to 1")
    return float(value)


def layer_name(value: object) -> Layer:
    """One of the five layers."""
    return cast(Layer, _one_of(value, "layer", LAYERS))


def layer_names(values: object) -> tuple[Layer, ...]:
    """Some of the layers; None for all."""
    return LAYERS if values is None else tuple(layer_name(value) for value in _several(values, "layers"))


def status_names(values: object, usual: Collection[Status]) -> tuple[Status, ...]:
    """Some states; None for the usual ones."""
    if values is None:
        return tuple(status for status in STATUSES if status in usual)
    return tuple(cast(Status, _one_of(value, "statuses", STATUSES)) for value in _several(values, "statuses"))


def visibility_name(value: object) -> Visibility:
    """Who may see it."""
    return cast(Visibility, _one_of(value, "visibility", VISIBILITIES))


def _one_of(value: object, name: str, known: Collection[T]) -> object:
    if value not in known:
        raise InvalidInput(f"{name} {value!r} must be one of {', '.join(known)}")
    return value


def _several(values: object, name: str) -> Collection[object]:
    chosen = (values,) if isinstance(values, str) else values
    if not isinstance(chosen, Collection) or not chosen:
        raise InvalidInput(f"{name} must be a list with at least one entry, or None for the usual ones")
    return chosen


def owner_name(value: object) -> str | None:
    """Whom or what a memory is about; None for the user."""
    return None if value is None else check_id(value, "owner")


def metadata_of(value: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Whatever the caller keeps with a memory: a plain JSON object. It never says whose it is."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInput(f"metadata must be an object, not {type(value).__name__}")
    found: Mapping[str, Any] = plain_json(dict(value), "metadata")
    return found

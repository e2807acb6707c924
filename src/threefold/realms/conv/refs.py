"""From the path of a block, row or file to its reference, and back to what it names."""

from __future__ import annotations

from threefold.model.ref import ConvRef

LOG_PATH = "turn.log"
_FAMILY_BY_PREFIX = (
    ("files/", "fi"),
    ("user.attachments/", "fi"),
    ("events/", "ev"),
    ("step_", "tc"),
    ("sources_pool", "so"),
    ("conv.working.summary", "ws"),
    ("conv.range.summary", "su"),
)
_PREFIXES = tuple(prefix for prefix, _ in _FAMILY_BY_PREFIX)


def path_family(path: str) -> str:
    """The family that what stands at `path` belongs to."""
    if not path.startswith(_PREFIXES):
        return "ar"
    return next(family for prefix, family in _FAMILY_BY_PREFIX if path.startswith(prefix))


def ref_for(conversation: str, turn: str, path: str) -> str:
    """The canonical reference of what stands at `path` in a turn."""
    return str(ConvRef(path_family(path), turn, path, conversation))


def turn_of(ref: str) -> str:
    """The reference of the turn that something in the record stands in."""
    # Ids in a reference have no full stop.
    return ".".join((*ref.split(".")[:2], LOG_PATH))


def turn_ref(conversation: str, turn: str) -> str:
    """The reference of a whole turn: its TurnLog."""
    return ref_for(conversation, turn, LOG_PATH)

"""Memories of other systems from JSON: mem0's, ChatGPT's saved ones, and lists that look alike.

mem0 gives a list, or an object with `results`, of entries with `memory`, `metadata`, `categories`, `created_at`,
`updated_at`; ChatGPT's export has `memory.json`, a list of entries with `content`, `enabled` and times.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from threefold.errors import InvalidInput, NotFound, ThreefoldError, Unavailable
from threefold.model.times import parse_moment
from threefold.realms.mem import checking

_LISTS: Final = ("results", "memories", "data")
_TEXTS: Final = ("memory", "content", "text")
_MADE: Final = ("created_at", "created", "create_time", "timestamp")
_TOUCHED: Final = ("updated_at", "updated", "update_time")
_TAGS: Final = ("categories", "tags", "labels")


class Found(NamedTuple):
    """A memory of another system. `name` is what that system calls it, `held` whether it was in use there."""

    memory: str
    tags: tuple[str, ...]
    made: datetime | None
    touched: datetime | None
    name: str
    held: bool
    metadata: Mapping[str, Any]


class Skipped(NamedTuple):
    """What was not taken: its place in the file, and why."""

    where: str
    why: str


@dataclass(frozen=True, slots=True)
class ImportedMemories:
    """How many memories are new, how many were there already, and what was skipped."""

    imported: int
    unchanged: int
    skipped: tuple[Skipped, ...] = ()


def read(path: Path) -> Iterator[Found | Skipped]:
    """The memories in a file, in its order.

    Raises:
        NotFound, Unavailable: the file is not there or cannot be read. InvalidInput: it holds no list of memories.
    """
    try:
        value = json.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        raise NotFound(f"path {path}: no such file") from None
    except OSError as error:
        raise Unavailable(f"path {path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise InvalidInput(f"path {path} is no JSON: {error}") from None
    entries = value
    if isinstance(value, Mapping):
        entries = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), None)
    if not isinstance(entries, list):
        raise InvalidInput(f"path {path} has no list of memories; it is a list, or an object with {', '.join(_LISTS)}")
    for number, entry in enumerate(entries, 1):
        where = f"{path.name}, entry {number}"
        try:
            yield _found(entry, f"{path.name}#{number}")
        except ThreefoldError as error:
            yield Skipped(where, str(error))


def _found(entry: object, usual: str) -> Found:
    if isinstance(entry, str):
        entry = {"memory": entry}
    if not isinstance(entry, Mapping):
        raise InvalidInput("it is no object and no text")
    text = next((entry[name] for name in _TEXTS if entry.get(name)), None)
    if text is None:
        raise InvalidInput(f"it has none of {', '.join(_TEXTS)}")
    tags = next((entry[name] for name in _TAGS if entry.get(name)), ())
    metadata = entry.get("metadata")
    return Found(
        checking.note_text(text),
        checking.tag_names(tags),
        _moment(entry, _MADE),
        _moment(entry, _TOUCHED),
        str(entry.get("id") or usual),
        entry.get("enabled") is not False,
        checking.metadata_of(metadata if isinstance(metadata, Mapping) else None),
    )


def _moment(entry: Mapping[str, Any], names: tuple[str, ...]) -> datetime | None:
    value = next((entry[name] for name in names if entry.get(name)), None)
    return None if value is None else parse_moment(value, names[0])

"""What others are told of an error: our own words, bounded, without places of this machine. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

# What is told of an error is at most so long.
_MOST: Final = 2_000


def told(error: Exception, places: Mapping[str, str]) -> str:
    """An error's message; `places` are what is said instead of where something is on this machine."""
    text = str(error).encode("utf-8", "replace").decode()
    for place, name in {**places, str(Path.home()): "~"}.items():
        text = text.replace(place, name)
    return text if len(text) <= _MOST else text[: _MOST - 1] + "…"


def places_of(store: str, blobs: str | None) -> Mapping[str, str]:
    """Where a store is on this machine, and what to say instead."""
    if store == ":memory:":
        return {}
    held = {} if blobs is None else {blobs: "the files of the store"}
    return {**held, str(Path(store).expanduser()): "the store", store: "the store"}

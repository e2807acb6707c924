"""What a peer is to the driver: rows go in, ids of rows come out. Needs nothing but the standard library."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The user whose searches are timed.
ME = "user"
# Texts to vectors, float32 [texts, dimensions], each of length 1 or all zeros.
Embed = Callable[[Sequence[str]], Any]


@dataclass(frozen=True, slots=True)
class Row:
    """A message; `at` is ISO text. A turn is a message and the answer to it, or one of both."""

    user: str
    conversation: str
    turn: str
    role: str
    at: str
    text: str
    author: str | None = None

    @property
    def id(self) -> str:
        """The name that a search gives back."""
        return row_id(self.user, self.conversation, self.turn, self.role)

    @property
    def said(self) -> str:
        """The text for stores that have no place for an author: with the name in front, as mem0 and others do it."""
        return f"{self.author}: {self.text}" if self.author else self.text


def row_id(user: str, conversation: str, turn: str, role: str) -> str:
    """The id of a row. No part holds a bar."""
    return "|".join((user, conversation, turn, role))


class Peer:
    """A store of memories on this machine.

    `batch` is how many rows it is given at once where many are added, `durable` what an acknowledged row survives,
    `hurries` whether adding thousands takes so long that it has a `hurry`.
    """

    batch = 1000
    hurries = False
    durable = ""

    def __init__(self, embed: Embed, dimensions: int) -> None:
        self.embed, self.dimensions = embed, dimensions

    def open(self, folder: Path) -> None:
        """Open the store in `folder`, which may hold one already. Imports what it needs."""
        raise NotImplementedError

    def add(self, rows: Sequence[Row]) -> None:
        """Keep rows of one user: a turn, or `batch` of them."""
        raise NotImplementedError

    def hurry(self) -> None:
        """Add what is still to come without waiting for the disk, and unmeasured."""

    def calm(self) -> None:
        """Add with its own settings again."""

    def settle(self) -> None:
        """Return when all that was added is indexed and on the disk, as far as the store offers that."""

    def search(self, text: str, user: str | None, limit: int) -> list[str]:
        """Ids of rows of this user, best first; None for no filter, or for `ME` where the store cannot do without."""
        raise NotImplementedError

    def close(self) -> None:
        """Release the files."""


def load_model(path: Path) -> Any:
    """Threefold's bundled embedder from its one file, which needs numpy alone: so every peer gets the same vectors."""
    spec = importlib.util.spec_from_file_location("bundled_model", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.StaticEmbedder()

"""What every command gets: the store, the user, and how to print."""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import threefold
from threefold.backends.opening import FILE_NAME
from threefold.errors import NotFound

# Bidirectional controls: embeddings and overrides, isolates, marks.
_TURNS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")


@dataclass(frozen=True, slots=True)
class Context:
    """Options that every command has; `embedder` and `chat` are settings of `Config`, a key among them."""

    store: str
    user: str
    tenant: str
    json: bool
    blobs: str | None = None
    embedder: Mapping[str, Any] = field(default_factory=dict, repr=False)
    redact: str | None = None
    chat: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def embedder_named(self) -> bool:
        """Whether somebody chose the embedder; else it is the bundled one by default."""
        return "embedder" in self.embedder

    def open(self, make: bool = False, background: bool = False) -> threefold.Threefold:
        """The store; one that is not there is made only where `make` says so.

        No background thread, unless it is asked for: a command does its work and ends.

        Raises:
            NotFound: there is no such store. Otherwise as `threefold.open`.
        """
        if not make and not self.store_exists():
            raise NotFound(f"no store at {self.store}; `threefold import PATH` makes one, --db STORE names another")
        settings = {"blobs": self.blobs, "redact": self.redact, **self.embedder, **self.chat}
        return threefold.open(self.store, background=background, **settings)

    def store_exists(self) -> bool:
        """Whether there is a store already; of one that is named by a URL nothing is known before it is opened."""
        return "://" in self.store or (Path(self.store).expanduser() / FILE_NAME).is_file()

    def as_options(self) -> list[str]:
        """The options that name this store and user from anywhere: a host has another folder and environment.

        Keys are left out; the host's own configuration of an environment is the place for them.
        """
        store = self.store if "://" in self.store else str(Path(self.store).expanduser().absolute())
        given = {
            "--db": store, "--user": self.user, "--tenant": None if self.tenant == "default" else self.tenant,
            "--blobs": self.blobs, "--embedder": self._embedder_option(),
            "--embedder-model": self.embedder.get("embedder_model"), "--redact": self.redact,
        }  # fmt: skip
        return [part for name, value in given.items() if value is not None for part in (name, str(value))]

    def _embedder_option(self) -> str | None:
        return (self.embedder["embedder"] or "none") if self.embedder_named else None

    def handle(self, db: threefold.Threefold) -> threefold.Handle:
        """The user's handle."""
        return db.user(self.user, self.tenant)

    def emit(self, value: Any) -> None:
        """One JSON document on standard output."""
        print(json.dumps(value, ensure_ascii=False, indent=2))


def styled(text: str, code: str) -> str:
    """`text` with an ANSI style where the output is a terminal that wants one."""
    wanted = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return f"\x1b[{code}m{text}\x1b[0m" if wanted else text


def bold(text: str) -> str:
    """Bold on a terminal."""
    return styled(text, "1")


def dim(text: str) -> str:
    """Faint on a terminal."""
    return styled(text, "2")


def counted(count: int, many: str, one: str | None = None) -> str:
    """`2 owners`, `1 owner`: what stands for one is `many` without its s, unless it is given."""
    return f"{count} {many if count != 1 else many.removesuffix('s') if one is None else one}"


def one_line(text: str, size: int) -> str:
    """`text` on one line, cut to `size` characters."""
    line = " ".join(visible(text).split())
    return line if len(line) <= size else line[: size - 1] + "…"


def visible(text: str) -> str:
    """`text` without what a terminal would obey: control characters but newline and tab are shown as escapes.

    So are those that turn the direction of writing: what is read would not be what is there.
    """
    return "".join(repr(c)[1:-1] if c in _TURNS or (unicodedata.category(c) == "Cc" and c not in "\n\t") else c
                   for c in text)  # fmt: skip


def warn(text: str) -> None:
    """A line on standard error, whatever stands in it."""
    print(f"threefold: {visible(text)}", file=sys.stderr, flush=True)

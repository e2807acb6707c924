"""What a reference names: the object itself, and what its owner shows of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

from threefold.errors import Forbidden, NotFound, ThreefoldError
from threefold.model.record import FileEntry
from threefold.model.times import iso

Standing = Literal["there", "gone", "forbidden", "unknown", "unavailable"]
"""How an object stands: it can be seen; it is not there (any more); it is not this one's to see; nobody publishes its
namespace here; its owner failed."""

# What a title is at most, in characters.
TITLE: Final = 120


def cut(text: str, size: int) -> str:
    """A text of at most so many characters."""
    return text if len(text) <= size else text[: max(0, size - 1)].rstrip() + "…"


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a reference names. `kind` says what it is, such as turn, message, file, memory, chunk or board.

    `value` is plain JSON, `text` what a person reads (None for a file), `file` which bytes it is (the record's and
    documents' files). `title` is a line, where it has one, `at` when it was made or last changed. `content` are the
    exact bytes where an app gives them itself.
    """

    ref: str
    kind: str
    value: Any
    text: str | None = None
    file: FileEntry | None = None
    title: str = ""
    at: datetime | None = None
    content: bytes | None = field(default=None, repr=False)

    def as_json(self) -> dict[str, Any]:
        """The object as plain JSON values."""
        return {"ref": self.ref, "kind": self.kind, "value": self.value}

    def shown(self, size: int) -> Shown:
        """What is to be seen of it, with at most so many characters of text."""
        text = self.text or ""
        title = self.title or next((line for line in text.splitlines() if line.strip()), self.kind)
        file = self.file
        more = {} if file is None else {"path": file.path, "size": file.size, "mime": file.mime}
        return Shown(self.ref, self.kind, cut(" ".join(title.split()), TITLE), cut(text, size), self.at, more=more)

    def as_bytes(self) -> bytes:
        """The exact bytes of anything but a file: what an app gave, else the text in UTF-8, else its JSON."""
        if self.content is not None:
            return self.content
        text = self.text if self.text is not None else json.dumps(self.value, ensure_ascii=False, indent=2)
        return text.encode()


@dataclass(frozen=True, slots=True)
class Shown:
    """What the owner of an object shows of it now to the one who asks.

    `title` is one line, `text` what is to be read, cut to the size that was asked for, `at` when it was made or last
    changed. `more` has plain values of its kind, such as `size` and `mime` of a file. Where it cannot be seen `why`
    says so in a line, and the rest is empty.
    """

    ref: str
    kind: str = ""
    title: str = ""
    text: str = ""
    at: datetime | None = None
    standing: Standing = "there"
    why: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def missing(cls, ref: str, error: ThreefoldError) -> Shown:
        """What is shown of an object that could not be looked at, and why."""
        standing: Standing = "gone" if isinstance(error, NotFound) else "unavailable"
        standing = "forbidden" if isinstance(error, Forbidden) else standing
        return cls(ref, standing=standing, why=str(error).removeprefix(f"{ref}: "))

    def as_json(self) -> dict[str, Any]:
        """What is shown, as plain JSON values."""
        found = {"ref": self.ref, "standing": self.standing, "kind": self.kind, "title": self.title, "text": self.text,
                 "at": None if self.at is None else iso(self.at), "why": self.why, **self.more}  # fmt: skip
        return {name: value for name, value in found.items() if value not in (None, "")}

"""The curated records as Markdown files that a person can read, edit, add and delete; and back.

A file has its fields as TOML between two lines of `+++`, then the note, and below a line `## Context` why it is there.
`.mirror.json` remembers what was written, so that a change in the file and a change in the store can be told apart.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from threefold.errors import InvalidInput, ThreefoldError, Unavailable
from threefold.model.memory import Memory

STATE: Final = ".mirror.json"
_FENCE: Final = "+++"
_CONTEXT: Final = "## Context"
# Fields that a person may change in a file; the others are there to be read.
EDITABLE: Final = ("kind", "layer", "tags", "importance", "pinned", "owner", "visibility")
_SLUG: Final = re.compile(r"[^\w]+", re.UNICODE)
_SLUG_SIZE: Final = 40


@dataclass(frozen=True, slots=True)
class Page:
    """What a file says: the id where it has one, the note, the context, and the fields that may be changed."""

    id: str | None
    memory: str
    context: str
    fields: Mapping[str, Any]


@dataclass(slots=True)
class Synced:
    """What a sync did: ids of records that were `written` to files, `updated`, `created` or `retired` from them.

    `conflicts` and `skipped` name the file and say why; a conflict's file stays as the person left it.
    """

    written: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    retired: list[str] = field(default_factory=list)
    conflicts: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)


def to_page(record: Memory) -> str:
    """A record as the text of a file."""
    known = {"id": record.id, "revision": record.revision, "status": record.status}
    shown = {name: getattr(record, name) for name in EDITABLE}
    lines = [f"{name} = {_toml(value)}" for name, value in (known | shown).items() if value is not None]
    context = f"\n{_CONTEXT}\n\n{record.context}\n" if record.context else ""
    memory = record.memory.replace(f"\n{_CONTEXT}", f"\n\\{_CONTEXT}")
    return "\n".join([_FENCE, *lines, _FENCE, "", memory, ""]) + context


def _toml(value: Any) -> str:
    # JSON's texts, numbers and lists of texts are TOML's; but TOML wants DEL escaped.
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False).replace("\x7f", "\\u007f")


def from_page(text: str) -> Page:
    """What the text of a file says.

    Raises:
        InvalidInput: the fields are no TOML, or not of their kinds.
    """
    fields: dict[str, Any] = {}
    body = text.lstrip("\ufeff")
    if body.startswith(_FENCE):
        head, fence, body = body[len(_FENCE) :].partition(f"\n{_FENCE}")
        if not fence:
            raise InvalidInput(f"the fields have no end; put a line {_FENCE} behind them")
        try:
            fields = tomllib.loads(head)
        except tomllib.TOMLDecodeError as error:
            raise InvalidInput(f"the fields are no TOML: {error}") from None
    memory, _, context = body.partition(f"\n{_CONTEXT}\n")
    id_ = fields.get("id")
    if id_ is not None and not isinstance(id_, str):
        raise InvalidInput("id must be text")
    known = {name: value for name, value in fields.items() if name in EDITABLE}
    memory = memory.replace(f"\n\\{_CONTEXT}", f"\n{_CONTEXT}")
    return Page(id_, memory.strip(), context.strip(), known)


def file_name(record: Memory) -> str:
    """What its file is called: some words of the note, and the id."""
    slug = _SLUG.sub("-", record.memory.lower()).strip("-")[:_SLUG_SIZE].strip("-")
    return f"{slug}.{record.id}.md" if slug else f"{record.id}.md"


@dataclass(slots=True)
class Folder:
    """The files of a mirror, and what was written of each record when: file, revision, hash of the text."""

    path: Path
    known: dict[str, dict[str, Any]]

    @classmethod
    def open(cls, path: Path) -> Folder:
        """A folder, made where it is missing.

        Raises:
            Unavailable: it cannot be used. InvalidInput: what it remembers is damaged.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
            state = path / STATE
            known = json.loads(state.read_text("utf-8")) if state.exists() else {}
        except OSError as error:
            raise Unavailable(f"folder {path}: {error.strerror or error}") from None
        except ValueError:
            raise InvalidInput(f"folder {path}: {STATE} is damaged; delete it and sync into an empty folder") from None
        return cls(path, known)

    def pages(self) -> Iterator[tuple[str, str]]:
        """(name, text) of every file."""
        for file in sorted(self.path.glob("*.md")):
            yield file.name, file.read_text("utf-8")

    def write(self, record: Memory) -> None:
        """Write a record's file, in place of the one it had."""
        text, name = to_page(record), file_name(record)
        before = self.known.get(record.id, {}).get("file")
        _replace(self.path / name, text)
        if before is not None and before != name:
            (self.path / before).unlink(missing_ok=True)
        self.known[record.id] = {"file": name, "revision": record.revision, "hash": hash_of(text)}

    def drop(self, id_: str) -> None:
        """Forget a record and remove its file."""
        known = self.known.pop(id_, None)
        if known is not None:
            (self.path / known["file"]).unlink(missing_ok=True)

    def close(self) -> None:
        """Remember what was written."""
        _replace(self.path / STATE, json.dumps(self.known, ensure_ascii=False, indent=1, sort_keys=True))


def hash_of(text: str) -> str:
    """The hash of a file's text."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _replace(file: Path, text: str) -> None:
    """Write a file whole or not at all."""
    unfinished = file.with_name(file.name + ".part")
    try:
        unfinished.write_text(text, "utf-8")
        unfinished.replace(file)
    except OSError as error:
        raise Unavailable(f"file {file} cannot be written: {error.strerror or error}") from None


def reason(error: ThreefoldError) -> str:
    """An error in a line."""
    return " ".join(str(error).split())

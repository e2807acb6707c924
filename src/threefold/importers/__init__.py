"""Importers: the histories of other tools as turns, with their own times and ids.

`read` is the one entry point. It looks at what each file contains, hands it to the importer of that format and passes
on `Turn` values and `Skipped` notes, one at a time; reading a file again gives equal turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path

from threefold.errors import InvalidInput
from threefold.importers import chatgpt, claude, claude_code, codex, gemini_cli, jsonl
from threefold.importers.base import Importer, Record, Skipped, mapping, moment
from threefold.importers.files import File, discover
from threefold.model.turn import Turn

__all__ = ["KINDS", "Skipped", "read", "total_bytes"]

# In the order in which they are asked whether a record is theirs; the most particular format first.
_IMPORTERS: tuple[Importer, ...] = (claude_code, codex, gemini_cli, chatgpt, claude, jsonl)
KINDS: tuple[str, ...] = ("auto", *(importer.KIND for importer in _IMPORTERS))
_LOOKED_AT = 50
_TIMES = ("timestamp", "at", "time", "created_at", "create_time", "startTime")


def read(
    paths: Iterable[str | Path], kind: str = "auto", on_bytes: Callable[[int], None] | None = None
) -> Iterator[Turn | Skipped]:
    """The turns of all files under `paths`, and what was not imported and why.

    `paths` are folders (walked in order of names), zip files, and .json, .jsonl or .jsonl.gz files. `kind` is one of
    `KINDS`; `auto` looks at what each file contains. `on_bytes` is called with the number of bytes that were read since
    it was last called; at the end they add up to `total_bytes(paths)`. Of what a file contains nothing raises: it is
    skipped.

    Raises:
        InvalidInput: for a path that does not exist and for an unknown `kind`, at once.
    """
    if kind not in KINDS:
        raise InvalidInput(f"kind {kind!r} is unknown; it must be one of {', '.join(KINDS)}")
    found = list(discover(paths))
    return _read_all(found, kind, on_bytes or (lambda _: None))


def total_bytes(paths: Iterable[str | Path]) -> int:
    """How many bytes `read` will report: the sizes of the files, of zip members their size when unpacked.

    Raises:
        InvalidInput: for a path that does not exist.
    """
    return sum(file.size for file in discover(paths) if isinstance(file, File))


def _read_all(found: list[File | Skipped], kind: str, on_bytes: Callable[[int], None]) -> Iterator[Turn | Skipped]:
    for file in found:
        if isinstance(file, Skipped):
            yield file
            continue
        left = file.size

        def count(size: int) -> None:
            nonlocal left
            size = min(size, left)  # a file may have grown since its size was asked
            left -= size
            if size:
                on_bytes(size)

        yield from _read_file(file, kind, count)
        count(left)


def _read_file(file: File, kind: str, on_bytes: Callable[[int], None]) -> Iterator[Turn | Skipped]:
    if file.size == 0:
        yield Skipped(file.where, "the file is empty")
        return
    known = {importer.KIND: importer for importer in _IMPORTERS}
    with closing(file.records()) as records:
        head = list(islice(records, _LOOKED_AT))
    detected = _detect(head)
    if kind == "auto":
        chosen = detected
    elif detected == kind or _knows(known[kind], head) or (file.named and detected is None):
        chosen = kind
    else:
        chosen = None
    if chosen is None:
        yield Skipped(file.where, _why_unknown(head, kind, detected))
        return
    yield from known[chosen].read(replace(file, on_bytes=on_bytes, fallback=_first_moment(head) or file.fallback))


def _first_moment(head: list[Record | Skipped]) -> datetime | None:
    """The first time that the file tells, for what stands before it."""
    values = [record.value for record in head if isinstance(record, Record)]
    written = (part.get(key) for value in values for part in (value, mapping(value.get("payload"))) for key in _TIMES)
    return next((found for found in map(moment, written) if found is not None), None)


def _knows(importer: Importer, head: list[Record | Skipped]) -> bool:
    return any(isinstance(record, Record) and importer.sniff(record.value) for record in head)


def _detect(head: list[Record | Skipped]) -> str | None:
    """The kind of the first record that an importer knows."""
    for record in head:
        for importer in _IMPORTERS:
            if isinstance(record, Record) and importer.sniff(record.value):
                return importer.KIND
    return None


def _why_unknown(head: list[Record | Skipped], kind: str, detected: str | None) -> str:
    if detected is not None:
        return f"this is a file of the kind {detected}, not {kind}"
    if any(isinstance(record, Record) for record in head) or not head:
        return "no conversation that an importer knows"
    first = next(record for record in head if isinstance(record, Skipped))
    return f"no JSON that an importer knows ({first.why})"

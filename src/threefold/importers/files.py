"""From paths to sources: folders, zip files, compressed and plain files."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from threefold.errors import InvalidInput
from threefold.importers.base import Found, Record, Skipped
from threefold.importers.places import MAX_MEMBER, UNREADABLE, Archive, Folder, Place, reason, refusal
from threefold.importers.records import MAX_LINE, MAX_VALUE, DamagedError, lines, parse, values

SUFFIXES = (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz")
_SIDE_FILES = (".meta.json",)


class _Counted(io.RawIOBase):
    """A stream that tells how many bytes were read from it."""

    def __init__(self, inner: BinaryIO, on_bytes: Callable[[int], None]) -> None:
        self._inner, self._on_bytes = inner, on_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._inner.read(len(buffer))
        buffer[: len(data)] = data
        self._on_bytes(len(data))
        return len(data)


@dataclass(frozen=True)
class File:
    """One file to import: a `Source` for the importers."""

    where: str
    parts: tuple[str, ...]
    size: int
    fallback: datetime
    named: bool  # by the user, not merely found in a folder or a zip
    opened: Callable[[], BinaryIO]
    place: Place
    on_bytes: Callable[[int], None] = lambda _: None

    def records(self) -> Generator[Record | Skipped, None, None]:
        """The JSON objects of the file."""
        limit, index = (MAX_LINE, 0) if self._by_lines else (MAX_VALUE, 0)
        try:
            with self._stream() as stream:
                split = lines(stream) if self._by_lines else values(stream)
                for line, raw in split:
                    yield self._record(f"{self.where} line {line}", index, raw, limit)
                    index += 1
        except UNREADABLE as error:
            yield Skipped(self.where, f"could not be read: {reason(error)}")

    def beside(self, name: str) -> Found | Skipped | None:
        """The file in the same folder or zip that is called `name`, or whose name begins with this id."""
        return self.place.find(name)

    @property
    def _by_lines(self) -> bool:
        return self.parts[-1].lower().removesuffix(".gz").endswith((".jsonl", ".ndjson"))

    @contextmanager
    def _stream(self) -> Iterator[BinaryIO]:
        with self.opened() as raw:
            counted = io.BufferedReader(_Counted(raw, self.on_bytes), 2**18)
            packed = self.parts[-1].lower().endswith(".gz")
            yield _Limited(gzip.GzipFile(fileobj=counted), MAX_MEMBER) if packed else counted

    @staticmethod
    def _record(where: str, index: int, raw: bytes | None, limit: int) -> Record | Skipped:
        if raw is None:
            return Skipped(where, f"longer than {limit // 2**20} MiB")
        try:
            value = parse(raw)
        except DamagedError as error:
            return Skipped(where, str(error))
        if isinstance(value, dict):
            return Record(where, index, value)
        return Skipped(where, f"a JSON {type(value).__name__}, where an object is expected")


class _Limited(io.BufferedReader):
    """A decompressed stream that ends with an error where it grows beyond all measure."""

    def __init__(self, inner: gzip.GzipFile, limit: int) -> None:
        super().__init__(_Counted(inner, self._count), 2**18)  # type: ignore[arg-type]
        self._left = limit

    def _count(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise OSError(f"expands to more than {MAX_MEMBER // 2**30} GiB")


def discover(paths: Iterable[str | Path]) -> Iterator[File | Skipped]:
    """The files to import under `paths`, each once, in the order of `paths` and of names within a folder.

    Raises:
        InvalidInput: where there is no such path.
    """
    given = [Path(paths)] if isinstance(paths, str | Path) else [Path(p) for p in paths]
    for path in given:
        if not path.exists():
            raise InvalidInput(f"paths: there is no file or folder {str(path)!r}")
    seen: set[Path] = set()
    for path in given:
        # A relative path is shown as given; of an absolute one only the end, since the rest says nothing to a reader.
        shown = path.name if path.is_absolute() else path.as_posix()
        for file, where in _walk(path, shown):
            if (real := file.resolve()) not in seen:
                seen.add(real)
                yield from _files(file, where, named=file == path)


def _walk(path: Path, shown: str) -> Iterator[tuple[Path, str]]:
    if not path.is_dir():
        yield path, shown
        return
    for folder, folders, names in os.walk(path):
        folders.sort()
        inner = Path(folder)
        for name in sorted(names):
            lower = name.lower()
            if lower.endswith((*SUFFIXES, ".zip")) and not lower.endswith(_SIDE_FILES):
                within = (inner / name).relative_to(path).as_posix()
                yield inner / name, f"{shown}/{within}" if shown not in ("", ".") else within


def _files(path: Path, where: str, named: bool) -> Iterator[File | Skipped]:
    try:
        stat = path.stat()
        with path.open("rb") as stream:
            head = stream.read(4)
    except OSError as error:
        yield Skipped(where, f"could not be read: {reason(error)}")
        return
    if head == b"PK\x03\x04" or path.suffix.lower() == ".zip":
        yield from _members(Archive(path, where), where)
        return
    changed = datetime.fromtimestamp(stat.st_mtime, UTC)
    yield File(where, path.absolute().parts, stat.st_size, changed, named, lambda: path.open("rb"), Folder(path.parent))


def _members(archive: Archive, where: str) -> Iterator[File | Skipped]:
    try:
        members = archive.members
    except UNREADABLE as error:
        yield Skipped(where, f"not a readable zip file: {reason(error)}")
        return
    for member in members:
        shown, lower = f"{where}!{member.filename}", member.filename.lower()
        if lower.endswith(".zip"):
            yield Skipped(shown, "a zip file within a zip file is not opened")
        elif lower.endswith(SUFFIXES) and not lower.endswith(_SIDE_FILES):
            refused = refusal(member)
            if refused is not None:
                yield Skipped(shown, refused)
                continue
            parts = PurePosixPath(where, member.filename).parts
            changed, opened = archive.modified(member), partial(archive.open, member)
            yield File(shown, parts, member.file_size, changed, named=False, opened=opened, place=archive)

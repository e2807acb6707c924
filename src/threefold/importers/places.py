"""Where files lie together: folders of unpacked exports, and zip files. Here other files can be found by name.

Nothing is ever extracted: members of a zip are read as streams, and only those that hold records or are asked for by
name.
"""

from __future__ import annotations

import bisect
import zipfile
import zlib
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol

from threefold.importers.base import Found, Skipped, file_name

MAX_MEMBER = 4 * 2**30
MAX_BESIDE = 100 * 2**20  # what the store takes as one file
MAX_RATIO, RATIO_FROM = 250, 64 * 2**20  # text shrinks to a fifth, seldom to a fiftieth
UNREADABLE = (OSError, EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError, RuntimeError)


class Place(Protocol):
    """A folder or a zip file, in which other files can be found by name."""

    def find(self, name: str) -> Found | Skipped | None:
        """The file that is called `name`, or whose name begins with this id."""


def reason(error: BaseException) -> str:
    """Why, without the machine's paths that `str` of an OSError carries."""
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)) or type(error).__name__


class _Names:
    """File names in order, to find one by its beginning."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._sorted = sorted((PurePosixPath(path).name, path) for path in paths)

    def find(self, name: str) -> str | None:
        """The path whose last segment is `name`, or begins with it and goes on with no letter or digit."""
        if not name:
            return None
        for i in range(bisect.bisect_left(self._sorted, (name, "")), len(self._sorted)):
            other, path = self._sorted[i]
            if not other.startswith(name):
                return None
            if other == name or not other[len(name)].isalnum():
                return path
        return None


class Folder:
    """The folder of an unpacked export. Looks two levels deep, as such exports are."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def _names(self) -> _Names:
        return _Names(str(p) for pattern in ("*", "*/*") for p in self._path.glob(pattern) if p.is_file())

    def find(self, name: str) -> Found | Skipped | None:
        """See `Place`."""
        path = self._names.find(name)
        if path is None:
            return None
        shown = f"{self._path.name}/{Path(path).name}"
        try:
            if Path(path).stat().st_size > MAX_BESIDE:
                return Skipped(shown, f"larger than {MAX_BESIDE // 2**20} MiB")
            return Found(file_name(path, "file"), Path(path).read_bytes())
        except OSError as error:
            return Skipped(shown, f"could not be read: {reason(error)}")


class Archive:
    """A zip file."""

    def __init__(self, path: Path, where: str) -> None:
        self._path, self._where = path, where

    @cached_property
    def _zip(self) -> zipfile.ZipFile:
        return zipfile.ZipFile(self._path)  # it closes itself when nobody reads from it any more

    @cached_property
    def members(self) -> list[zipfile.ZipInfo]:
        """Its files, in order of their names."""
        return sorted((i for i in self._zip.infolist() if not i.is_dir()), key=lambda i: i.filename)

    @cached_property
    def _names(self) -> _Names:
        return _Names(i.filename for i in self.members)

    def open(self, member: zipfile.ZipInfo) -> BinaryIO:
        """A stream of the bytes of `member`."""
        return self._zip.open(member)  # type: ignore[return-value]

    def find(self, name: str) -> Found | Skipped | None:
        """See `Place`."""
        path = self._names.find(name)
        if path is None:
            return None
        member = self._zip.getinfo(path)
        shown = f"{self._where}!{member.filename}"
        refused = refusal(member)
        if refused is None and member.file_size > MAX_BESIDE:
            refused = f"larger than {MAX_BESIDE // 2**20} MiB"
        if refused is not None:
            return Skipped(shown, refused)
        try:
            with self.open(member) as stream:
                return Found(file_name(member.filename, "file"), stream.read())
        except UNREADABLE as error:
            return Skipped(shown, f"could not be read: {reason(error)}")

    def modified(self, member: zipfile.ZipInfo) -> datetime:
        """When `member` was last changed; a zip says so without a zone."""
        try:
            return datetime(*member.date_time, tzinfo=UTC)
        except ValueError:
            return datetime.fromtimestamp(self._path.stat().st_mtime, UTC)


def refusal(member: zipfile.ZipInfo) -> str | None:
    """Why a member of a zip is not read, or None. Its stream never gives more than the size that is declared."""
    parts = PurePosixPath(member.filename.replace("\\", "/")).parts
    if ".." in parts or member.filename.startswith(("/", "\\")):
        return "a path that leaves the archive"
    if member.flag_bits & 1:
        return "encrypted"
    if member.file_size > MAX_MEMBER:
        return f"larger than {MAX_MEMBER // 2**30} GiB"
    if member.file_size > RATIO_FROM and member.file_size > MAX_RATIO * max(member.compress_size, 1):
        return f"expands more than {MAX_RATIO} times, as only a zip bomb does"
    return None

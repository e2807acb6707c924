"""The zip file of an archive, read piece by piece and, where it is somebody else's, within bounds."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, cast

from threefold.errors import IntegrityError, InvalidInput, NotFound, ThreefoldError, Unavailable

_PIECE: Final = 2**20
_MIB: Final = 2**20


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is taken of an archive that may be hostile, in bytes: a small file may unpack to any size.

    `unpacked` is all that is read of it, `line` a turn, `file` the bytes of one file, `directory` the list of members.
    """

    unpacked: int = 8192 * _MIB
    line: int = 32 * _MIB
    file: int = 256 * _MIB
    directory: int = 16 * _MIB


class _Bounded(io.RawIOBase):
    """A file of which no more than so many bytes are read at once: the list of members comes in one piece."""

    def __init__(self, file: IO[bytes], most: int) -> None:
        self._file, self._most = file, most

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def read(self, size: int = -1) -> bytes:
        if size > self._most:
            raise InvalidInput(f"the archive lists more members than {self._most // _MIB} MiB can hold")
        return self._file.read(size)


class Packed:
    """An open archive. `name` is what errors call it."""

    def __init__(self, archive: zipfile.ZipFile, name: str, bounds: Bounds | None) -> None:
        self.name = name
        self._zip, self._bounds = archive, bounds
        self._left = None if bounds is None else bounds.unpacked

    def has(self, member: str) -> bool:
        """Whether there is a member of this name."""
        return member in self._zip.NameToInfo

    def read(self, member: str) -> bytes:
        """The bytes of a member.

        Raises:
            KeyError: there is none. InvalidInput: they are more than the bounds allow.
        """
        most = None if self._bounds is None else self._bounds.file
        size = self._zip.getinfo(member).file_size
        if most is not None and size > most:
            raise InvalidInput(f"{self.name}: a file unpacks to {size:,} bytes; at most {most:,} are taken")
        self._count(size)
        with self._zip.open(member) as stream:
            return b"".join(iter(lambda: stream.read(_PIECE), b""))

    def lines(self, member: str) -> Iterator[bytes]:
        """The lines of a member.

        Raises:
            KeyError: there is none. InvalidInput: one is longer than the bounds allow, or all are.
        """
        most = -1 if self._bounds is None else self._bounds.line
        with self._zip.open(member) as stream, io.BufferedReader(cast(io.RawIOBase, stream), _PIECE) as buffered:
            while line := buffered.readline(most):
                if len(line) == most:
                    raise InvalidInput(f"{self.name}: a turn has more than {most:,} bytes, the most that is taken")
                self._count(len(line))
                yield line

    def _count(self, size: int) -> None:
        if self._left is None:
            return
        self._left -= size
        if self._left < 0:
            assert self._bounds is not None  # noqa: S101 - it is what is counted against
            most = self._bounds.unpacked // _MIB
            raise InvalidInput(f"{self.name} unpacks to more than {most:,} MiB, the most that is taken")


@contextmanager
def opened(source: Path | IO[bytes], bounds: Bounds | None) -> Iterator[Packed]:
    """An archive, of a path or an open file.

    Raises:
        NotFound, IntegrityError, Unavailable: it is not there, damaged, or cannot be read.
    """
    name = f"archive {source}" if isinstance(source, Path) else "the archive"
    held = source if isinstance(source, Path) or bounds is None else _Bounded(source, bounds.directory)
    try:
        with zipfile.ZipFile(cast(IO[bytes], held)) as archive:
            yield Packed(archive, name, bounds)
    except FileNotFoundError:
        raise NotFound(f"{name} does not exist") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError, RuntimeError, ValueError) as error:
        if isinstance(error, ThreefoldError):
            raise
        raise IntegrityError(f"{name} is damaged or no zip file: {error}") from None
    except OSError as error:
        raise Unavailable(f"{name} cannot be read: {error.strerror or error}") from None

"""A zip file in memory, read within bounds."""

from __future__ import annotations

import io
import zipfile
from typing import Final, Self
from xml.etree import ElementTree as ET

from threefold.errors import InvalidInput

# What all that is read of one file may unpack to.
MAX_UNPACKED: Final = 100 * 2**20
MAX_MEMBERS: Final = 50_000


class Packed:
    """The members of a zip file. What is read is counted: a file may say little and unpack to much.

    Raises:
        InvalidInput: it has too many members. BadZipFile: it is none.
    """

    def __init__(self, data: bytes, what: str) -> None:
        self.what = what
        self._zip = zipfile.ZipFile(io.BytesIO(data))
        self._names = set(self._zip.namelist())
        self._left = MAX_UNPACKED
        if len(self._names) > MAX_MEMBERS:
            raise InvalidInput(f"{what} has {len(self._names):,} members, at most {MAX_MEMBERS:,} are looked at")

    def has(self, name: str) -> bool:
        """Whether there is a member of this name."""
        return name in self._names

    @property
    def encrypted(self) -> bool:
        """Whether an OpenDocument file says that its parts are encrypted."""
        return "META-INF/manifest.xml" in self._names and b"encryption-data" in self.read("META-INF/manifest.xml")

    def read(self, name: str) -> bytes:
        """The bytes of a member.

        Raises:
            InvalidInput: with it more would be unpacked than is allowed. KeyError: there is none.
        """
        with self._zip.open(name) as member:
            data = member.read(self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise InvalidInput(f"{self.what} unpacks to more than {MAX_UNPACKED // 2**20} MiB")
        return data

    def text(self, name: str) -> str:
        """A member as text."""
        return self.read(name).decode("utf-8", "replace")

    def xml(self, name: str) -> ET.Element:
        """A member as XML. Entities that are defined in it are refused: they may stand for any amount of text.

        Raises:
            ParseError: it is none.
        """
        data = self.read(name)
        if b"<!ENTITY" in data:
            raise InvalidInput(f"{self.what}: its part {name!r} defines entities of XML, which are not followed")
        return ET.fromstring(data)  # noqa: S314 - without entities nothing grows, and none are fetched

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

"""Office files: .docx, .pptx, .xlsx, .odt, .odp, .ods and .epub, which all are zip files of XML.

Headings, lists and tables are kept; pictures, comments and what was struck out are not.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final
from xml.etree import ElementTree as ET

from threefold.errors import InvalidInput
from threefold.extractors.ooxml import presentation, sheets, writing
from threefold.extractors.opendocument import opendocument
from threefold.extractors.packed import Packed
from threefold.model.document import Extracted

_OOXML: Final = "application/vnd.openxmlformats-officedocument."
_Reader = Callable[[Packed], Iterator[str]]


def read_office(data: bytes, mime: str | None = None, what: str = "content") -> Extracted:  # noqa: ARG001
    """The text of an office file.

    Raises:
        InvalidInput: it is damaged, encrypted, unpacks to too much, or is another kind of zip file.
    """
    try:
        with Packed(data, what) as packed:
            type_, reader = _reader(packed)
            text = "\n\n".join(part for part in reader(packed) if part.strip())
            return Extracted(text, type_, _title(packed), literal=False)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        # A RuntimeError is how a member says that it needs a password.
        raise InvalidInput(f"{what} is damaged or encrypted: {error}") from None
    except (ET.ParseError, KeyError, ValueError, IndexError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{what} is a damaged office file: {error}") from None


def _reader(packed: Packed) -> tuple[str, _Reader]:
    for member, found in _BY_MEMBER.items():
        if packed.has(member):
            return found
    said = packed.text("mimetype").strip() if packed.has("mimetype") else ""
    if said == "application/epub+zip":
        from threefold.extractors.epub import book

        return said, book
    if said.startswith("application/vnd.oasis.opendocument."):
        if packed.encrypted:
            raise InvalidInput(f"{packed.what} is encrypted: give it without its password")
        return said, opendocument
    raise InvalidInput(f"{packed.what} is a zip file of no kind that can be read; unpack it and take in its files")


_BY_MEMBER: Final[Mapping[str, tuple[str, _Reader]]] = {
    "word/document.xml": (f"{_OOXML}wordprocessingml.document", writing),
    "ppt/presentation.xml": (f"{_OOXML}presentationml.presentation", presentation),
    "xl/workbook.xml": (f"{_OOXML}spreadsheetml.sheet", sheets),
}


def _title(packed: Packed) -> str | None:
    """The title that the file names, in any of the places where these formats do."""
    for member in ("docProps/core.xml", "meta.xml", "content.opf", "OEBPS/content.opf"):
        if packed.has(member):
            for found in packed.xml(member).iter("{http://purl.org/dc/elements/1.1/}title"):
                if title := " ".join((found.text or "").split()):
                    return title
    return None

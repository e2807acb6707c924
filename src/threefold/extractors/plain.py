"""Text and Markdown. Pure."""

from __future__ import annotations

import codecs
import re
from pathlib import PurePath
from typing import Final

from threefold.errors import InvalidInput
from threefold.extractors.kinds import charset_of, plain_type
from threefold.model.document import Extracted
from threefold.text.chunking.blocks import blocks

_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
)  # fmt: skip
_TYPES: Final = {
    ".md": "text/markdown", ".markdown": "text/markdown", ".csv": "text/csv", ".json": "application/json",
    ".xml": "application/xml", ".rst": "text/x-rst", ".tex": "text/x-tex", ".py": "text/x-python",
}  # fmt: skip
# A title in front matter: of YAML, or of TOML.
_TITLE: Final = re.compile(r"^title[ \t]*[:=][ \t]*(.{1,500})$", re.MULTILINE | re.IGNORECASE)


def read_text(data: bytes, mime: str | None = None, what: str = "content", name: str = "") -> Extracted:
    """A text as it is; its title is that of its front matter, else its first heading of the first level.

    Raises:
        InvalidInput: it is not in UTF-8, UTF-16 with a mark, or the encoding that `mime` names.
    """
    text = decoded(data, mime, what)
    return Extracted(text, plain_type(mime) or _TYPES.get(PurePath(name).suffix.lower(), "text/plain"), title_of(text))


def decoded(data: bytes, mime: str | None, what: str, declared: str | None = None) -> str:
    """The text of the bytes: as a mark at their beginning says, else the type, else the text itself, else UTF-8.

    Raises:
        InvalidInput: they are not in that encoding.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return _as(data[len(mark) :], encoding, what)
    if named := charset_of(mime) or declared:
        return _as(data, named, what)
    if len(data) > 1 and data[:2].count(0) == 1 and len(data) % 2 == 0:
        return _as(data, "utf-16-be" if data[0] == 0 else "utf-16-le", what)
    return _as(data, "utf-8", what)


def _as(data: bytes, encoding: str, what: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{what} is not in {encoding}: byte {error.start:,} is none of it; name its encoding, such as "
            "mime='text/plain; charset=windows-1252'"
        ) from None
    except (LookupError, UnicodeError):
        raise InvalidInput(f"{what}: there is no encoding {encoding!r}") from None


def title_of(text: str) -> str | None:
    """What a text calls itself."""
    for block in blocks(text):
        if block.kind == "front":
            found = _TITLE.search(text, block.start, block.end)
            if found and (title := found[1].strip().strip("\"'").strip()):
                return title
        elif block.kind == "heading" and block.level == 1 and block.title:
            return block.title
    return None

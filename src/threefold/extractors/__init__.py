"""The text of files as Markdown: `extract` is the one entry point.

What a file is, its bytes say, else the type that is given, else the ending of its name. Text, Markdown and office
files are read with what Python has; HTML and PDF need `pip install 'threefold[documents]'`. Whatever is wrong with a
file is an `InvalidInput` that says so; no file is unpacked beyond a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from threefold.errors import InvalidInput
from threefold.extractors import office, plain
from threefold.extractors.kinds import Kind, kind_of
from threefold.model.document import Extracted

__all__ = ["MAX_CHARACTERS", "extract"]

MAX_CHARACTERS: Final = 50_000_000


def extract(data: bytes, mime: str | None = None, name: str = "") -> Extracted:
    """The text of a file as Markdown. `mime` and `name` may tell what it is, where its bytes do not.

    Raises:
        InvalidInput: it is damaged, encrypted, too large, of a kind that cannot be read, or what reads it is not
            installed; the message says which.
    """
    what = f"file {name!r}" if name else "content"
    kind = kind_of(data, mime, name)
    if kind == "binary":
        raise InvalidInput(f"{what} is neither text nor of a kind that can be read; give its text")
    if kind == "old office":
        raise InvalidInput(f"{what} is encrypted, or of the old binary kind of office files; save it as .docx or alike")
    found = plain.read_text(data, mime, what, name) if kind == "text" else _READERS[kind](data, mime, what)
    if len(found.text) > MAX_CHARACTERS:
        raise InvalidInput(
            f"{what} has {len(found.text):,} characters of text, at most {MAX_CHARACTERS:,} are taken in"
        )
    return found


def _html(data: bytes, mime: str | None, what: str) -> Extracted:
    from threefold.extractors.html import read_html

    return read_html(data, mime, what)


def _pdf(data: bytes, mime: str | None, what: str) -> Extracted:  # noqa: ARG001 - as the others
    from threefold.extractors.pdf import read_pdf

    return read_pdf(data, what)


_READERS: Final[Mapping[Kind, Callable[[bytes, str | None, str], Extracted]]] = {
    "html": _html, "pdf": _pdf, "office": office.read_office,
}  # fmt: skip

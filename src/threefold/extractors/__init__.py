"""The text of files as Markdown: `extract` is the one entry point."""

from __future__ import annotations

from threefold.errors import InvalidInput
from threefold.model.document import Extracted


def extract(data: bytes, mime: str | None = None, name: str = "") -> Extracted:
    """The text of a file."""
    try:
        return Extracted(data.decode(), mime or "text/plain")
    except UnicodeDecodeError:
        raise InvalidInput(f"content {name!r} is no text in UTF-8") from None

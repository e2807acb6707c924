"""Web pages: headings, lists, tables and code as Markdown; scripts, styles, navigation, pictures and hidden text
are left out."""

from __future__ import annotations

import re
from typing import Final

from threefold.errors import InvalidInput
from threefold.extractors.plain import decoded, title_of
from threefold.model.document import Extracted

_DECLARED: Final = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
_TITLE: Final = re.compile(r"<title[^>]{0,200}>([^<]{1,500})</title", re.IGNORECASE)
_DEEPEST: Final = 500


def read_html(data: bytes, mime: str | None = None, what: str = "content") -> Extracted:
    """The text of a page.

    Raises:
        InvalidInput: it is not in the encoding that it names, or cannot be read.
    """
    declared = _DECLARED.search(data, 0, 4096)
    page = decoded(data, mime, what, None if declared is None else declared[1].decode())
    text = markdown_of(page, what)
    named = _TITLE.search(page)
    title = title_of(text) if named is None else _unescaped(named[1])
    return Extracted(text, "text/html", title or title_of(text), literal=False)


def markdown_of(page: str, what: str) -> str:
    """The Markdown of a page.

    Raises:
        InvalidInput: what reads it is not installed, or cannot read it.
    """
    try:
        from html_to_markdown import ConversionError, ConversionOptions, PreprocessingOptions, convert
    except ImportError:
        raise InvalidInput(f"{what} is HTML, to read which: pip install 'threefold[documents]'") from None
    options = ConversionOptions(
        skip_images=True, extract_metadata=False, max_depth=_DEEPEST, preprocessing=PreprocessingOptions(enabled=True)
    )
    try:
        found = convert(page, options)
    except (ConversionError, ValueError, RuntimeError) as error:
        raise InvalidInput(f"{what} cannot be read as HTML: {error}") from None
    return str(found.content or "")


def _unescaped(title: str) -> str:
    from html import unescape

    return " ".join(unescape(title).split())

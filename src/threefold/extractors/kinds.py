"""Telling what a file is. Pure."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final, Literal

Kind = Literal["text", "html", "pdf", "office", "old office", "binary"]
_LOOKED_AT: Final = 1_024
_BOMS: Final = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_ENDINGS: Final = (".html", ".htm", ".xhtml")
_TEXT: Final = ("text/plain", "text/markdown")
_HTML: Final = ("text/html", "application/xhtml+xml")
# Bytes that no text has, in any encoding of which every character of ASCII is one byte.
_CONTROLS: Final = frozenset(range(32)) - frozenset(b"\t\n\r\f\x0b\x1b\x08")


def kind_of(data: bytes, mime: str | None = None, name: str = "") -> Kind:
    """What kind of file this is: by its bytes, else by its type, else by the ending of its name.

    What is said to be text in a certain encoding is text, even where it speaks of `%PDF-` or has control characters.
    """
    if charset_of(mime) is not None and plain_type(mime) in _TEXT:
        return "text"
    head = data[:_LOOKED_AT]
    if b"%PDF-" in head:
        return "pdf"
    if head.startswith(b"PK\x03\x04"):
        return "office"
    if head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return "old office"
    said = plain_type(mime)
    if _is_binary(head) or (said.startswith(("image/", "audio/", "video/")) and said != "image/svg+xml"):
        return "binary"
    return "html" if said in _HTML or (not said and _looks_like_html(head, name)) else "text"


def _is_binary(head: bytes) -> bool:
    return not head.startswith(_BOMS) and not _CONTROLS.isdisjoint(head) and not _is_wide(head)


def _looks_like_html(head: bytes, name: str) -> bool:
    begins = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return begins.startswith((b"<!doctype html", b"<html")) or PurePath(name).suffix.lower() in _ENDINGS


def plain_type(mime: str | None) -> str:
    """A type without its parameters, in lower case."""
    return (mime or "").partition(";")[0].strip().lower()


def charset_of(mime: str | None) -> str | None:
    """The encoding that a type names."""
    for part in (mime or "").split(";")[1:]:
        key, _, value = part.partition("=")
        if key.strip().lower() == "charset":
            return value.strip().strip("\"'") or None
    return None


def _is_wide(head: bytes) -> bool:
    """Whether this looks like UTF-16 without a mark: every other byte of what is Latin is 0."""
    pairs = len(head) // 2
    return pairs > 1 and max(head[0::2].count(0), head[1::2].count(0)) > 0.7 * pairs and head.count(b"\0\0") == 0

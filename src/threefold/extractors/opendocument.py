"""The formats of OpenDocument: .odt, .odp, .ods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from xml.etree.ElementTree import Element

from threefold.extractors.packed import Packed
from threefold.extractors.tables import table

_TEXT: Final = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE: Final = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_OFFICE: Final = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_DRAW: Final = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}"
# A cell or row may say that it is repeated a million times; of a few only are repeated here.
_REPEATED: Final = 50
_LEFT_OUT: Final = frozenset({f"{_TEXT}tracked-changes", f"{_OFFICE}annotation", f"{_OFFICE}forms"})


def opendocument(packed: Packed) -> Iterator[str]:
    """The paragraphs, lists and tables of a text, a presentation or sheets."""
    body = packed.xml("content.xml").find(f"{_OFFICE}body")
    yield from _parts(body if body is not None else Element("body"))


def _parts(parent: Element) -> Iterator[str]:
    for each in parent:
        if each.tag in _LEFT_OUT:
            continue
        if each.tag == f"{_TEXT}h":
            yield "#" * _level(each.get(f"{_TEXT}outline-level", "1")) + " " + " ".join(_said(each).split())
        elif each.tag == f"{_TEXT}p":
            yield _said(each)
        elif each.tag == f"{_TEXT}list":
            yield "\n".join(_items(each, 0))
        elif each.tag == f"{_TABLE}table":
            if name := each.get(f"{_TABLE}name"):
                yield f"## {' '.join(name.split())}"
            yield table(_row(row) for row in each.iter(f"{_TABLE}table-row"))
        else:
            if each.tag == f"{_DRAW}page" and (name := each.get(f"{_DRAW}name")):
                yield f"## {' '.join(name.split())}"
            yield from _parts(each)


def _level(written: str) -> int:
    return min(max(int(written), 1), 6) if written.isdecimal() else 1


def _items(parent: Element, depth: int) -> Iterator[str]:
    for item in parent:
        for each in item:
            if each.tag == f"{_TEXT}list":
                yield from _items(each, depth + 1)
            elif said := " ".join(_said(each).split()):
                yield "  " * min(depth, 20) + "- " + said


def _row(row: Element) -> list[str]:
    cells: list[str] = []
    for cell in row:
        if cell.tag in (f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
            repeated = cell.get(f"{_TABLE}number-columns-repeated", "1")
            said = " ".join(_said(each) for each in cell.iter(f"{_TEXT}p"))
            cells += [said] * min(int(repeated) if repeated.isdecimal() else 1, _REPEATED)
    return cells


def _said(parent: Element) -> str:
    """The text of a paragraph with its blanks."""
    parts = [parent.text or ""]
    for each in parent:
        if each.tag == f"{_TEXT}s":
            parts.append(" ")
        elif each.tag == f"{_TEXT}tab":
            parts.append("\t")
        elif each.tag == f"{_TEXT}line-break":
            parts.append("\n")
        elif each.tag not in _LEFT_OUT and each.tag != f"{_TEXT}note":
            parts.append(_said(each))
        parts.append(each.tail or "")
    return "".join(parts)

"""The formats of Microsoft Office: .docx, .pptx, .xlsx."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Final
from xml.etree.ElementTree import Element

from threefold.extractors.packed import Packed
from threefold.extractors.tables import table

_W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_A: Final = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P: Final = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_S: Final = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_R: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_HEADING: Final = re.compile(r"heading\s*([1-6])|(title)", re.IGNORECASE)
# Columns beyond this are not looked at, nor rows that only say where they would be.
_COLUMNS: Final = 1_000


def writing(packed: Packed) -> Iterator[str]:
    """The paragraphs and tables of a .docx."""
    levels = _heading_styles(packed)
    body = packed.xml("word/document.xml").find(f"{_W}body")
    yield from _written(body if body is not None else Element("body"), levels)


def _written(parent: Element, levels: Mapping[str, int]) -> Iterator[str]:
    for each in parent:
        if each.tag == f"{_W}p":
            yield _paragraph(each, levels)
        elif each.tag == f"{_W}tbl":
            yield table(
                [" ".join(map(_said, cell.iter(f"{_W}p"))) for cell in row.iter(f"{_W}tc")]
                for row in each.iter(f"{_W}tr")
            )
        elif each.tag in (f"{_W}sdt", f"{_W}sdtContent", f"{_W}customXml", f"{_W}ins"):
            yield from _written(each, levels)


def _heading_styles(packed: Packed) -> dict[str, int]:
    """The levels of styles that are headings, by their ids, which differ from language to language."""
    found = {}
    if packed.has("word/styles.xml"):
        for style in packed.xml("word/styles.xml").iter(f"{_W}style"):
            name = style.find(f"{_W}name")
            match = _HEADING.fullmatch("" if name is None else name.get(f"{_W}val", ""))
            if match:
                found[style.get(f"{_W}styleId", "")] = 1 if match[2] else int(match[1])
    return found


def _paragraph(paragraph: Element, levels: Mapping[str, int]) -> str:
    text = _said(paragraph).strip()
    about = paragraph.find(f"{_W}pPr")
    if about is None or not text:
        return text
    style, numbered = about.find(f"{_W}pStyle"), about.find(f"{_W}numPr")
    level = 0 if style is None else levels.get(style.get(f"{_W}val", ""), 0)
    if level:
        return "#" * level + " " + " ".join(text.split())
    return text if numbered is None else f"- {text}"


def _said(paragraph: Element) -> str:
    """The text of a paragraph; what was struck out is in elements of another name."""
    parts = []
    for each in paragraph.iter():
        if each.tag == f"{_W}t":
            parts.append(each.text or "")
        elif each.tag == f"{_W}tab":
            parts.append("\t")
        elif each.tag in (f"{_W}br", f"{_W}cr"):
            parts.append("\n")
    return "".join(parts)


def presentation(packed: Packed) -> Iterator[str]:
    """The slides of a .pptx in order, each under a heading, with its notes."""
    listed = packed.xml("ppt/presentation.xml").iter(f"{_P}sldId")
    targets = _targets(packed, "ppt/presentation.xml")
    for number, slide in enumerate(listed, 1):
        name = targets.get(slide.get(f"{_R}id", ""))
        if name is None or not packed.has(name):
            continue
        root = packed.xml(name)
        title = next((_shown(shape) for shape in root.iter(f"{_P}sp") if _is_title(shape)), "")
        yield f"## {' '.join(title.split()) or f'Slide {number}'}"
        yield from (_shown(shape) for shape in root.iter(f"{_P}sp") if not _is_title(shape))
        for each in root.iter(f"{_A}tbl"):
            yield table([_shown(cell) for cell in row.iter(f"{_A}tc")] for row in each.iter(f"{_A}tr"))
        for target in _targets(packed, name).values():
            if "/notesSlides/" in target and packed.has(target):
                yield from (_shown(shape) for shape in packed.xml(target).iter(f"{_P}sp"))


def _is_title(shape: Element) -> bool:
    holder = shape.find(f".//{_P}ph")
    return holder is not None and holder.get("type") in ("title", "ctrTitle")


def _shown(shape: Element) -> str:
    lines = ("".join(run.text or "" for run in line.iter(f"{_A}t")) for line in shape.iter(f"{_A}p"))
    return "\n".join(line for line in lines if line.strip())


def _targets(packed: Packed, member: str) -> dict[str, str]:
    """What a part refers to, by the ids of the relations."""
    folder, name = posixpath.split(member)
    relations = f"{folder}/_rels/{name}.rels"
    if not packed.has(relations):
        return {}
    return {
        each.get("Id", ""): posixpath.normpath(posixpath.join("/", folder, each.get("Target", ""))).lstrip("/")
        for each in packed.xml(relations)
        if each.get("TargetMode") != "External"
    }


def sheets(packed: Packed) -> Iterator[str]:
    """The sheets of an .xlsx, each a table under a heading; of formulas what they came to."""
    shared = _shared(packed)
    targets = _targets(packed, "xl/workbook.xml")
    for sheet in packed.xml("xl/workbook.xml").iter(f"{_S}sheet"):
        name = targets.get(sheet.get(f"{_R}id", ""))
        if name is not None and packed.has(name):
            yield f"## {' '.join(sheet.get('name', '').split())}"
            yield table(_cells(row, shared) for row in packed.xml(name).iter(f"{_S}row"))


def _shared(packed: Packed) -> list[str]:
    if not packed.has("xl/sharedStrings.xml"):
        return []
    return [_strings(each) for each in packed.xml("xl/sharedStrings.xml").iter(f"{_S}si")]


def _strings(parent: Element) -> str:
    return "".join(each.text or "" for each in parent.iter(f"{_S}t"))


def _cells(row: Element, shared: list[str]) -> list[str]:
    cells: list[str] = []
    for cell in row.iter(f"{_S}c"):
        column = _column(cell.get("r", ""))
        if column is not None and column < _COLUMNS:
            cells += [""] * (column - len(cells))
        value = cell.find(f"{_S}v")
        said = "" if value is None or value.text is None else value.text
        if cell.get("t") == "s" and said:
            said = shared[int(said)]
        elif cell.get("t") == "inlineStr":
            said = _strings(cell)
        elif cell.get("t") == "b":
            said = "TRUE" if said == "1" else "FALSE"
        cells.append(said)
    return cells


def _column(place: str) -> int | None:
    """The number of a cell's column, from 0, such as 27 of `AB12`."""
    number = 0
    for letter in place.rstrip("0123456789")[:4].upper():
        if not "A" <= letter <= "Z":
            return None
        number = 26 * number + ord(letter) - 64
    return number - 1 if number else None

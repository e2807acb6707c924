"""The blocks of a Markdown text: headings, code, tables, lists and paragraphs, each with its place. Pure.

Plain text is Markdown without marks: its paragraphs are parted by blank lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

Kind = Literal["heading", "code", "table", "front", "list", "text"]
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_ATX: Final = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_UNDERLINE: Final = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_ITEM: Final = re.compile(r"\s*(?:[-*+•‣]|\d{1,9}[.)])[ \t]")
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")
_LINK: Final = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_EMPHASIS: Final = re.compile(r"[*`]+|(?<!\w)_+|_+(?!\w)")
_LONGEST_HEADING: Final = 300


class Block(NamedTuple):
    """A block and its place; `level` (1 to 6) and `title` are a heading's."""

    kind: Kind
    start: int
    end: int
    level: int = 0
    title: str = ""


class _Line(NamedTuple):
    start: int
    end: int
    text: str


def blocks(text: str) -> Iterator[Block]:
    """The blocks in order; what lies between them is blank."""
    lines = list(_lines(text))
    place = 0
    if close := _front(lines):
        yield Block("front", lines[0].start, lines[close].end)
        place = close + 1
    while place < len(lines):
        line = lines[place]
        if not line.text.strip():
            place += 1
            continue
        fence, heading = _FENCE.match(line.text), _ATX.match(line.text)
        if fence and not (fence[1][0] == "`" and "`" in line.text[fence.end() :]):
            last = _closing(lines, place, fence[1])
            yield Block("code", line.start, lines[last].end)
            place = last + 1
        elif heading:
            yield Block("heading", line.start, line.end, len(heading[1]), _plain(_unmarked(line.text, heading.end())))
            place += 1
        else:
            last = _paragraph(lines, place)
            yield from _told(lines[place : last + 1])
            place = last + 1


def _lines(text: str) -> Iterator[_Line]:
    for match in _LINE.finditer(text):
        if match.end() > match.start():
            yield _Line(match.start(), match.end(), match[0].rstrip("\r\n"))


def _front(lines: list[_Line]) -> int:
    """The line that closes front matter; 0 where there is none."""
    mark = lines[0].text.rstrip().removeprefix("\ufeff") if lines else ""
    if mark not in ("---", "+++") or len(lines) < 3 or not lines[1].text.strip():
        return 0
    return next((i for i in range(1, len(lines)) if lines[i].text.rstrip() == mark), 0)


def _closing(lines: list[_Line], first: int, fence: str) -> int:
    """The line that closes a fence, or the last one."""
    for i in range(first + 1, len(lines)):
        said = lines[i].text.strip()
        if len(said) >= len(fence) and not said.strip(fence[0]):
            return i
    return len(lines) - 1


def _paragraph(lines: list[_Line], first: int) -> int:
    """The last line of what begins here: before a blank line, a fence or a heading."""
    last = first
    while last + 1 < len(lines):
        following = lines[last + 1].text
        if not following.strip() or _FENCE.match(following) or _ATX.match(following):
            break
        last += 1
        if _is_underline(lines, first, last):
            break
    return last


def _is_underline(lines: list[_Line], first: int, at: int) -> bool:
    """Whether the line makes the one before a heading."""
    above = lines[at - 1].text
    return (
        at > first
        and _UNDERLINE.match(lines[at].text) is not None
        and "|" not in above
        and not _ITEM.match(above)
        and not _UNDERLINE.match(above)
    )


def _told(lines: list[_Line]) -> Iterator[Block]:
    """What lines without a blank one between them are."""
    start, end = lines[0].start, lines[-1].end
    if len(lines) > 1 and _is_underline(lines, 0, len(lines) - 1):
        title = lines[-2]
        if len(title.text) <= _LONGEST_HEADING:
            if len(lines) > 2:
                yield Block("text", start, title.start)
            yield Block("heading", title.start, end, 1 if "=" in lines[-1].text else 2, _plain(title.text))
            return
    if len(lines) > 1 and sum("|" in line.text or "\t" in line.text.strip() for line in lines) >= len(lines) - 1:
        yield Block("table", start, end)
    elif any(_ITEM.match(line.text) for line in lines):
        yield Block("list", start, end)
    else:
        yield Block("text", start, end)


def _unmarked(line: str, start: int) -> str:
    """A heading's line without the signs that make it one."""
    title = line[start:].strip()
    bare = title.rstrip("#")
    return bare.rstrip() if bare != title and (not bare or bare[-1] in " \t") else title


def _plain(title: str) -> str:
    """A heading without marks of Markdown, on one line."""
    title = _LINK.sub(r"\1", title[: 4 * _LONGEST_HEADING])
    return " ".join(_EMPHASIS.sub("", title).split())[:_LONGEST_HEADING]


def is_item(line: str) -> bool:
    """Whether a line begins an item of a list."""
    return _ITEM.match(line) is not None

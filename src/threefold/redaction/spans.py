"""Places in a text: what is private in it, what a detector is shown of it, and what is left in the end. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from threefold.model.redaction import mark
from threefold.redaction.names import PIN, WORD, named

_CHIEF: Final = 9
_TAG: Final = re.compile("(?<!`)<(/?)private>(?!`)", re.IGNORECASE)
_LATIN: Final = re.compile("[À-ÖØ-öø-ʯ]")
_FOREIGN: Final = re.compile(rf"[^\t\n\r -~{WORD}{PIN}]")
_STAND_INS: Final = str.maketrans(WORD + PIN, "  ")
_AFTER: Final = re.compile(r"[,)\]}<>!?*|&]|\.(?=\s|$)|(?<=[\w-]{16}):(?=\s|$)")


class Span(NamedTuple):
    """A place in a text and what is there. Of places that overlap the one with most `weight` says what they are."""

    start: int
    end: int
    kind: str
    weight: int = 0


def replaced(text: str, spans: Iterable[Span]) -> str:
    """`text` with a mark in place of each span; those that overlap are one."""
    parts, done = [], 0
    for start, end, kind in _joined(spans):
        parts += [text[done:start], mark(kind)]
        done = end
    return "".join([*parts, text[done:]])


def _joined(spans: Iterable[Span]) -> Iterator[tuple[int, int, str]]:
    """The spans in order, apart; the heaviest, longest of those that overlap gives its kind."""
    group: list[Span] = []
    end = 0
    for span in [*sorted(spans), None]:
        if group and (span is None or span.start >= end):
            chief = min(group, key=lambda each: (-each.weight, each.start - each.end, each.kind))
            yield group[0].start, end, chief.kind
            group = []
        if span is not None:
            end = max(end, span.end) if group else span.end
            group.append(span)


def private(text: str) -> Iterator[Span]:
    """What stands between `<private>` and `</private>`, the tags included; one in code quotes is only talk."""
    start = end = depth = 0
    for tag in _TAG.finditer(text):
        if not tag[1]:
            start = start if depth else tag.start()
            depth += 1
        elif depth:
            depth, end = depth - 1, tag.end()
            if not depth:
                yield Span(start, end, "private", _CHIEF)
    if depth and end > start:
        yield Span(start, end, "private", _CHIEF)


def views(text: str) -> tuple[str, ...]:
    """`text` as it is shown to a detector of ASCII: characters stand where they stood.

    Other scripts become blanks, since a secret ends where they begin; letters of the Latin script belong to a word. In
    further views names of secrets have stand-ins; and of each there is one without signs that a sentence puts after a
    word.
    """
    text = text.translate(_STAND_INS)
    found: dict[str, None] = {}
    for shown in dict.fromkeys((text, named(text))):
        plain = _FOREIGN.sub(" ", shown if shown.isascii() else _LATIN.sub("x", shown))
        found.update(dict.fromkeys((plain, _AFTER.sub(" ", plain))))
    return tuple(found)

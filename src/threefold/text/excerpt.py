"""Excerpts: the part of a text that matched, and where the matching words are in it, as they were written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from threefold.text.patterns import ASCII_PIECE, patterns
from threefold.text.runs import placed
from threefold.text.terms import WILDCARD, piece_terms

EXCERPT_SIZE = 300
_ELLIPSIS = "…"
# Of a longer text no more is looked through for matches.
_LOOKED_AT = 200_000


class Excerpt(NamedTuple):
    """`text` is at most about `size` characters; `matches` are (start, end) offsets of matching words in it."""

    text: str
    matches: tuple[tuple[int, int], ...] = ()


def excerpt(text: str, terms: Sequence[str], size: int = EXCERPT_SIZE) -> Excerpt:
    """Cut the window of `text` that holds the most distinct `terms` (the earliest of equals).

    Without a match it is the beginning. Where the window is not the whole text an ellipsis says so.
    """
    return Matched(text, tuple(terms)).excerpt(size)


class Matched:
    """A text with the places where it matches, for several windows of it."""

    def __init__(self, text: str, terms: tuple[str, ...]) -> None:
        self.text = text
        self._spans = _matching_spans(text[:_LOOKED_AT], terms)

    def excerpt(self, size: int) -> Excerpt:
        """As `excerpt`."""
        return _cut(self.text, self._spans, size)


def _cut(text: str, spans: Sequence[tuple[int, int, str]], size: int) -> Excerpt:
    start, end = _window(text, spans, size)
    head, tail = _ELLIPSIS if start else "", _ELLIPSIS if end < len(text) else ""
    shift = len(head) - start
    inside = ((s + shift, e + shift) for s, e, _ in spans if s >= start and e <= end)
    return Excerpt(head + text[start:end] + tail, tuple(_joined(inside)))


def _matching_spans(text: str, terms: tuple[str, ...]) -> Sequence[tuple[int, int, str]]:
    """(start, end, term) of each piece that has one of `terms`, by the first that it has."""
    exact = {t for t in terms if not t.endswith(WILDCARD)}
    begins = tuple(t[:-1] for t in terms if t.endswith(WILDCARD))

    def first(found: Iterable[str]) -> str | None:
        return next((t for t in found if t in exact or t.startswith(begins)), None)

    known = _known(terms)
    spans = []
    for match in (ASCII_PIECE if text.isascii() else patterns(text).piece).finditer(text):
        piece = match[0]
        if match.lastgroup == "run":
            spans += [span for span in placed(piece, match.start()) if first(span[2:]) is not None]
            continue
        if piece not in known:
            known[piece] = first(piece_terms(piece))
        term = known[piece]
        if term is not None:
            spans.append((match.start(), match.end(), term))
    return tuple(spans)


@lru_cache(4)
def _known(terms: tuple[str, ...]) -> dict[str, str | None]:  # noqa: ARG001 - what it is remembered by
    """Which of the terms each word has: most are said again, in a text and in others, and looked at once."""
    return {}


def _window(text: str, spans: Sequence[tuple[int, int, str]], size: int) -> tuple[int, int]:
    if len(text) <= size:
        return 0, len(text)
    best, at, first = 0, 0, 0
    seen: dict[str, int] = {}
    for start, end, term in spans:
        seen[term] = seen.get(term, 0) + 1
        while spans[first][0] < start and end - spans[first][0] > size:
            seen[spans[first][2]] -= 1
            if not seen[spans[first][2]]:
                del seen[spans[first][2]]
            first += 1
        if len(seen) > best:
            best, at = len(seen), (spans[first][0] + end) // 2
    start = max(0, min(at - size // 2, len(text) - size)) if best else 0
    return _to_words(text, start, start + size)


def _to_words(text: str, start: int, end: int, reach: int = 20) -> tuple[int, int]:
    """Move both ends inwards to a blank, if one is near; scripts without blanks are cut where they are."""
    if start > 0 and not text[start - 1].isspace():
        blank = text.find(" ", start, start + reach)
        start = blank + 1 if blank >= 0 else start
    if end < len(text) and not text[end].isspace():
        blank = text.rfind(" ", end - reach, end)
        end = blank if blank >= 0 else end
    return start, end


def _joined(spans: Iterable[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    """Merge spans that touch or overlap, as the pairs of a run do."""
    current: tuple[int, int] | None = None
    for start, end in spans:
        if current and start <= current[1]:
            current = (current[0], max(current[1], end))
        else:
            if current:
                yield current
            current = (start, end)
    if current:
        yield current

"""Putting as much between two cuts as fits, by counting. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from threefold.text.chunking.graphemes import cut_near, may_cut

Cuts = Callable[[int, int], Sequence[int]]
# Before blanks, as tokenizers cut; behind marks of scripts without blanks.
_WORD: Final = re.compile(r"(?<=\S)\s+|(?<=[、，；：・])(?=\S)")
# What is shorter than such a share of the limit is put to its neighbour, where both fit.
_CRUMB: Final = 4


class Body(NamedTuple):
    """A range of the text without blanks around it."""

    start: int
    end: int


class Filled(NamedTuple):
    """A chunk's range and tokens; `body` is where it begins without what it has of the one before."""

    start: int
    end: int
    tokens: int
    body: int


class Filler:
    """Cuts one text. A body has at most `most` tokens, a chunk with its overlap at most `limit`."""

    def __init__(self, text: str, most: int, limit: int, overlap: int, count: Callable[[str], int]) -> None:
        self._text, self._most, self._limit, self._overlap = text, most, limit, overlap
        self._count = count

    def size(self, start: int, end: int) -> int:
        """The tokens of a range without the blanks around it."""
        body = self._trimmed(start, end)
        return self._count(self._text[body.start : body.end])

    def divide(self, levels: Sequence[Cuts]) -> list[Body]:
        """The text as bodies, cut at the first of `levels` that makes them fit."""
        found = self._divided(0, len(self._text), [*levels, self._words])
        return self._without_crumbs(body for body in found if body.end > body.start)

    def _divided(self, start: int, end: int, levels: Sequence[Cuts]) -> Iterator[Body]:
        if self.size(start, end) <= self._most:
            yield self._trimmed(start, end)
            return
        found = next(((cuts, depth) for depth, level in enumerate(levels, 1) if (cuts := level(start, end))), None)
        if found is None:
            yield from self._by_characters(start, end)
            return
        cuts, depth = found
        run = start
        for first, last in pairwise([start, *cuts, end]):
            # Most are far too small to be worth counting: a token is seldom less than a byte.
            if last - first > self._most // 4 and self.size(first, last) > self._most:
                yield from self._filled(run, first, cuts)
                yield from self._divided(first, last, levels[depth:])
                run = last
        yield from self._filled(run, end, cuts)

    def _filled(self, start: int, end: int, cuts: Sequence[int]) -> Iterator[Body]:
        """A range whose parts fit, as many of them in a body as it takes."""
        while start < end:
            at = self._farthest(start, end, cuts)
            yield self._trimmed(start, at)
            start = at

    def _farthest(self, start: int, end: int, cuts: Sequence[int]) -> int:
        """The last cut, or the end, that leaves at most as many tokens before it as a body has."""
        first, stop = bisect_right(cuts, start), bisect_left(cuts, end)

        def fits(place: int) -> bool:
            return self.size(start, cuts[place] if place < stop else end) <= self._most

        # Looked for in longer and longer strides, so that nothing far longer than a body is counted.
        stride = 1
        while first + stride <= stop and fits(first + stride):
            stride *= 2
        low, high = first + stride // 2, min(first + stride, stop + 1)
        while low + 1 < high:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return cuts[low] if low < stop else end

    def _words(self, start: int, end: int) -> list[int]:
        return [match.start() for match in _WORD.finditer(self._text, start, end) if start < match.start() < end]

    def _by_characters(self, start: int, end: int) -> Iterator[Body]:
        """A range without a border in it, cut between characters."""
        while start < end:
            at = self._most_characters(start, end)
            yield self._trimmed(start, at)
            start = at

    def _most_characters(self, start: int, end: int) -> int:
        low, high = start + 1, min(end, start + 32 * self._most)
        while low < high:
            middle = (low + high + 1) // 2
            if self.size(start, middle) <= self._most:
                low = middle
            else:
                high = middle - 1
        at = low if low == end else cut_near(self._text, start, low)
        return max(at, start + 1)

    def _trimmed(self, start: int, end: int) -> Body:
        """Without blanks around it; the first line stays indented."""
        while end > start and self._text[end - 1].isspace():
            end -= 1
        first = start
        while first < end and self._text[first].isspace():
            first += 1
        before = max(start - 1, 0)
        line = max(self._text.rfind("\n", before, first), self._text.rfind("\r", before, first)) + 1
        if line > 0 or start == 0:
            first = max(line, start)
        return Body(first, max(first, end))

    def _without_crumbs(self, found: Iterator[Body]) -> list[Body]:
        """The bodies, with those that are very short put to the one before or behind where both fit."""
        kept: list[Body] = []
        for body in found:
            if kept and self._joins(kept[-1], body):
                kept[-1] = Body(kept[-1].start, body.end)
            else:
                kept.append(body)
        return kept

    def _joins(self, one: Body, other: Body) -> bool:
        least = self._most // _CRUMB
        if self.size(*one) >= least and self.size(*other) >= least:
            return False
        return self.size(one.start, other.end) <= self._most

    def overlapped(self, bodies: Sequence[Body], headings: Sequence[int], sentences: Cuts) -> Iterator[Filled]:
        """The bodies, each with the end of the one before."""
        for number, body in enumerate(bodies):
            start = body.start
            if number and self._overlap:
                start = self._earlier(bodies[number - 1], body, headings, sentences)
            tokens = self._count(self._text[start : body.end])
            if tokens > self._limit:
                start, tokens = body.start, self._count(self._text[body.start : body.end])
            yield Filled(start, body.end, tokens, body.start)

    def _earlier(self, before: Body, body: Body, headings: Sequence[int], sentences: Cuts) -> int:
        """Where a chunk begins that has the end of the body before too."""
        place = bisect_left(headings, body.start)
        if place < len(headings) and headings[place] == body.start:
            return body.start
        for cuts in (sentences(before.start, body.start), self._words(before.start, before.end)):
            for cut in cuts[-self._overlap :]:
                start = self._trimmed(cut, body.start).start
                if before.start < start < body.start and self.size(start, body.start) <= self._overlap:
                    return start
        return self._characters_before(before, body)

    def _characters_before(self, before: Body, body: Body) -> int:
        """As much of a text without borders as is wanted."""
        low, high = max(before.start + 1, body.start - 8 * self._overlap), body.start
        while low < high:
            middle = (low + high) // 2
            if self.size(middle, body.start) <= self._overlap:
                high = middle
            else:
                low = middle + 1
        while low < body.start and not may_cut(self._text, low):
            low += 1
        return low

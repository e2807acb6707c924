"""From a text to its chunks: which places it may be cut at, the best first, and what it stands under there. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from threefold.model.document import Strategy
from threefold.text.chunking.blocks import Block, blocks, is_item
from threefold.text.chunking.filling import Filler
from threefold.text.sentences import sentence_spans
from threefold.text.tokens import count_tokens

Cuts = Callable[[int, int], Sequence[int]]
# Headings go from 1 to 6.
_LEVELS: Final = range(1, 7)


class Chunk(NamedTuple):
    """`text[start:end]`, whose `tokens` are counted, under these headings, the outermost first.

    Where it goes over several headings, they are those that all of it stands under.
    """

    start: int
    end: int
    tokens: int
    headings: tuple[str, ...] = ()


def chunk(
    text: str,
    strategy: Strategy = "recursive",
    tokens: int = 512,
    overlap: int = 50,
    count: Callable[[str], int] = count_tokens,
) -> list[Chunk]:
    """The chunks of a text, in order; together they hold all of it but blanks between them.

    No chunk has more than `tokens` tokens, by `count`, but where a single character has. A chunk begins with up to
    `overlap` tokens of the one before: whole sentences, else words; not behind a heading. `overlap` is less than
    `tokens`.
    """
    found = list(blocks(text))
    outline = _Outline(found)
    filler = Filler(text, tokens - overlap, tokens, overlap, count)
    bodies = filler.divide(_levels(text, found, strategy))
    return [
        Chunk(start, end, size, outline.headings(body, end))
        for start, end, size, body in filler.overlapped(bodies, outline.starts, lambda a, b: sentence_cuts(text, a, b))
    ]


def _levels(text: str, found: Sequence[Block], strategy: Strategy) -> list[Cuts]:
    """The kinds of places where a strategy cuts, the best first; words and characters come after all."""
    ends = [block.end for block in found]
    lines = _inner_lines(text, found)
    sentences = _sentences(text, found, lines)
    if strategy == "fixed":
        return []
    if strategy == "sentence":
        return [_within(sorted({*sentences, *ends}))]
    borders = [block.start for block, above in zip(found[1:], found, strict=False) if above.kind != "heading"]
    paragraphs = [_within(borders), _within(lines), _within(sentences)]
    if strategy == "paragraph":
        return paragraphs
    headings = [_within([b.start for b in found if b.kind == "heading" and b.level == level]) for level in _LEVELS]
    return [*headings, *paragraphs]


def _within(cuts: Sequence[int]) -> Cuts:
    """The cuts inside a range; `cuts` are in order."""
    return lambda start, end: cuts[bisect_right(cuts, start) : bisect_left(cuts, end)]


def _inner_lines(text: str, found: Sequence[Block]) -> list[int]:
    """Lines within code and tables, and items of lists, where these begin."""
    cuts = []
    for block in found:
        if block.kind in ("code", "table", "front", "list"):
            at = block.start
            while (at := text.find("\n", at, block.end - 1) + 1) > 0:
                if block.kind != "list" or is_item(text[at : at + 40].partition("\n")[0]):
                    cuts.append(at)
    return cuts


def _sentences(text: str, found: Sequence[Block], lines: Sequence[int]) -> list[int]:
    """Ends of sentences within paragraphs and lists; where lines begin elsewhere."""
    cuts = list(lines)
    for block in found:
        if block.kind in ("text", "list"):
            cuts += sentence_cuts(text, block.start, block.end)
    return sorted(set(cuts))


def sentence_cuts(text: str, start: int, end: int) -> list[int]:
    """Places in (start, end) right behind a sentence."""
    said = text[start:end]
    spans = sentence_spans(said, longest=max(len(said), 1))
    return [start + len(said[:stop].rstrip()) for _, stop in spans[:-1] if said[:stop].strip()]


class _Outline:
    """Where headings stand, and what they stand under."""

    def __init__(self, found: Sequence[Block]) -> None:
        self.starts: list[int] = []
        self._paths: list[tuple[str, ...]] = []
        for start, path in _paths(found):
            self.starts.append(start)
            self._paths.append(path)

    def headings(self, start: int, end: int) -> tuple[str, ...]:
        """The headings that all of a range stands under."""
        first, last = bisect_right(self.starts, start) - 1, bisect_left(self.starts, end)
        paths = self._paths[max(first, 0) : last] if first >= 0 or last else []
        if first < 0 or not paths:
            return ()
        common = paths[0]
        for path in paths[1:]:
            same = next((i for i, pair in enumerate(zip(common, path, strict=False)) if pair[0] != pair[1]),
                        min(len(common), len(path)))  # fmt: skip
            common = common[:same]
        return tuple(title for title in common if title)


def _paths(found: Sequence[Block]) -> list[tuple[int, tuple[str, ...]]]:
    """Each heading's place with the headings it stands under and itself.

    Under a heading that a deeper one follows at once nothing stands: it is where that one is.
    """
    stack: list[Block] = []
    paths: list[tuple[int, tuple[str, ...]]] = []
    for block in found:
        if block.kind == "heading":
            while stack and stack[-1].level >= block.level:
                stack.pop()
            stack.append(block)
            paths.append((block.start, tuple(each.title for each in stack)))
    after = {block.start: following for block, following in pairwise(found) if following.kind == "heading"}
    for i in range(len(paths) - 2, -1, -1):
        (start, path), (following, deeper) = paths[i], paths[i + 1]
        if start in after and after[start].start == following and deeper[: len(path)] == path:
            paths[i] = start, deeper
    return paths

"""Chunks of any text: parts of it exactly, in order, all of it, none too long, however it is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threefold.model.document import STRATEGIES
from threefold.text.chunking import chunk
from threefold.text.chunking.blocks import blocks
from threefold.text.chunking.graphemes import may_cut
from threefold.text.tokens import count_tokens

PIECES = (
    "# One\n", "## Two\n", "Three\n===\n", "\n\n", "\n", "\r\n", "```\n# no heading\n\ncode\n```\n", "| a | b |\n",
    "| - | - |\n", "- item\n", "1. first\n", "A sentence. ", "Dr. Who said 3.14, e.g. this. ", "Is it? ", "   ", "\t",
    "一句话。", "日本語の文章です。", "ประโยคภาษาไทย", "نعم؟ ", "यह वाक्य है। ", "👩‍👩‍👧‍👦", "🇩🇪🇫🇷",
    "e\u0301", "क्षि", "각",
    "---\ntitle: x\n---\n", "x" * 40, "word " * 12, "\u2028", "\ufeff", "\x00",
)  # fmt: skip
texts = st.one_of(st.text(max_size=400), st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
sizes = st.integers(4, 60)


@given(texts, st.sampled_from(STRATEGIES), sizes, st.data())
def test_chunks_are_the_text(text: str, strategy, size: int, data) -> None:
    overlap = data.draw(st.integers(0, size // 2))
    found = chunk(text, strategy, size, overlap)
    covered, before = 0, None
    for each in found:
        part = text[each.start : each.end]
        assert part.strip()
        assert each.tokens == count_tokens(part)
        # A single character may have more.
        assert each.tokens <= size or len(part.strip()) == 1
        assert not text[covered : each.start].strip()
        if before is not None:
            assert before.start < each.start
            assert before.end < each.end
            assert count_tokens(text[each.start : before.end].strip()) <= overlap + 1
        covered, before = each.end, each
    assert not text[covered:].strip()
    assert found == chunk(text, strategy, size, overlap)


@given(texts)
def test_blocks_are_in_order_and_leave_out_only_blanks(text: str) -> None:
    place = 0
    for block in blocks(text):
        assert place <= block.start < block.end
        assert not text[place : block.start].strip("\r\n \t\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u2028\u2029").strip()
        place = block.end
    assert not text[place:].strip()


@given(
    st.lists(
        st.sampled_from(("👩‍👩‍👧‍👦", "🇩🇪", "e\u0301\u0323", "क्षि", "각", "\r\n", "ก็", "👍🏽")),
        min_size=30,
        max_size=200,
    )
)
def test_no_character_is_taken_apart_where_there_is_another_place(characters: list[str]) -> None:
    text = "".join(characters)
    for each in chunk(text, "fixed", 40, 0):
        assert may_cut(text, each.end)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_chunk_is_too_long_in_any_language(strategy) -> None:
    for text in ("吃" * 5_000, "日本語の文章です。" * 500, "ภาษาไทย" * 900, "x" * 100_000, "👩‍👩‍👧‍👦" * 500,
                 "a\u0301" * 2_000,
                 "word " * 5_000, "One. " * 5_000, "| a | b |\n" * 2_000, "\u0301" * 3_000):  # fmt: skip
        found = chunk(text, strategy)
        assert max(each.tokens for each in found) <= 512

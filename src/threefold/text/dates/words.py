"""The words of dates: how a text is cut for them, and the table of what they say."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from threefold.text.fold import fold

NUMBER = "#"
FILE = Path(__file__).with_name("date_words.json")
_LONGEST_NUMBER = 4

# Scripts without spaces between words, and Hangul, whose particles follow without one: each character is a token.
_RUN = "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff"
_ASCII_STOPS = r"\s\d!-/:-@\[-`{-~"
_STOPS = "¡-©«-´¶-¹»-¿\u055a-\u055f\u05be\u05f3\u05f4\u060c\u061b\u061f\u066a-\u066d\u0964\u0965"
_STOPS += "\u2010-\u206f\u20a0-\u20cf\u3000-\u3004\u3008-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
_ASCII_TOKEN = re.compile(f"(?P<number>\\d+)|(?P<word>[^{_ASCII_STOPS}]+)|[^\\s]")
# Prefixed prepositions and articles of Hebrew and Arabic.
_PREFIXED = re.compile(
    "[\u05d1\u05d4\u05d5\u05dc\u05de](?=[\u05d0-\u05ea]{3})|(?:وال|بال|وب|[وبلف])(?=[\u0621-\u064a]{3})"
)
_SAME = {"’": "'", "‘": "'", "ʼ": "'", "–": "-", "—": "-", "‑": "-", "‐": "-", "،": ","}


class Tokens(NamedTuple):
    """The tokens of a text: `words` folded, with `#` for figures; `values` of figures; `found` where they are."""

    words: list[str]
    values: list[int | None]
    found: list[re.Match[str]]


def tokens(text: str) -> Tokens:
    """Cut `text` into words, figures, signs and single characters of scripts without spaces."""
    found = list((_ASCII_TOKEN if text.isascii() else _token()).finditer(text))
    words: list[str] = []
    values: list[int | None] = []
    for match in found:
        kind, token, value = match.lastgroup, match[0], None
        if kind == "number":
            value = int(token) if len(token) <= _LONGEST_NUMBER else None
            token = NUMBER if value is not None else "0"
        elif kind:
            token = token.lower() if token.isascii() else fold(token)
        else:
            token = _SAME.get(token, token)
        words.append(token)
        values.append(value)
    return Tokens(words, values, found)


@cache
def _token() -> re.Pattern[str]:
    # Compiled when the first text beyond ASCII turns up: with classes so large it takes long.
    return re.compile(f"(?P<number>\\d+)|(?P<run>[{_RUN}])|(?P<word>[^{_ASCII_STOPS}{_STOPS}{_RUN}]+)|[^\\s]")


def bare(word: str) -> str | None:
    """A Hebrew or Arabic word without the preposition or article that is written with it."""
    match = _PREFIXED.match(word)
    return word[match.end() :] if match else None


Meaning = tuple[str, int]


class Table(NamedTuple):
    """What words say of dates.

    `phrases` maps tokens joined by a space to a kind and a value (`KINDS` in `reading`), `lengths` the first token of
    phrases to how many tokens they have, longest first; `numbers` maps number words to values, 0 for "a few".
    """

    phrases: Mapping[str, Meaning]
    lengths: Mapping[str, tuple[int, ...]]
    numbers: Mapping[str, int]
    evidence: Mapping[str, frozenset[str]]
    context: Mapping[str, frozenset[str]]
    sets: Mapping[str, frozenset[str]]


@cache
def table() -> Table:
    """The table, read from its file when it is first needed."""
    data: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    phrases: dict[str, Meaning] = {}
    for code, known in data["phrases"].items():
        cut = 2 if code[0] in "rgz" else 1
        phrases |= dict.fromkeys(known.split("|"), (code[:cut], int(code[cut:])))
    lengths: dict[str, tuple[int, ...]] = {}
    for sizes, first in data["lengths"].items():
        lengths |= dict.fromkeys(first.split(), tuple(map(int, sizes.split())))
    return Table(
        phrases,
        lengths,
        {word: int(value) for value, known in data["numbers"].items() for word in known.split("|")},
        {word: frozenset(known.split()) for word, known in data["evidence"].items()},
        {word: frozenset(known.split()) for word, known in data["context"].items()},
        {name: frozenset(known.split()) for name, known in data["sets"].items()},
    )

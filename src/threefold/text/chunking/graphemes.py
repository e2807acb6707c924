"""Where a text may be cut without taking apart what is seen as one character. Pure.

A shortened form of Unicode's rules (UAX #29): enough for accents, vowel signs, conjuncts, Hangul, flags and emoji.
"""

from __future__ import annotations

import unicodedata
from typing import Final

_JOINER: Final = "\u200d"
# Marks (vowel signs, accents), and what only changes what stands before.
_MARKS: Final = frozenset({"Mn", "Mc", "Me"})
_EXTENDING: Final = frozenset({"\u200c", _JOINER, "\uff9e", "\uff9f", "\u0e33", "\u0eb3"})
_VIRAMA: Final = 9
# Further back than this no sequence is followed; longer runs of marks are cut somewhere.
_REACH: Final = 64


def may_cut(text: str, at: int) -> bool:
    """Whether the text may be cut before the character at `at`."""
    if at <= 0 or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if before < "\u0300" and after < "\u0300":
        return not (before == "\r" and after == "\n")
    if _extends(after) or before == _JOINER:
        return False
    if unicodedata.combining(before) == _VIRAMA and unicodedata.category(after) == "Lo":
        return False
    if _is_flag(before) and _is_flag(after):
        return _flags_before(text, at) % 2 == 0
    return not _one_syllable(before, after)


def cut_near(text: str, start: int, at: int) -> int:
    """The last place in (start, at] where the text may be cut; `at` where there is none within reach."""
    for place in range(at, max(start, at - _REACH), -1):
        if may_cut(text, place):
            return place
    return at


def _extends(character: str) -> bool:
    if character in _EXTENDING or unicodedata.category(character) in _MARKS:
        return True
    code = ord(character)
    # Skin tones and the tags of flags of regions.
    return 0x1F3FB <= code <= 0x1F3FF or 0xE0020 <= code <= 0xE007F


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flags_before(text: str, at: int) -> int:
    start = at
    while start > 0 and at - start < _REACH and _is_flag(text[start - 1]):
        start -= 1
    return at - start


def _one_syllable(before: str, after: str) -> bool:
    """Hangul that is written in parts: leading consonants, vowels, trailing consonants."""
    first, second = _hangul(before), _hangul(after)
    return (first, second) in {("L", "L"), ("L", "V"), ("L", "S"), ("V", "V"), ("V", "T"), ("S", "V"), ("S", "T"),
                               ("T", "T")}  # fmt: skip


def _hangul(character: str) -> str:
    code = ord(character)
    if 0x1100 <= code <= 0x115F or 0xA960 <= code <= 0xA97C:
        return "L"
    if 0x1160 <= code <= 0x11A7 or 0xD7B0 <= code <= 0xD7C6:
        return "V"
    if 0x11A8 <= code <= 0x11FF or 0xD7CB <= code <= 0xD7FB:
        return "T"
    return "S" if 0xAC00 <= code <= 0xD7A3 else ""

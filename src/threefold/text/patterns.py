"""Which characters make a word, and which scripts are written without spaces: the patterns that cut a text."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

# Invisible characters that change how text is shown, not what it says: soft hyphen, joiners, marks of direction, breaks
# between words of Thai and Khmer, variation selectors (Default_Ignorable_Code_Point of Unicode, without fillers).
IGNORED = (
    "\u00ad\u034f\u061c\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e0fff"
)
# Marks that are optional in writing: Latin, Greek and Cyrillic accents, Hebrew and Arabic pointing. The vowel signs of
# Indic scripts are marks too, but they are letters to a reader.
OPTIONAL_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06ed"
)
HAN = "\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U000323af"
# Scripts that do not put spaces between words: Thai, Lao, Tibetan, Myanmar, Khmer (without their digits, which make
# numbers), Han, Kana, Hangul, their squared and enclosed forms, and extensions.
RUN = (
    "\u0e00-\u0e4f\u0e5a-\u0ecf\u0eda-\u0f1f\u0f34-\u103f\u104a-\u108f\u109a-\u109f\u1100-\u11ff\u1780-\u17df"
    "\u17ea-\u17ff\u2e80-\u2fff\u3005-\u3007\u3021-\u3029\u3031-\u303f\u3041-\u30ff\u3105-\u318f\u31a0-\u31bf"
    "\u31f0-\u31ff\u3200-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
# Indic blocks whole: their vowel signs are no letters to `\w`.
_INDIC = "\u0900-\u0963\u0966-\u0dff"
# Letters to `\w`, but written for an apostrophe (п’ять, пʼять).
APOSTROPHES = "'’‘＇\u02bb\u02bc"
# What joins the parts of a compound, and the same as it is to be read: hyphens, full-width forms.
_JOINERS = "-._/\\:@&+"
JOINERS = str.maketrans("\u2010\u2011\u05be－．＿／＼：＠＆＋", "---" + _JOINERS)
_JOINER = f"[{re.escape(_JOINERS)}{''.join(map(chr, JOINERS))}{APOSTROPHES}]"
# Flags are two letters, an emoji may have a colour of skin.
_SYMBOL = (
    "[\U0001f1e6-\U0001f1ff]{2}|[\u2190-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff]"
    "[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]*"
)

# Text of ASCII has neither runs nor symbols: the same pieces and parts, told in fewer words.
ASCII_PIECE = re.compile(r"\w+(?:[-._/\\:@&'+]+\w+)*(?:\+\+|#(?!\w))?", re.ASCII)
ASCII_PARTS = re.compile(r"\w+(?:\+\+|#(?!\w))?", re.ASCII)
# Most text beyond ASCII has no runs: letters that stand before Thai, punctuation and other signs, emoji.
WITHOUT_RUNS = re.compile("[\0-\u0dff\u2000-\u2bff\U0001f000-\U0001faff]*")
# A Latin letter with a mark, or one that English lacks. With case ignored, ſ and ı would let s and i in.
ACCENTED = re.compile("[\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]|[A-Za-z][\u0300-\u036f]")


class Patterns(NamedTuple):
    """How a text is cut: its pieces, and the parts of a word."""

    piece: re.Pattern[str]
    parts: re.Pattern[str]


def patterns(text: str) -> Patterns:
    """The patterns that cut `text`; where it has no runs, they know none."""
    return _patterns("" if WITHOUT_RUNS.fullmatch(text) else RUN)


@cache
def _patterns(runs: str) -> Patterns:
    # Compiled when they are needed: with a class as large as that of runs it takes long.
    letters, marks = f"[^\\W{runs}{APOSTROPHES}]", f"{OPTIONAL_MARKS}{_INDIC}"
    # Atomic groups: the two classes overlap, and a long word must not be tried in every division.
    word = f"(?>{letters}+|[{marks}]+)(?>{letters}+|[{marks}{IGNORED}]+)*"
    end = f"(?:[+＋]{{2}}|[#＃](?!{letters}))"
    pieces = f"(?P<word>{word}(?:{_JOINER}+{word})*{end}?)|(?P<symbol>{_SYMBOL})"
    if runs:
        pieces = f"(?P<run>[{runs}][{runs}{IGNORED}]*)|{pieces}"
    return Patterns(re.compile(pieces), re.compile(f"{word}{end}?"))

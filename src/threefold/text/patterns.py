"""Which characters make a word, and which scripts are written without spaces: the patterns that cut a text."""

from __future__ import annotations

import re

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
# Atomic groups: the two classes overlap, and a long word must not be tried in every division.
_LETTERS = f"[^\\W{RUN}{APOSTROPHES}]"
_WORD = f"(?>{_LETTERS}+|[{OPTIONAL_MARKS}{_INDIC}]+)(?>{_LETTERS}+|[{OPTIONAL_MARKS}{_INDIC}{IGNORED}]+)*"
_JOINER = f"[{re.escape(_JOINERS)}{''.join(map(chr, JOINERS))}{APOSTROPHES}]"
_END = f"(?:[+＋]{{2}}|[#＃](?!{_LETTERS}))"
# Flags are two letters, an emoji may have a colour of skin.
_SYMBOL = (
    "[\U0001f1e6-\U0001f1ff]{2}|[\u2190-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff]"
    "[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]*"
)

PIECE = re.compile(
    f"(?P<run>[{RUN}][{RUN}{IGNORED}]*)|(?P<word>{_WORD}(?:{_JOINER}+{_WORD})*{_END}?)|(?P<symbol>{_SYMBOL})"
)
ASCII_PIECE = re.compile(r"\w+(?:[-._/\\:@&'+]+\w+)*(?:\+\+|#(?!\w))?", re.ASCII)
PARTS = re.compile(f"{_WORD}{_END}?")
# A Latin letter with a mark, or one that English lacks. With case ignored, ſ and ı would let s and i in.
ACCENTED = re.compile("[\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]|[A-Za-z][\u0300-\u036f]")

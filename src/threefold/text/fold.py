"""Folding: spellings that a reader takes for the same word become the same string.

Applied alike to what is stored and to what is asked, so both meet. The text itself is always shown as it was written.
"""

from __future__ import annotations

import re
import unicodedata

# Letters that Unicode does not decompose though readers type them without the stroke or ligature.
_LETTERS = str.maketrans(
    {
        "ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th",
        "ى": "ي", "ة": "ه", "ک": "ك", "ی": "ي",
        "ـ": None, "\u200c": None, "\u200d": None, "\u00ad": None,
        "\u093c": None, "\u09bc": None, "\u0a3c": None, "\u0abc": None, "\u0b3c": None,
    }
)  # fmt: skip
# Marks that are optional in writing: Latin, Greek and Cyrillic accents, Hebrew and Arabic pointing. The vowel signs of
# Indic scripts are marks too, but they are letters to a reader, so only the nukta goes (above).
_OPTIONAL_MARKS = re.compile("[\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed]")


def fold(word: str) -> str:
    """The spelling that `word` is indexed and asked under: compatibility forms, case, optional marks folded.

    White space that a compatibility form brings along (`ﷺ` is four words) goes: a term has none.
    """
    if word.isascii():
        return word.lower()
    word = unicodedata.normalize("NFKC", word).casefold()
    word = _OPTIONAL_MARKS.sub("", unicodedata.normalize("NFD", word)).translate(_LETTERS)
    return unicodedata.normalize("NFC", "".join(word.split()))

"""Folding: spellings that a reader takes for the same word become the same string.

Applied alike to what is stored and to what is asked, so both meet. The text itself is always shown as it was written.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from threefold.text.patterns import HAN, IGNORED, OPTIONAL_MARKS, WITHOUT_RUNS
from threefold.text.tables import han, one_script

# What Unicode does not decompose though readers take it for the same: Latin letters with a stroke, ligatures; Arabic
# letters in the shapes of Persian, Urdu and Uighur (as Lucene's ArabicNormalizer and PersianNormalizer have them);
# Hebrew final letters; the chillus of Malayalam, khanda ta and candrabindu (IndicNormalizer, HindiNormalizer). Tatweel
# and the nukta go.
_LETTERS = str.maketrans(
    {
        "ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ŧ": "t", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th",
        "ٱ": "ا", "ى": "ي", "ی": "ي", "ے": "ي", "ې": "ي", "ک": "ك", "ة": "ه", "ہ": "ه", "ۃ": "ه", "ە": "ه", "ھ": "ه",
        "ך": "כ", "ם": "מ", "ן": "נ", "ף": "פ", "ץ": "צ",
        "ൺ": "ണ്", "ൻ": "ന്", "ർ": "ര്", "ൽ": "ല്", "ൾ": "ള്", "ൿ": "ക്", "ৎ": "ত্",
        "\u0901": "\u0902", "\u0981": "\u0982", "\u0a81": "\u0a82",
        "ـ": None,
        "\u093c": None, "\u09bc": None, "\u0a3c": None, "\u0abc": None, "\u0b3c": None, "\u0c3c": None, "\u0cbc": None,
    }
)  # fmt: skip
# Katakana is read as hiragana: foreign words, emphasis and names are written in either.
_LETTERS |= {code: code - 0x60 for code in (*range(0x30A1, 0x30F7), 0x30FD, 0x30FE)}
# The breve of й stays: that is a letter of its own, and Russian endings are told by it. Colours of skin go.
_DROPPED = re.compile(f"(?!(?<=и)\u0306)[{OPTIONAL_MARKS}{IGNORED}\U0001f3fb-\U0001f3ff]")
_DIGIT = re.compile(r"(?![0-9])\d")
# The mark of Thai and Lao sara am may be typed before or after that of the tone.
_AM_AFTER_TONE = re.compile("([\u0e48-\u0e4b\u0ec8-\u0ecb])([\u0e4d\u0ecd])")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})
_UMLAUT = re.compile("[äöüÄÖÜ]")


def fold(word: str) -> str:
    """The spelling that `word` is indexed and asked under.

    Compatibility forms, case, optional marks, invisible characters, digits, look-alikes of another script, traditional
    Chinese. White space that a compatibility form brings along (`ﷺ` is four words) goes: a term has none.
    """
    if word.isascii():
        return word.lower()
    word = compatible(word).casefold()
    if word.isascii():
        return "".join(word.split())
    word = _DROPPED.sub("", unicodedata.normalize("NFD", word))
    has_han = not WITHOUT_RUNS.fullmatch(word) and _han().search(word)
    word = word.translate(_letters_and_han() if has_han else _LETTERS)
    word = _AM_AFTER_TONE.sub(r"\2\1", word)
    return one_script(unicodedata.normalize("NFC", "".join(word.split())))


def compatible(word: str) -> str:
    """`word` with compatibility forms (full-width, ligatures, superscripts) and digits of every script made plain."""
    return _DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), unicodedata.normalize("NFKC", word))


def written_out(word: str) -> str:
    """`word` with ä, ö, ü as ae, oe, ue, as German writes it without umlauts; empty if it has none.

    Folding drops the dots instead, as Turkish, Swedish and hurried German do.
    """
    word = unicodedata.normalize("NFC", word)
    return word.translate(_UMLAUTS) if _UMLAUT.search(word) else ""


@cache
def _han() -> re.Pattern[str]:
    # Compiled when the first word that may have some turns up: with classes so large it takes long.
    return re.compile(f"[{HAN}]")


@cache
def _letters_and_han() -> dict[int, int | str | None]:
    # Apart, so that the large table is read only where there is Han.
    return _LETTERS | han()

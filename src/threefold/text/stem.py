"""Stemming by script: a word's language is not known, its script is.

Snowball knows more languages than scripts. Of those that share one, the one is taken that most texts of it are in:
English, Russian, Arabic, Hindi. What it does to words of another language it does to both sides.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable

import Stemmer

_ENGLISH = re.compile(r"[a-z]{3,}")
_LANGUAGES = {
    "greek": re.compile("[\u0370-\u03ff]{3,}"),
    "russian": re.compile("[\u0400-\u04ff]{3,}"),
    "arabic": re.compile("[\u0620-\u06ff]{3,}"),
    "hindi": re.compile("[\u0900-\u097f]{3,}"),
}
# Languages that are written in Latin letters as well, for comparing words whose language may be any of them.
_LATIN = {
    "en": "english", "de": "german", "es": "spanish", "fr": "french", "it": "italian", "pt": "portuguese",
    "nl": "dutch", "sv": "swedish", "no": "norwegian", "da": "danish", "ro": "romanian", "tr": "turkish",
}  # fmt: skip
_local = threading.local()


def stem(word: str) -> str:
    """The stem of a folded word of three letters or more of one script; any other word as it is."""
    if word.isascii():
        return _stemmed("english", word) if _ENGLISH.fullmatch(word) else word
    for language, pattern in _LANGUAGES.items():
        if pattern.fullmatch(word):
            # Folding wrote ta marbuta as heh; Snowball takes only the former off a word that has its article.
            return _stemmed(language, word.removesuffix("ه") + "ة" if word.endswith("ه") else word)
    return word


def stems(word: str, languages: Iterable[str] = ()) -> frozenset[str]:
    """All stems that a folded word may have: of Latin letters in any of some languages, otherwise as `stem` has it.

    Languages are named by two letters. Where there is none of Latin letters among them, it may be any such.
    """
    if not _ENGLISH.fullmatch(word):
        return frozenset((stem(word),))
    known = [_LATIN[language] for language in languages if language in _LATIN] or _LATIN.values()
    return frozenset(_stemmed(language, word) for language in known)


def _stemmed(language: str, word: str) -> str:
    # A Snowball stemmer keeps state, so each thread has its own.
    stemmer = getattr(_local, language, None)
    if stemmer is None:
        stemmer = Stemmer.Stemmer(language, 0)
        setattr(_local, language, stemmer)
    return str(stemmer.stemWord(word))

"""Terms: what lexical search sees of a text. The same on every back end.

A text is cut into pieces (`pieces`): words with what joins them (`Forecast-Q2-2026.xlsx` is one piece), runs of scripts
that are written without spaces, and single symbols such as emoji. A piece gives one or more terms: the folded and
stemmed word; the parts of a compound or identifier and the whole of it; overlapping character pairs of a run. A word
with umlauts is stored as read without them and written out (`munchen`, `muenchen`), and asked for by the first alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain

import Stemmer

from threefold.text.fold import compatible, fold, written_out
from threefold.text.patterns import ACCENTED, APOSTROPHES, ASCII_PARTS, ASCII_PIECE, JOINERS, patterns
from threefold.text.runs import pairs, placed
from threefold.text.stem import stem
from threefold.text.stop import STOP_WORDS

# Names how terms are made, so that a store can tell that its index was made otherwise. The first number is raised
# whenever this file, `fold`, `stem`, the patterns or the tables change the terms of some text.
ANALYZER = f"2, Unicode {unicodedata.unidata_version}, Snowball {Stemmer.version()}"
MAX_TERM = 64
MAX_CACHED = 256
WILDCARD = "*"
# So many letters of a longer word tell it whatever its ending is: the best of 7, 8 and 9 where stems were cut so short.
BEGINNING = 7

_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_HUMPS = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]|[A-Za-z][0-9]|[0-9][A-Za-z]")
_LETTERS = re.compile("[a-z]+")
_APOSTROPHE = frozenset(APOSTROPHES)


def pieces(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield (start, end, terms) for each piece of `text`; start and end are character offsets."""
    if text.isascii():
        for match in ASCII_PIECE.finditer(text):
            yield match.start(), match.end(), piece_terms(match[0])
        return
    for match in patterns(text).piece.finditer(text):
        if match.lastgroup == "run":
            for start, end, term in placed(match[0], match.start()):
                yield start, end, (term,)
        else:
            yield match.start(), match.end(), piece_terms(match[0])


def index_terms(text: str) -> tuple[str, ...]:
    """The terms of `text` in order, repeated as often as they occur."""
    if text.isascii():  # no runs and no symbols: the same terms without looking at places
        found = ASCII_PIECE.findall(text)
        terms_of = piece_terms if max(map(len, found), default=0) > MAX_CACHED else _short_piece_terms
        return tuple(chain.from_iterable(map(terms_of, found)))
    terms: list[str] = []
    for match in patterns(text).piece.finditer(text):
        terms += pairs(fold(match[0])) if match.lastgroup == "run" else piece_terms(match[0])
    return tuple(terms)


def query_terms(text: str) -> tuple[str, ...]:
    """The distinct terms that a question asks for, without stop words unless there is nothing else.

    A single character of a script without spaces becomes a prefix (`猫*`), since such runs are indexed by pairs. Long
    words of a question with accented Latin letters are asked for by their beginnings too (`yapılmıştır`, `yapilmi*`).
    """
    found = dict.fromkeys(index_terms(text) if text.isascii() else _asked_for(text))
    content = tuple(term for term in found if term not in STOP_WORDS)
    return content or tuple(found)


def _asked_for(text: str) -> list[str]:
    """What a question beyond ASCII asks for; in ASCII it is what would be stored."""
    terms: list[str] = []
    for match in patterns(text).piece.finditer(text):
        if match.lastgroup == "run":
            run = fold(match[0])
            terms += [run + WILDCARD] if len(run) == 1 else pairs(run)[:-1]
        else:
            terms += _terms_of(match[0], False)
    if ACCENTED.search(text):
        terms += _beginnings(terms)
    return terms


def _beginnings(terms: Iterable[str]) -> list[str]:
    # A question with accented Latin letters is hardly English, and English stemming leaves the endings of its words on.
    return [t[:BEGINNING] + WILDCARD for t in terms if len(t) > BEGINNING and _LETTERS.fullmatch(t)]


def piece_terms(piece: str) -> tuple[str, ...]:
    """The terms of one piece that is no run of a script without spaces."""
    # Pieces of any length are looked through whole, but only short ones are worth remembering.
    return _short_piece_terms(piece) if len(piece) <= MAX_CACHED else _terms_of(piece, True)


def _terms_of(piece: str, stored: bool) -> tuple[str, ...]:
    """The terms of a piece; of a `stored` one also those of words whose umlauts are written out."""
    parts = _parts(piece) or [piece]  # a symbol has no parts
    terms = [term for part in parts for term in _word_terms(part)]
    if len(parts) > 1:
        if not _APOSTROPHE.isdisjoint(piece):  # it's, l'amour: what is left of the apostrophe alone says nothing
            terms = [t for t in terms if len(t) > 1] or terms
        elif len(piece) <= MAX_CACHED and 0 < len(whole := _whole(piece)) <= MAX_TERM:
            terms.append(whole)
    if stored and not piece.isascii():
        terms += [term for part in parts for term in _word_terms(written_out(part))]
    return tuple(terms)


def _parts(piece: str) -> list[str]:
    return (ASCII_PARTS if piece.isascii() else patterns(piece).parts).findall(piece)


@lru_cache(maxsize=1 << 17)
def _short_piece_terms(piece: str) -> tuple[str, ...]:
    return _terms_of(piece, True)


def _whole(piece: str) -> str:
    if piece.isascii():
        return piece.lower()
    return patterns(piece).parts.sub(lambda part: fold(part[0]), piece).translate(JOINERS)


def _word_terms(word: str) -> list[str]:
    folded = fold(word)[:MAX_TERM]
    if not folded:
        return []
    terms = [stem(folded)]
    word = word if word.isascii() else compatible(word)
    if word.isascii():
        humps = word.split("_") if "_" in word.strip("_") else [word]
        small = [part for hump in humps for part in (_CAMEL.findall(hump) if _HUMPS.search(hump) else [hump])]
        if len(small) > 1:
            terms += [stem(p.lower()) for p in small if len(p) > 1]
    return terms

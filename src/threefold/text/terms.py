"""Terms: what lexical search sees of a text. The same on every back end.

A text is cut into pieces (`pieces`): words with what joins them (`Forecast-Q2-2026.xlsx` is one piece), runs of scripts
that are written without spaces, and single symbols such as emoji. A piece gives one or more terms: the folded and
stemmed word; the parts of a compound or identifier and the whole of it; overlapping character pairs of a run.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain

import Stemmer

from threefold.text.fold import fold
from threefold.text.stop import STOP_WORDS

# Names how terms are made, so that a store can tell that its index was made otherwise. The first number is raised
# whenever this file, `fold` or the patterns change the terms of some text.
ANALYZER = f"1, Unicode {unicodedata.unidata_version}, Snowball {Stemmer.version()}"
MAX_TERM = 64
MAX_CACHED = 256
WILDCARD = "*"

# Scripts that do not put spaces between words: Thai, Lao, Tibetan, Myanmar, Khmer, Han, Kana, Hangul and extensions.
_RUN = (
    "\u0e00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fff\u3005-\u3007\u3021-\u3029\u3031-\u303f"
    "\u3041-\u30ff\u3105-\u318f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff"
    "\uf900-\ufaff\uff66-\uffdc\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
# Indic blocks whole (their vowel signs are no letters to `\w`), combining marks, and the joiners inside a word.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0900-\u0963\u0966-\u0dff\u200c\u200d\u00ad"
)
_WORD = f"(?:(?![{_RUN}])[\\w{_MARKS}])+"
_SYMBOL = "[\u2190-\u2bff\U0001f000-\U0001faff]"
_PIECE = re.compile(
    f"(?P<run>[{_RUN}]+)|(?P<word>{_WORD}(?:[-._/\\\\:@&'’+]+{_WORD})*(?:\\+\\+|#(?!{_WORD}))?)|(?P<symbol>{_SYMBOL})"
)
_ASCII_PIECE = re.compile(r"\w+(?:[-._/\\:@&'+]+\w+)*(?:\+\+|#(?!\w))?", re.ASCII)
_PARTS = re.compile(f"{_WORD}(?:\\+\\+|#)?")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_HUMPS = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]|[A-Za-z][0-9]|[0-9][A-Za-z]")
_ENGLISH = re.compile(r"[a-z]{3,}")

_local = threading.local()


def _stem(word: str) -> str:
    # A Snowball stemmer keeps state, so each thread has its own.
    if not hasattr(_local, "english"):
        _local.english = Stemmer.Stemmer("english", 0)
    return str(_local.english.stemWord(word))


def pieces(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield (start, end, terms) for each piece of `text`; start and end are character offsets."""
    for match in _PIECE.finditer(text):
        if match.lastgroup == "run":
            yield from _run_pieces(match[0], match.start())
        else:
            yield match.start(), match.end(), _piece_terms(match[0])


def index_terms(text: str) -> tuple[str, ...]:
    """The terms of `text` in order, repeated as often as they occur."""
    if text.isascii():  # no runs and no symbols: the same terms without looking at places
        return tuple(chain.from_iterable(map(_piece_terms, _ASCII_PIECE.findall(text))))
    return tuple(term for _, _, terms in pieces(text) for term in terms)


def query_terms(text: str) -> tuple[str, ...]:
    """The distinct terms that a question asks for, without stop words unless there is nothing else.

    A single character of a script without spaces becomes a prefix (`猫*`), since such runs are indexed by pairs.
    """
    found: dict[str, None] = {}
    for match in _PIECE.finditer(text):
        if match.lastgroup == "run":
            run = fold(match[0])
            found.update(dict.fromkeys([run + WILDCARD] if len(run) == 1 else _pairs(run)[:-1]))
        else:
            found.update(dict.fromkeys(_piece_terms(match[0])))
    content = tuple(term for term in found if term not in STOP_WORDS)
    return content or tuple(found)


def _run_pieces(run: str, start: int) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    folded = fold(run)
    if folded == run or (len(folded) == len(run) and all(map(str.__eq__, map(fold, run), folded))):
        for i, pair in enumerate(_pairs(folded)):
            yield start + i, start + i + len(pair), (pair,)
    else:  # folding changed the length (half-width kana, Hangul letters): offsets are those of the whole run
        yield start, start + len(run), tuple(_pairs(folded))


def _pairs(run: str) -> list[str]:
    # Every character begins a term, the last one alone: so a single character is found as a prefix.
    return [run[i : i + 2] for i in range(len(run))]


def _piece_terms(piece: str) -> tuple[str, ...]:
    # Pieces of any length are looked through whole, but only short ones are worth remembering.
    return _short_piece_terms(piece) if len(piece) <= MAX_CACHED else _all_piece_terms(piece)


def _all_piece_terms(piece: str) -> tuple[str, ...]:
    parts = _PARTS.findall(piece) or [piece]  # a symbol has no parts
    terms = [term for part in parts for term in _word_terms(part)]
    if len(parts) > 1:
        if "'" in piece or "’" in piece:  # it's, l'amour: what is left of the apostrophe alone says nothing
            terms = [t for t in terms if len(t) > 1] or terms
        elif len(piece) <= MAX_CACHED and 0 < len(whole := fold(piece)) <= MAX_TERM:
            terms.append(whole)
    return tuple(terms)


_short_piece_terms = lru_cache(maxsize=1 << 17)(_all_piece_terms)


def _word_terms(word: str) -> list[str]:
    folded = fold(word)[:MAX_TERM]
    if not folded:
        return []
    terms = [_stem(folded) if _ENGLISH.fullmatch(folded) else folded]
    if word.isascii():
        humps = word.split("_") if "_" in word.strip("_") else [word]
        small = [part for hump in humps for part in (_CAMEL.findall(hump) if _HUMPS.search(hump) else [hump])]
        if len(small) > 1:
            terms += [_stem(p) if _ENGLISH.fullmatch(p) else p for p in (p.lower() for p in small) if len(p) > 1]
    return terms

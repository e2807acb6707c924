"""Where sentences end, in every script. Pure.

Full stops that end no sentence are told by what stands around them: abbreviations, initials, numbers, list markers.
"""

from __future__ import annotations

import re
from typing import Final

_CLOSING: Final = "\"'”’»›)\\]}】」』）〉》〗"
# Marks that need no blank behind them: of scripts that are written without, or that have no other use for the mark.
_ALONE: Final = "。！？｡．！？؟۔।॥։።፧፨។៕၊။།༎‼⁇⁈⁉᠃꓿"
_END: Final = re.compile(
    rf"[{_ALONE}]+[{_CLOSING}]*"
    rf"|[.!?…\u037e]+[{_CLOSING}]*(?=\s|$)"
)
# A word, or initials such as "e.g" and "U.S", right before a full stop.
_BEFORE: Final = re.compile(r"(?:^|[\s(\[\"'“„«/-])((?:[^\W\d_]\.)*[^\W\d_]+|\d+)$")
_ABBREVIATIONS: Final = frozenset(
    # English; German, Dutch, French, Spanish, Portuguese, Italian; Russian, Ukrainian, Polish, Czech, Turkish.
    """
    mr mrs ms dr prof sr jr st mt ft rev hon gen col lt sgt capt gov sen rep pres dept univ inc ltd co corp vs etc al
    approx appt est fig figs eq eqs sec ch vol no nos pp ed eds ref refs cf viz esp jan feb mar apr jun jul aug sep
    sept oct nov dec mon tue wed thu fri sat sun
    bzw usw ca evtl ggf inkl exkl max min nr str tel bsp vgl zzt sog hr fr abs art aufl hrsg jh jhd mio mrd bijv enz
    mme mlle mm env av sra srta dra núm pág págs ej aprox sig dott sig.ra ecc pag
    г гг др пр см рис табл тыс млн млрд руб ул им ст т тт напр np tzn tzw itd itp ul godz např atd tzv vb vs örn
    """.split()  # noqa: SIM905 - read as a text, not as a list
)
_SHORT: Final = 24


def sentence_cuts(text: str, start: int, end: int) -> list[int]:
    """Places in (start, end) right behind a sentence."""
    cuts = []
    for match in _END.finditer(text, start, end):
        at = match.end()
        if at < end and not (text[match.start()] == "." and not _ends_here(text, start, match.start(), at, end)):
            cuts.append(at)
    return cuts


def _ends_here(text: str, start: int, stop: int, after: int, end: int) -> bool:
    """Whether the full stop at `stop` ends a sentence; `after` is where what follows begins."""
    if text.startswith("..", stop):
        follows = text[after : after + _SHORT].lstrip()[:1]
        return not follows.islower()
    found = _BEFORE.search(text, max(start, stop - _SHORT), stop)
    follows = text[after : min(end, after + _SHORT)].lstrip(" \t\n\"'“„«([")[:1]
    if follows.islower():
        return False
    if found is None:
        return True
    word = found[1]
    if word.isdigit():
        # "3." at the beginning of a line numbers an item.
        return text[max(start, text.rfind("\n", start, found.start(1)) + 1) : found.start(1)].strip() != ""
    if len(word) == 1 and word.lower() not in _ABBREVIATIONS:
        # An initial; but "I" may end a sentence, and so may a letter of a script without case.
        return word == "I" or not word.isupper()
    return "." not in word and word.lower() not in _ABBREVIATIONS

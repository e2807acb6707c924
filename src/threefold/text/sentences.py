"""Sentences of every script, as places in the text: they touch and cover it, blanks go with the sentence before. Pure.

A sentence ends at the sign that its script has for that (Sentence_Terminal of Unicode), at the end of a line, and in
Thai and Lao, which have no such sign, at a space. A full stop ends none in a number, an abbreviation, an initial or an
ordinal (`am 3. Oktober`): where that is not sure, two sentences stay together, which does less harm than half a one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

# Longer ones are cut, at a comma or a blank where there is one.
LONGEST: Final = 400
# In Thai and Lao a space ends what is at least so long; shorter phrases belong together.
_PHRASE: Final = 60

# These end a sentence wherever they stand: of Armenian, Arabic, Urdu, Syriac, Devanagari and its relatives, Myanmar,
# Ethiopic, Khmer, Tibetan, Mongolian, Chinese and Japanese, and the Greek question mark.
_SURE = (
    "\u037e\u0589\u061d-\u061f\u06d4\u0700-\u0702\u07f9\u0964\u0965\u0f0d\u0f0e\u104b\u1362\u1367\u1368\u17d4\u17d5"
    "\u1803\u1809\u1c7e\u1c7f\u203c\u203d\u2047-\u2049\u3002\ua8ce\ua8cf\uabeb\ufe52\ufe56\ufe57\uff01\uff1f\uff61"
)
_CLOSING = "\"'”’»›)\\]}）］｝」』】〉》"
_OPENING = "\"'“‘«‹([{（「『【〈《¿¡„"
_BREAKS = "\n\r\x85\u2028\u2029"
_STOP = re.compile(rf"(?:(?<=[\u0370-\u03ff]);|[.!?…．{_SURE}]+)[{_CLOSING}]*\s*|[{_BREAKS}]\s*")
_SURELY = re.compile(f"[;{_SURE}]")
_BREAK = re.compile(f"\r\n|[{_BREAKS}]")
# What stands before a stop, of which the last letters say enough.
_WORD = re.compile(r"\S{1,32}\Z")
_DOTTED = re.compile(r"\w{1,3}(\.\w{1,3})+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff]"
)
_THAI_SPACE = re.compile("(?<=[\u0e01-\u0eff])\\s+(?=[\u0e01-\u0eff])")
_COMMA = re.compile(r"[;；:：,，、،](?=\D)\s*|\s+")
# None that is a word of its own: "That is all." ends.
_ABBREVIATIONS = frozenset(
    """
    adm approx apt asst ave bldg blvd brig ca capt cf cmdr co col corp cpl dept dipl doc dr ed eds etc ext
    fig figs gen gov govt hon inc incl jr lt ltd maj messrs misc mr mrs ms mt nb nos op pp prof pvt ref
    rep resp rev sen sgt sr st std tel univ vol vols vs
    abb abs allg bd bspw bzgl bzw evtl ggf hrsg inkl jh kap lfd lt mio mrd nr sog str usw vgl zzgl
    av bd chap éd env mlle mm mme n° p réf tél dott ecc pag sig sig.ra avda dra ej pág sra srta ud uds
    alm hr fru kl ml mln stk tj wg zob św ul prof.dr hab inż
    англ г гг гл др им кв млн млрд напр обл пр проф рис руб см ср стр т тел тыс ул
 """.split()  # noqa: SIM905 - words read best as words
)


def sentence_spans(text: str, longest: int = LONGEST) -> list[tuple[int, int]]:
    """(start, end) of every sentence, in order, none empty: the first begins at 0, the last ends where the text does.

    No span has more than `longest` characters.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    for end in _ends(text):
        for phrase in _phrases(text, start, end):
            spans += _cut(text, *phrase, longest)
        start = end
    return spans


def _ends(text: str) -> Iterator[int]:
    """Where sentences end; the last one is the end of the text."""
    for found in _STOP.finditer(text):
        if found.end() < len(text) and _ends_one(text, found):
            yield found.end()
    if text:
        yield len(text)


def _ends_one(text: str, found: re.Match[str]) -> bool:
    said = found[0].rstrip()
    blank = found[0][len(said) :]
    breaks = len(_BREAK.findall(blank))
    following = _following(text, found.end())
    if not said:  # between lines of one sentence, or at the end of one
        return breaks > 1 or not text[found.end()].islower()
    if breaks or _SURELY.search(said):
        return True
    if not blank:
        return _UNSPACED.match(following) is not None and not _within_number(text, found, said)
    if said[0] in "!?":
        return said[-1] in "!?" or not following.islower()
    return _full_stop(text, found.start(), said, following)


def _following(text: str, place: int) -> str:
    """The first character of what comes next, without quotes and brackets before it; empty at the end."""
    for character in text[place : place + 8]:
        if character not in _OPENING and not character.isspace():
            return character
    return ""


def _within_number(text: str, found: re.Match[str], said: str) -> bool:
    return said[0] in ".．" and text[found.start() - 1 : found.start()].isdigit()


def _full_stop(text: str, place: int, said: str, following: str) -> bool:
    """Whether a full stop with a blank behind it ends a sentence: what is before it may be an abbreviation."""
    if said.startswith(("…", "..")):
        return not following.islower()
    before = _WORD.search(text, max(0, place - 32), place)
    word = before[0].lstrip(_OPENING) if before else ""
    if _DOTTED.fullmatch(word) or (len(word) == 1 and word.lower() != word.upper()):
        return False
    if word.isdigit() and len(word) <= 2:
        return False
    known = word.lower() in _ABBREVIATIONS
    return not known and (not following.islower() or len(word) > 3)


def _phrases(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A piece without a sign in it, cut at the spaces of Thai and Lao."""
    for space in _THAI_SPACE.finditer(text, start, end):
        if space.end() - start >= _PHRASE:
            yield start, space.end()
            start = space.end()
    if start < end:
        yield start, end


def _cut(text: str, start: int, end: int, longest: int) -> Iterator[tuple[int, int]]:
    """A piece in parts of at most `longest` characters."""
    while end - start > longest:
        limit = start + longest
        commas = [found.end() for found in _COMMA.finditer(text, start + longest // 2, limit)]
        cut = commas[-1] if commas else _before_marks(text, start, limit)
        yield start, cut
        start = cut
    yield start, end


def _before_marks(text: str, start: int, limit: int) -> int:
    """A place at most `limit` where no character is parted from the marks that belong to it."""
    place = limit
    while place > max(start + 1, limit - 32) and (
        unicodedata.category(text[place])[0] == "M" or "\u200d" in text[place - 1 : place + 1]
    ):
        place -= 1
    return place

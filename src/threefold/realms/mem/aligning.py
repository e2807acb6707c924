"""Aligning: which units of one note stand for which of another, and what is left over on either side."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from threefold.realms.mem.units import Unit
from threefold.realms.mem.words import HANGUL
from threefold.text.stem import stems

# Beyond so many units left over, notes say different things whatever is akin among them.
MAX_LEFT: Final = 48
# A swap is looked for among so many units.
MAX_SWAPPED: Final = 48
_EQUAL, _SAME_STEM, _SAME_BEGINNING = 1.0, 0.95, 0.75
_BEGINNING, _ENDING = 5, 5
_HANGUL_LETTER: Final = re.compile(f"[{HANGUL}]")
# What particles and endings of Korean are made of.
_HANGUL_ENDINGS = frozenset(
    "은는이가을를에의로으와과도만까지부터마다씩보처럼나랑께다한하함합했해할된되됨됐될돼입인임였었있습니어아여요고며면서기음던데네려러죠라야중때스"
)
# Endings that tell a woman from a man: hijo and hija, Lehrer and Lehrerin, बेटा and बेटी.
_OTHERS = frozenset([("a", "o"), ("as", "os"), ("", "in"), ("", "innen"), ("", "a"), ("ा", "ी"), ("ी", "े")])
# Endings that Turkish puts on any word.
_CASES = frozenset("i u a e in un da de dan den ta te tan ten ya ye yi la le".split() + [""])
# Those that it puts on verbs: başladı, başlamış.
_VERBAL = re.compile(
    "[aeiu]?(?:[lnst]|il|in|un)?(?:[iu]yor|[dt][iu]|m[iu]s|[ae]c[ae]k|[aeiu]r|[dt][iu]g[iu]n?|[ae]n|m[ae]k|m[ae]|m[ae]s[iu]|[ae]r[ae]k|[iu]p)"
    "(?:l[ae]r|[iu]m|s[iu]n|[iu]z|yd[iu]|d[iu]r|t[iu]r)?"
)
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_ARABIC = re.compile("[\u0620-\u06ff]")
_ARABIC_PREFIX = re.compile("(?:[وف]?[بلك]?ال|[وف][بلك]?|لل|[وف]?[يتن])(?=[\u0621-\u064a]{3})")
# Vowels of Korean before 어 and with it (시 and 셔, 우 and 워); the finals ㄴ, ㄹ, ㅁ, ㅂ, ㅆ.
_CONTRACTED: Final = {6: 20, 14: 13, 9: 8}
_VERBAL_FINALS: Final = frozenset((4, 8, 16, 17, 20))
_ARABIC_ENDINGS = frozenset(["", "ه", "ات", "ين", "ون", "ي", "ها", "هم", "ا", "ان", "يه", "ت", "تها", "ته", "نا"])


@dataclass(frozen=True, slots=True)
class Alignment:
    """`pairs` are places of units that stand for each other, and how surely; `left` the places of the others."""

    pairs: tuple[tuple[int, int, float], ...]
    left: tuple[tuple[int, ...], tuple[int, ...]]


def align(first: Sequence[Unit], second: Sequence[Unit]) -> Alignment:
    """Pair equal units, then akin ones, the nearest kin first."""
    places: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for j in range(len(second) - 1, -1, -1):
        places[_meaning(second[j])].append(j)
    pairs = [(i, there.pop(), _EQUAL) for i, unit in enumerate(first) if (there := places.get(_meaning(unit)))]
    pairs = [(i, j, score) for i, j, score in pairs if not _apart(first[i], second[j])]
    left = _left(first, second, pairs)
    if 0 < len(left[0]) <= MAX_LEFT and 0 < len(left[1]) <= MAX_LEFT:
        near = [(akin(first[i], second[j]), i, j) for i in left[0] for j in left[1]]
        for score, i, j in sorted(near, key=lambda each: (-each[0], abs(each[1] - each[2]), each[1])):
            if score > 0.0 and i in left[0] and j in left[1]:
                pairs.append((i, j, score))
                left[0].remove(i)
                left[1].remove(j)
    return Alignment(tuple(sorted(pairs)), (tuple(left[0]), tuple(left[1])))


def akin(first: Unit, second: Unit) -> float:
    """How surely two words are forms of one, from 0 to 1."""
    if first.kind != second.kind or first.kind not in ("word", "hangul"):
        return 0.0
    return 0.0 if _apart(first, second) else _akin(first.form, second.form, first.named and second.named)


def kindred(first: str, second: str) -> bool:
    """Whether words, if near in meaning, are so as upstairs and downstairs are; of one letter none is judged."""
    one, other = _bare(first.lower()), _bare(second.lower())
    if min(len(one), len(other)) < 2 or one[:3] == other[:3] or one[-4:] == other[-4:]:
        return True
    return bool(_HANGUL_LETTER.match(one)) and one[-1] == other[-1]


def swapped(alignment: Alignment) -> bool:
    """Whether the second note is the first with two parts in each other's place: "A calls B" and "B calls A".

    A part that only moves, as in "on Monday he runs" and "he runs on Monday", is no swap. Neighbours are swapped if
    one of them changes its form: that is how languages with cases say it.
    """
    pairs, (ours, theirs) = alignment.pairs, alignment.left
    order = [j for _, j, _ in pairs]
    start, end = 0, len(order)
    rank = {j: at for at, j in enumerate(sorted(order))}
    order = [rank[j] for j in order]
    while start < end and order[start] == start:
        start += 1
    while end > start and order[end - 1] == end - 1:
        end -= 1
    if not 2 <= end - start <= MAX_SWAPPED:
        return False
    # What comes first in the second note, [start, ...), must be what the first note has at the end of the part.
    moved = [j - start for j in order[start:end]]
    size = len(moved)
    head = size - moved[0]  # so many units of the first note went to the end
    tail = moved[-1] + 1
    if head < 1 or tail < 1 or head + tail > size:
        return False
    whole = [*range(size - head, size), *range(tail, size - head), *range(tail)]
    if moved != whole:
        return False
    bent = any(score < _EQUAL for _, _, score in pairs[start:end]) or (ours and theirs)
    return size > head + tail or (size == 2 and bool(bent))


def _left(
    first: Sequence[Unit], second: Sequence[Unit], pairs: Sequence[tuple[int, int, float]]
) -> tuple[list[int], list[int]]:
    ours, theirs = {i for i, _, _ in pairs}, {j for _, j, _ in pairs}
    return [i for i in range(len(first)) if i not in ours], [j for j in range(len(second)) if j not in theirs]


def _meaning(unit: Unit) -> tuple[str, str]:
    return ("number" if unit.kind == "worded" else unit.kind), unit.key


def _apart(first: Unit, second: Unit) -> bool:
    """Whether words of one stem are two names, or a woman and a man; participles of Hindi only agree with their noun."""
    if first.form == second.form or first.kind != "word":
        return False
    shared = _shared(first.form, second.form)
    rests = sorted((first.form[shared:], second.form[shared:]))
    if first.named and second.named and all(rests) and first.key == second.key and "=" not in first.key:
        return True
    return (rests[0], rests[1]) in _OTHERS and not first.form[:shared].endswith("त")


@lru_cache(maxsize=1 << 14)
def _akin(first: str, second: str, named: bool) -> float:
    if first > second:
        return _akin(second, first, named)
    if _HANGUL_LETTER.match(first):
        return _akin_korean(first, second)
    shared = _shared(first, second)
    rests = first[shared:], second[shared:]
    if _ARABIC.match(first):
        return _akin_arabic(first, second)
    if named and all(rests):
        return 0.0
    if stems(first) & stems(second) or (shared >= 3 and _CASES.issuperset(rests) and max(map(len, rests)) > 1):
        return _SAME_STEM
    if shared >= 3 and all(map(_VERBAL.fullmatch, rests)):
        return _SAME_STEM
    if first[:2] == "ge" and stems(first[2:]) & stems(second):
        return _SAME_STEM
    if shared >= _BEGINNING - bool(_CYRILLIC.match(first)) and min(map(len, rests)) <= 1 and max(map(len, rests)) <= _ENDING:
        return _SAME_BEGINNING
    return 0.0


def _akin_korean(first: str, second: str) -> float:
    """Korean puts endings onto syllables too: 길어질 and 길어지면, 마신다 and 마셔."""
    shared = 0
    while shared < min(len(first), len(second)) and _syllable(first[shared], shared) == _syllable(second[shared], shared):
        shared += 1
    return _SAME_STEM if shared and _HANGUL_ENDINGS.issuperset(first[shared:] + second[shared:]) else 0.0


def _syllable(letter: str, place: int) -> tuple[int, int, int]:
    """Initial, vowel and final of a syllable, less what verbs change in it; the first of a word stays whole."""
    number = ord(letter) - 0xAC00
    initial, vowel, final = number // 588, number % 588 // 28, number % 28
    if place == 0:
        return initial, vowel, final
    return initial, _CONTRACTED.get(vowel, vowel), 0 if final in _VERBAL_FINALS else final


def _akin_arabic(first: str, second: str) -> float:
    first, second = _ARABIC_PREFIX.sub("", first, 1), _ARABIC_PREFIX.sub("", second, 1)
    shared = _shared(first, second)
    return _SAME_STEM if shared >= 3 and {first[shared:], second[shared:]} <= _ARABIC_ENDINGS else 0.0


def _shared(first: str, second: str) -> int:
    for at, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return at
    return min(len(first), len(second))


def _bare(word: str) -> str:
    """A word of Korean without its particles and endings, any other as it is."""
    return word.rstrip("".join(_HANGUL_ENDINGS)) if _HANGUL_LETTER.match(word) else word

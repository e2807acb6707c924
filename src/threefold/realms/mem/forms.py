"""Forms: whether two spellings are forms of one word, by what the languages of their script do to words."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from threefold.realms.mem.words import HANGUL
from threefold.text.stem import stems

SAME_STEM: Final = 0.95
_PERFECT: Final = ("ge", "по")
_CYRILLIC = re.compile("[\u0400-\u04ff]")

# Endings that tell a woman from a man: hijo and hija, Lehrer and Lehrerin, बेटा and बेटी.
_GENDERS = frozenset(
    [("a", "o"), ("a", "e"), ("as", "os"), ("", "in"), ("", "innen"), ("", "a"), ("ा", "ी"), ("ी", "े")]
)

# Endings that Turkish puts on any word, and those on verbs: başladı and başlamış.
_CASES = re.compile(
    "(?:[iuae]|[iu]n|[dt][ae]n?|y[aei]|l[ae]|k|g[aeiu]|s[iu](?:n(?:[iuae]|[iu]n|d[ae]))?|n[ae]|nd[ae]n?|n[iu]n?|l[ae]r(?:[iu]n?|d[ae]n?|[ae]|[iu]n(?:[iuae]|d[ae]n?))?)?"
)
_SOFTENED: Final = {"p": "b", "t": "d", "k": "g", "c": "c"}  # ekip, ekibi
_VERBAL = re.compile(
    "[aeiu]?(?:[lns]|il|in|un)?"
    "(?:[iu]yor|m[ae]k(?:t[ae])?|m[ae]y[iu]|[dt][iu]|m[iu]s|[ae]c[ae]k|[aeiu]r|[dt][iu]g[iu]n?|y?[ae]n|[ae]z"
    "|m[ae](?:li|k|y[ae]|s[iu])?|[ae]r[ae]k|[iu]p)"
    "(?:[ld][ae]r|[iu]m|s[iu]n|[iu]z|yd[iu]|[dt][iu]r)?"
)

_ARABIC = re.compile("[\u0620-\u06ff]")
_ARABIC_PREFIX = re.compile("^(?:[وف]?[بلك]?ال|[وف][بلك]?|لل|[وف]?[يتن])(?=[\u0621-\u064a]{3})")
_ARABIC_ENDINGS = frozenset(["", "ه", "ات", "ين", "ون", "ي", "ها", "هم", "ا", "ان", "يه", "ت", "تها", "ته", "نا"])
# Endings of Latin letters that make another word: product and production.
_DERIVED = re.compile("[a-z]{3}(?:[ts]ions?|[aeiu]?[td]ors?|it(?:y|ies)|ments?|ists?|isms?)$")
# Of Hindi, has somebody do what the verb says: पढ़ता and पढ़ाता.
_CAUSING: Final = "ा"
_DUAL = re.compile("ت[اي]ن$")

_HANGUL_LETTER = re.compile(f"[{HANGUL}]")
# What particles and endings of Korean are made of.
_HANGUL_ENDINGS: Final = (
    "은는이가을를에의로으와과도만까지부터마다씩보처럼나랑께다한하함합했해할된되됨됐될돼입인임였었있습니어아여요고며면"
    "서기음던데네려러죠라야중때스"
)
# Vowels of Korean before 어 and with it (시 and 셔, 우 and 워, 오 and 와); the finals ㄴ, ㄹ, ㅁ, ㅂ, ㅆ.
_CONTRACTED: Final = {6: 20, 14: 13, 9: 8}
_FIRST_FINALS, _FINALS = frozenset((0, 4)), frozenset((4, 8, 16, 17, 20))

_ROWS: Final = (
    "かきくけこ さしすせそ たちつてとっ なにぬねの ばびぶべぼ まみむめもん らりるれろ わいうえおあ がぎぐげご"
)
_CONTRACTED_KANA: Final = "っんい"
_ROW: Final = {kana: row for row in _ROWS.split() for kana in row}

# Endings that differ by the harmony of vowels and consonants alone, or by what stands before them, become the same.
_HARMONY = str.maketrans("uet이은는을", "iad가가가를", "으")


@lru_cache(maxsize=1 << 14)
def akin(first: str, second: str, named: bool, languages: tuple[str, ...] = ()) -> float:
    """How surely two folded spellings are forms of one word, from 0 to 1; of two names one may have an ending more.

    `languages` are those that the notes may be in; none if they may be in any.
    """
    first, second = sorted((first, second))
    if _HANGUL_LETTER.match(first):
        return SAME_STEM * _akin_korean(first, second)
    if _ARABIC.match(first):
        return SAME_STEM * _akin_arabic(first, second)
    if languages == ("tr",) and _akin_turkish(first, second, named):
        return SAME_STEM
    return _akin_by_letters(first, second, named, languages)


def _akin_by_letters(first: str, second: str, named: bool, languages: tuple[str, ...]) -> float:
    shared = shared_length(first, second)
    rests = first[shared:], second[shared:]
    if named and all(rests):
        return 0.0
    for prefix in _PERFECT:  # startet, gestartet; ехать, поехать
        one, other = first.removeprefix(prefix), second.removeprefix(prefix)
        if (
            (one != first) != (other != second)
            and min(len(one), len(other)) > 3
            and _akin_by_letters(one, other, named, languages)
        ):
            return SAME_STEM
    return SAME_STEM * bool(stems(first, languages) & stems(second, languages))


def resumed(first: str, second: str) -> bool:
    """Whether one form of Arabic has a pronoun more, for an object that stands before: تديره."""
    one, other = sorted((first, second), key=len)
    return _ARABIC.match(one) is not None and other[: len(one)] == one and other[len(one) :] in ("ه", "ها", "هم")


def akin_kana(first: str, second: str) -> float:
    """Kana with which the ending of a verb begins are of one row, 飲む and 飲みます, or contracted, 飲んで."""
    contracted = first in _CONTRACTED_KANA or second in _CONTRACTED_KANA
    return SAME_STEM * (contracted or _ROW.get(first, first) == _ROW.get(second, second))


def compound(whole: str, first: str, second: str) -> bool:
    """Whether a word is made of two, with no more than two letters between: Augenarzttermin; 맥북프로."""
    between = len(whole) - len(first) - len(second)
    fits = min(len(first), len(second)) >= 2 and whole.startswith(first) and whole.endswith(second)
    if _HANGUL_LETTER.match(whole):
        return (fits and between == 0) or (
            len(second) > 1 and whole.startswith(first) and akin(whole[len(first) :], second, False) > 0
        )
    return fits and 0 <= between <= 2


def apart(first: str, second: str) -> bool:
    """Whether forms that may have one stem are a woman and a man, or one and two in Arabic.

    Participles of Hindi only agree with their noun.
    """
    shared = shared_length(first, second)
    one, other = sorted((first[shared:], second[shared:]))
    gendered = (one, other) in _GENDERS and not first[:shared].endswith("त")
    if shared > 2 and bool(_DERIVED.search(first)) != bool(_DERIVED.search(second)):
        return True
    if other == f"{_CAUSING}{one}" or one == f"{_CAUSING}{other}":
        return True
    return gendered or bool(_DUAL.search(first)) != bool(_DUAL.search(second))


def feminine(first: str, second: str) -> bool:
    """Whether one of two words of Arabic has ta marbuta where the other ends: مكتب and مكتبة."""
    first, second = (_ARABIC_PREFIX.sub("", word, 1) for word in sorted((first, second), key=len))
    return second.endswith("ة") and second[:-1] == first


def ending(form: str, other: str) -> str:
    """What a form has that another of the word has not; endings that only agree with the word are the same."""
    return form[shared_length(form, other) :].translate(_HARMONY)


def shared_length(first: str, second: str) -> int:
    """With how many characters both begin."""
    for at, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return at
    return min(len(first), len(second))


def _akin_turkish(first: str, second: str, named: bool) -> bool:
    """Whether both end as nouns do, ekip and ekibi, or as verbs do, after what is shared: tutuyor, tutuluyor."""
    shared = shared_length(first, second)
    rests = first[shared:], second[shared:]
    softened = any(
        _SOFTENED.get(one) == other[:1] and _CASES.fullmatch(other, 1) for one, other in (rests, rests[::-1])
    )
    if shared >= 3 and (softened or (all(map(_CASES.fullmatch, rests)) and max(map(len, rests)) > 1)):
        return True
    shortest = 2 if "yor" in first + second else 3  # içiyor, içer
    stem_lengths = () if named and all(rests) else range(shared, max(shared - 2, shortest) - 1, -1)
    return any(_VERBAL.fullmatch(first, at) and _VERBAL.fullmatch(second, at) for at in stem_lengths)


def _akin_korean(first: str, second: str) -> bool:
    """Korean puts endings onto syllables too: 길어질 and 길어지면, 마신다 and 마셔."""
    shared, most = 0, min(len(first), len(second))
    while shared < most and _syllable(first[shared], shared) == _syllable(second[shared], shared):
        shared += 1
    if shared == 1 and any(
        len(rest) > 1 and rest[-1] in "을를은는이가의" and rest[0] != "기" for rest in (first[1:], second[1:])
    ):
        return False  # 차를, 차고를
    return shared > 0 and set(_HANGUL_ENDINGS).issuperset(first[shared:] + second[shared:])


def _syllable(letter: str, place: int) -> tuple[int, int, int]:
    """Initial, vowel and final of a syllable, less what verbs change in it."""
    number = ord(letter) - 0xAC00
    initial, vowel, final = number // 588, number % 588 // 28, number % 28
    if place == 0 and final not in _FIRST_FINALS:
        return initial, vowel, final
    return initial, _CONTRACTED.get(vowel, vowel), 0 if final in _FINALS else final


def _akin_arabic(first: str, second: str) -> bool:
    first, second = _ARABIC_PREFIX.sub("", first, 1), _ARABIC_PREFIX.sub("", second, 1)
    shared = shared_length(first, second)
    return shared >= 3 and _ARABIC_ENDINGS.issuperset((first[shared:], second[shared:]))

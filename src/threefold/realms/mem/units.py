"""Units: what a note is compared by. Words, numbers, dates, and signs that mean something, each in one spelling."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from threefold.realms.mem.words import ASKING, HANGUL, LEFT_OUT, RUN, languages_among, light_of, read_as, words
from threefold.text.dates.marks import marked
from threefold.text.fold import compatible, fold
from threefold.text.patterns import APOSTROPHES
from threefold.text.stem import stem

# What a unit weighs that says little, and one of scripts where a unit is a character.
_LIGHT, _TURNING, _SIGN, _KANA, _KATAKANA, _CHARACTER = 0.0, 0.6, 0.6, 0.55, 0.4, 0.6
_HELPING, _WORDED, _HALF, _CODE, _ONE = 0.3, 0.7, 0.5, 1.5, 0.2

_MINUS = str.maketrans("−‒–—﹣", "-----")
_FIGURES = "〇零一二三四五六七八九"
_VALUES = {**{figure: max(0, at - 1) for at, figure in enumerate(_FIGURES)}, "两": 2, "兩": 2}
_TENS, _MYRIADS = {"十": 10, "百": 100, "千": 1_000}, {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8, "만": 10**4}
_HAN = "".join((*_VALUES, *_TENS, *(unit for unit in _MYRIADS if unit != "만")))
_MARKS = "\u0300-\u036f\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
_LETTERS = f"[^\\W\\d_{RUN}{HANGUL}]"
_UNIT = re.compile(
    rf"(?P<number>(?:(?<![\w.)])-)?\d+(?:[.,:/]\d+)*)(?P<myriad>[{''.join(_MYRIADS)}千])?"
    rf"|(?P<han>[{_HAN}]+)"
    rf"|(?P<hangul>[{HANGUL}]+)"
    r"|(?P<particle>から|まで|より)"
    rf"|(?P<run>[{RUN}])"
    rf"|(?P<word>{_LETTERS}(?:{_LETTERS}|[{_MARKS}])*)"
    r"|(?P<sign>[%$€£¥₹₽₩₺#°]|[\u2190-\u21ff\u2600-\u27bf\U0001f000-\U0001faff])"
)
# Addresses, paths, versions, names of files and of things such as C++ and B3.
_PIECE = re.compile(r"(?<![\w@/.-])[A-Za-z0-9]+(?:[@/\\_.:&+-]+[A-Za-z0-9]+)*(?:\+\+|#(?!\w))?", re.ASCII)
_CODE_SIGNS = re.compile(r"[@_\\]|\+\+|#|[A-Za-z]\d|\.[A-Za-z]|[A-Za-z]\.\w|/.*/|\d-\d|[A-Za-z]-\d")
# Kana with which a part of a text begins are no endings: そば, はるか.
_BEGINNING = re.compile(f"(?:^|[^\\w{LEFT_OUT}])[\u3041-\u309f]{{1,3}}$")
_HAN_OR_KANA = re.compile("[\u3041-\u30ff\u3400-\u9fff]")
# Shorter words are of many languages.
_TELLING_LENGTH = 4
_FOLLOWING = re.compile("[\u3400-\u9fff]")
# The endings of Turkish that say where and from where, as numbers have them: at seven is `yedide`.
_CASE = re.compile(r"[dt][ae]n?$")
_PLURAL = re.compile(r"l[ae]r[iu]?$")  # on Mondays: pazartesileri
# From where, by an ending of Turkish that stands alone, Ankara'dan, and from whom, by a word that else tells who has.
_AWAY = re.compile(r"(?<=[’'])[dt][ae]n(?!\w)|(?<=[^\W\d] )у(?! (?:н[её]|мен|теб|себ|пользоват))(?!\w)")
_AFTER_NUMBERS = frozenset(("am", "pm"))
_NUMBER_BEFORE = re.compile(r"\d\s?$")
_BETWEEN = re.compile(f"[^\\w{_MARKS}-]+")
_UNCASED = re.compile(f"[{RUN}{HANGUL}]")
_SENTENCE_BEGINS = re.compile(r"(?:^|[.!?:;…।。！？]\s|\n)[\s\W]*$")
_LONGEST_NUMBER = 18
_GROUPED = re.compile(r"\d{1,3}(?:[.,]\d{3})+")


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit: `key` is what equal ones have in common, `form` how it was written, folded, `shown` as it was.

    It was found at `at`.
    """

    key: str
    form: str
    kind: str
    weight: float
    shown: str = ""
    at: int = 0

    @property
    def named(self) -> bool:
        """Whether it has a capital letter."""
        return self.shown[:1].isupper()

    @property
    def timed(self) -> bool:
        """Whether it says when, or how many."""
        return self.kind in ("number", "worded", "date", "half") or self.form in words().when

    @property
    def turning(self) -> bool:
        """Whether it says in which direction something goes."""
        return self.kind == "word" and self.weight == _TURNING

    @property
    def telling(self) -> bool:
        """Whether it tells the language: it is in a table, or its script has one language."""
        one_script = self.kind == "hangul" or (self.kind == "run" and _HAN_OR_KANA.match(self.form) is not None)
        grouped = self.grouped and len(self.form) >= _TELLING_LENGTH
        return one_script or grouped or (self.kind == "word" and self.weight == _HELPING)

    @property
    def inflected(self) -> bool:
        """Whether it is a letter of kana that may be of an ending."""
        return self.kind == "run" and self.weight == _KANA

    @property
    def grouped(self) -> bool:
        """Whether it is in a group of words that are alike."""
        return self.key == ASKING or self.form in words().alike or self.key in words().alike


def units_of(text: str) -> tuple[Unit, ...]:
    """The units of a plain text, in order."""
    found = sorted(_found(text), key=lambda each: each[0])
    return tuple(replace(unit, at=at) for at, unit in found)


def plain(text: str) -> str:
    """`text` in compatibility forms, with one minus sign, and with one word where several are read as one."""
    return read_as(compatible(text).translate(_MINUS))


def denials(text: str, units: tuple[Unit, ...]) -> int:
    """How often a text says that something is not so."""
    known = words()
    inside = known.inside.findall(known.affirming.sub(" ", folded(text)))
    return len(inside) + sum(
        unit.form in known.denials or known.endings.fullmatch(unit.form) is not None for unit in units
    )


def denied(text: str, units: Sequence[Unit]) -> tuple[bool, ...]:
    """For each unit of a plain text, whether the part of a sentence that it is in says that something is not so."""
    bounds = [0, *(match.start() for match in words().clause.finditer(text)), len(text)]
    parts = [bisect(bounds, unit.at) for unit in units]
    so = {
        part: denials(
            text[bounds[part - 1] : bounds[part]], tuple(u for u, p in zip(units, parts, strict=True) if p == part)
        )
        for part in set(parts)
    }
    return tuple(so[part] > 0 for part in parts)


def classes(text: str) -> frozenset[tuple[int, int]]:
    """Which words of a kind a folded text has: the number of the kind, and of the group in it."""
    kinds = enumerate(words().classes)
    return frozenset((kind, at) for kind, known in kinds for at, group in enumerate(known) if group.search(text))


def folded(text: str) -> str:
    """A plain text folded word by word, with single spaces between."""
    return " ".join(fold(word) for word in _BETWEEN.split(text) if word)


_fold = lru_cache(maxsize=1 << 14)(fold)


def _found(text: str) -> Iterator[tuple[int, Unit]]:
    taken = list(_dates(text))
    taken += [
        (match.start(), match.end(), Unit(fold(match[0]), match[0], "code", _CODE))
        for match in _PIECE.finditer(text)
        if _CODE_SIGNS.search(match[0])
    ]
    taken.sort(key=lambda each: each[0])
    matches, at = [], 0
    for match in _UNIT.finditer(text):
        while at < len(taken) and taken[at][1] <= match.start():
            at += 1
        if at == len(taken) or match.end() <= taken[at][0]:
            matches.append(match)
    light = light_of(languages_among(_fold(match[0]) for match in matches))
    mixed = text != text.upper() or _UNCASED.search(text) is not None
    for match in matches:
        if (unit := _unit(match, light)) is not None:
            yield match.start(), _lettered(unit, match, mixed) if match.lastgroup == "word" else unit
    reached = 0
    for start, end, unit in taken:
        if start >= reached:
            yield start, unit
            reached = end


def _dates(text: str) -> Iterator[tuple[int, int, Unit]]:
    seen = marked(text)
    if seen is None:
        return
    for mark in seen.marks:
        if mark.kind in "mvw":
            start, end = seen.cut.found[mark.first].start(), seen.cut.found[mark.last].end()
            kind = "w" if mark.kind == "w" else "m"
            yield start, end, Unit(f"{kind}{mark.value}", text[start:end], "date", 1.0)


def _unit(match: re.Match[str], light: frozenset[str]) -> Unit | None:
    kind, shown = match.lastgroup, match[0]
    if match["number"]:
        return Unit(_number(match["number"], match["myriad"] or ""), shown, "number", 1.0)
    if kind == "han":
        return _worded(_han(shown), shown)
    if kind == "sign":
        return Unit(shown, shown, "sign", _SIGN)
    form = _fold(shown)
    if form in _AFTER_NUMBERS and not _NUMBER_BEFORE.search(match.string, max(match.start() - 3, 0), match.start()):
        return Unit(form, form, "word", _LIGHT)  # am Montag
    return _value(form) or _word(match, form, light) if form else None


def _lettered(unit: Unit, match: re.Match[str], mixed: bool) -> Unit:
    """A letter alone tells things apart, as in vitamin C, unless it is a word; what is in capitals is no light word."""
    shown = match[0]
    if unit.weight > _LIGHT and len(shown) > 1:
        return unit
    capital = (
        mixed and shown.isupper() and unit.form != "i" and not _SENTENCE_BEGINS.search(match.string, 0, match.start())
    )
    if len(shown) > 1:
        return replace(unit, weight=1.0) if capital else unit
    apostrophe = match.string[match.start() - 1 : match.start()] in APOSTROPHES and match.start() > 0
    apostrophe = apostrophe or match.string[match.end() : match.end() + 1] in (*APOSTROPHES,)
    cased = shown.lower() != shown.upper()
    if cased and not apostrophe and (capital or not any(unit.form in known for known in words().light.values())):
        return Unit(unit.form, unit.form, "code", _CODE, shown)
    return unit


def _value(form: str) -> Unit | None:
    """A number as a word, the half of a day, or a name of the calendar."""
    known = words()
    value = known.numbers.get(form) or known.numbers.get(_CASE.sub("", form))
    if value is not None:
        return _worded(value, form)
    if form in known.halves:
        return Unit(known.halves[form], form, "half", _HALF)
    date = known.dates.get(stem(form)) or known.dates.get(stem(_PLURAL.sub("", form)))
    return None if date is None else Unit(date, form, "date", 1.0)


def _word(match: re.Match[str], form: str, light: frozenset[str]) -> Unit:
    known, kind, shown = words(), str(match.lastgroup), match[0]
    if "\u30a1" <= shown <= "\u30ff":
        return Unit(form, form, kind, _KATAKANA, shown)
    if kind == "run" and _BEGINNING.search(match.string, max(match.start() - 4, 0), match.end()):
        return Unit(form, form, kind, 1.0, shown)
    if form in known.denials or (form in light and form not in known.turning):
        return Unit(form, form, "word", _TURNING if _AWAY.match(match.string, match.start()) else _LIGHT)
    if kind == "run":
        return Unit(form, form, kind, _weight(match), shown)
    key = stem(form)
    weight = _TURNING if form in known.turning else _HELPING if key in known.helping else 1.0
    return Unit(ASKING if key in known.asking else key, form, "hangul" if kind == "hangul" else "word", weight, shown)


def _worded(value: str, form: str) -> Unit:
    return Unit(value, form, "worded", _ONE if value == "1" else _WORDED)


def _weight(match: re.Match[str]) -> float:
    """Of a character; kana that follow those of China are mostly endings."""
    character = match[0]
    if "\u3041" <= character <= "\u309f":
        return _KANA if _FOLLOWING.match(match.string[max(match.start() - 1, 0) : match.start()]) else _SIGN
    return _CHARACTER


def _number(written: str, unit: str) -> str:
    minus, written = written.startswith("-"), written.lstrip("-")
    if _GROUPED.fullmatch(written):
        written = re.sub("[.,]", "", written)
    parts = [part.lstrip("0") or "0" for part in re.split("[.,:/]", written)]
    if unit and len(parts) == 1 and len(written) <= _LONGEST_NUMBER:
        parts = [str(int(parts[0]) * (_MYRIADS.get(unit) or _TENS[unit]))]
    return "-" * minus + ".".join(parts)


def _han(written: str) -> str:
    if all(character in _VALUES for character in written):
        return "".join(str(_VALUES[character]) for character in written).lstrip("0") or "0"
    total = section = figure = 0
    for character in written:
        if character in _VALUES:
            figure = _VALUES[character]
        elif character in _TENS:
            section, figure = section + (figure or 1) * _TENS[character], 0
        else:
            total, section, figure = total + (section + figure or 1) * _MYRIADS[character], 0, 0
    return str(total + section + figure)

"""Dates in figures (`2025-08-03`, `03.08.2025`, `Q2 2025`) and those of China, Japan and Korea (`2025年8月3日`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from threefold.text.dates.calendar import (
    FIRST_YEAR,
    LAST_YEAR,
    Days,
    Found,
    date_days,
    latest,
    month_days,
    part_of,
    season_days,
    year_days,
    years_near,
)

_ALONE = r"(?<![\w.,:/$€£#@-])"
_ISO = re.compile(_ALONE + r"(\d{4})([-/.])(\d{1,2})(?:\2(\d{1,2}))?(?![\w-]*[\w]|[./,:-]\d)", re.ASCII)
_SPACED = re.compile(_ALONE + r"(\d{4})(\.) ?(\d{1,2})\. ?(\d{1,2})\.(?!\d)", re.ASCII)  # as in Korea and Hungary
_TIMED = re.compile(_ALONE + r"(\d{4})(-)(\d\d)-(\d\d)(?=[T_]\d\d)", re.ASCII)
_DAY_FIRST = re.compile(_ALONE + r"(\d{1,2})([-/.])\s?(\d{1,2})\2\s?(\d{4})(?![\w-]*[\w]|[./,:-]\d)", re.ASCII)
# Without a year only after a word that a date follows: 3/4 is a fraction and 1.2. a chapter.
_SHORT = re.compile(
    r"\b(?:(?:on|before|after|since|until|by|dated|(?:on|before|after|since) the) (?P<m>\d{1,2})/(?P<d>\d{1,2})"
    r"|(?:am|vom|bis|zum|seit|dem|den) (?P<dd>\d{1,2})\.\s?(?P<mm>\d{1,2})\.)(?![\w/.%\"]|-\d)",
    re.ASCII | re.IGNORECASE,
)
_QUARTER = re.compile(r"\bQ([1-4])(?: of|,|/|-)? ?'?(\d{4})(?!\w)|(?<![\w.-])(\d{4})[ -/]?Q([1-4])\b")

_HAN = "〇零一二三四五六七八九十"
_CLOSE = {
    "初": 0,
    "上旬": 0,
    "初旬": 0,
    "초": 0,
    "중순": 1,
    "中旬": 1,
    "半ば": 1,
    "下旬": 2,
    "末": 2,
    "底": 2,
    "말": 2,
    "하순": 2,
}
_RELATIVE = {"前年": -2, "재작년": -2, "去年": -1, "昨年": -1, "작년": -1, "지난해": -1}
_RELATIVE |= {"今年": 0, "本年": 0, "올해": 0, "明年": 1, "来年": 1, "來年": 1, "내년": 1}
_SEASONS = {"春": 0, "夏": 1, "秋": 2, "冬": 3, "봄": 0, "여름": 1, "가을": 2, "겨울": 3}
_YEAR_CHARACTERS = "年년月월해"


def figures(text: str, today: int, year: int) -> Iterator[Found]:
    """Yield what dates in figures name; `today` and `year` are of the day of asking."""
    for pattern in (_TIMED, _SPACED, _ISO):
        for match in pattern.finditer(text):
            if days := _iso(match):
                yield Found(*match.span(), *days)
    for match in _DAY_FIRST.finditer(text):
        first, second, there = int(match[1]), int(match[3]), int(match[4])
        orders = {(second, first)} if match[2] == "." else {(second, first), (first, second)}
        for month, day in sorted(orders):
            if _usual(there) and (days := date_days(there, month, day)):
                yield Found(*match.span(), *days)
    for match in _SHORT.finditer(text):
        month, day = int(match["m"] or match["mm"]), int(match["d"] or match["dd"])
        if days := latest(tuple(date_days(y, month, day) for y in years_near(month, day, year)), today):
            yield Found(*match.span(), *days, yearly=True)
    for match in _QUARTER.finditer(text):
        there, month = int(match[2] or match[3]), 3 * int(match[1] or match[4]) - 2
        if _usual(there):
            yield Found(*match.span(), month_days(there, month)[0], month_days(there, month + 2)[1])


def eastern(text: str, today: int, year: int) -> Iterator[Found]:
    """Yield what dates in Han characters or Hangul name: a year, a month, its part, a day, some days, a season."""
    if not any(map(text.__contains__, _YEAR_CHARACTERS)):
        return
    for match in _east().finditer(text):
        if match["m"] is None and match["y"] is None and match["s"] is None:
            continue  # nothing, or "last year" alone, which is a word like others
        named = _number(match["y"]) if match["y"] else year + _RELATIVE[match["r"]] if match["r"] else None
        if match["y"] and (named is None or not _usual(named)):
            continue
        days = _eastern_days(match, named, today, year)
        if days:
            yield Found(*match.span(), *days, yearly=named is None)


@cache
def _east() -> re.Pattern[str]:
    # Compiled when the first text with such a character turns up: it takes longer than all others together.
    return re.compile(
        rf"(?<![\d{_HAN}])(?<!过去)(?<!過去)(?<!最近)(?<!农历)(?<!農曆)(?<!旧暦)"
        rf"(?:(?P<y>\d{{4}}|[{_HAN}]{{4}})\s?[年년]|(?P<r>{'|'.join(_RELATIVE)}))?(?:度|の|的|\s)?"
        rf"(?:(?P<m>\d{{1,2}}|[{_HAN[2:]}]{{1,2}})\s?[月월](?:份|分)?(?:の|的|\s)?"
        rf"(?:(?P<p>{'|'.join(_CLOSE)})|(?P<d>\d{{1,2}}|[{_HAN[2:]}]{{1,3}})\s?[日号號일]"
        rf"(?:(?:から|부터|\s)?[至到~〜～—–-]?\s?(?P<e>\d{{1,2}}|[{_HAN[2:]}]{{1,3}})\s?[日号號일](?!\s?间|間))?)?"
        rf"|(?P<s>{'|'.join(_SEASONS)})(?:天|季)?)?"
    )


def _eastern_days(match: re.Match[str], named: int | None, today: int, year: int) -> Days | None:
    month, day, last = (_number(match[name]) for name in "mde")
    if match["s"]:
        return season_days(named, _SEASONS[match["s"]]) if named is not None else None
    if month is None:
        return year_days(named) if named is not None else None

    def at(there: int) -> Days | None:
        if day is not None:
            return date_days(there, month, day, last)
        part = _CLOSE[match["p"]] if match["p"] else None
        return part_of(month_days(there, month), part) if 1 <= month <= 12 else None

    years = years_near(month, day, year) if named is None else (named,)
    return latest(tuple(at(y) for y in years), today)


def _iso(match: re.Match[str]) -> Days | None:
    year, month, day = int(match[1]), int(match[3]), match[4]
    if not _usual(year):
        return None
    if day:
        return date_days(year, month, int(day))
    if match[2] == "." or len(match[3]) < 2:
        return None
    if month == (year + 1) % 100:  # 2010-11 is rather two years than a month
        return year_days(year, 2)
    return month_days(year, month) if 1 <= month <= 12 else None


def _usual(year: int) -> bool:
    return FIRST_YEAR <= year <= LAST_YEAR


def _number(figure: str | None) -> int | None:
    """The value of figures, or of Han numerals: digit by digit, or up to 99 with 十."""
    if not figure:
        return None
    if figure.isdecimal():
        return int(figure)
    digits = [max(_HAN.index(c) - 1, 0) for c in figure]
    if "十" not in figure:
        return int("".join(map(str, digits)))
    tens, _, ones = figure.partition("十")
    if "十" in ones or len(tens) > 1 or len(ones) > 1:
        return None
    return 10 * (max(_HAN.index(tens) - 1, 0) if tens else 1) + (max(_HAN.index(ones) - 1, 0) if ones else 0)

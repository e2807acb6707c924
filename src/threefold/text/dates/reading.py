"""Reading: the dates, longer times and relative times that a text names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from threefold.text.dates import ranges
from threefold.text.dates.calendar import (
    FIRST_YEAR,
    LAST_YEAR,
    Days,
    Found,
    ago,
    lately,
    latest,
    part_of,
    relative,
    season_days,
    year_days,
)
from threefold.text.dates.marks import Mark, Marked, marked
from threefold.text.dates.months import Month, modified, month, other_age, part
from threefold.text.dates.period import Period

# A question is short. Of a long text the rest says nothing about the time that is asked for.
LONGEST = 4_000
_DECADES = frozenset({"s", "er", "ern", "ler", "lar"})
_THAI_YEARS = ("ปี", "ค.ศ.")
# Marks of the direction of writing stand between the figures of Arabic and Hebrew dates.
_DIRECTION = dict.fromkeys((0x200E, 0x200F, 0x061C))
# What every date in figures has.
_FIGURE = re.compile(r"[\d年년月월해]")


def periods(text: str, now: datetime) -> tuple[Period, ...]:
    """The periods of the calendar that `text` names, in order; `now` says what is "yesterday", in its own time zone.

    Read are dates in figures and in words, months, their beginning, middle and end, years, quarters, seasons (of the
    northern half: spring is March to May), days of the week, relative times, and ranges. What cannot be a date, such as
    30 February or a year outside 1970 to 2100, names nothing. A part of the text that says no year is `yearly`.
    """
    text = text[:LONGEST]
    if not text.isascii():
        text = text.translate(_DIRECTION)
    today, year = now.date().toordinal(), now.year
    found: list[Found] = []
    if _FIGURE.search(text):
        from threefold.text.dates import numeric  # its patterns take long to compile

        found += numeric.figures(text, today, year)
        found += numeric.eastern(text, today, year)
        for one in found:
            text = text[: one.start] + " " * (one.end - one.start) + text[one.end :]
    if seen := marked(text):
        found += _worded(seen, today, year)
    found.sort(key=lambda one: (one.start, one.since))
    if len(found) > 1:
        found = ranges.joined(found, text)
    return tuple(dict.fromkeys(one.period() for one in found))


def _worded(seen: Marked, today: int, year: int) -> Iterator[Found]:
    used: set[int] = set()
    for at, mark in enumerate(seen.marks):
        if mark.kind in "mvabk" and at not in used and (read := month(seen, at, today, year)):
            used.update(read.marks)
            yield from _found(seen, read)
    for at, mark in enumerate(seen.marks):
        if mark.kind == "s" and (season := _season(seen, at, today, year)):
            used.update(season[1])
            yield season[0]
    for at, mark in enumerate(seen.marks):
        if at in used:
            continue
        if mark.kind == "n":
            if one := _year(seen, at):
                used.add(at)
                yield one
        else:
            for days in _relative(seen, mark, today):
                yield _at(seen, mark, mark, *days)
            if mark.kind == "w":
                yield from _weekday(seen, at, mark, today, used)


def _at(seen: Marked, first: Mark, last: Mark, since: int, until: int, **more: bool) -> Found:
    return Found(seen.cut.found[first.first].start(), seen.cut.found[last.last].end(), since, until, **more)


def _found(seen: Marked, read: Month) -> Iterator[Found]:
    if read.days:
        first, last = seen.marks[min(read.marks)], seen.marks[max(read.marks)]
        yield _at(seen, first, last, *read.days, yearly=read.yearly)


def _relative(seen: Marked, mark: Mark, today: int) -> Iterator[Days]:
    kind, unit = mark.kind[0], mark.kind[1:]
    if kind == "r":
        if seen.word(mark.last + 1) == "of":
            return  # "the last week of February"
        context = seen.known.context.get(seen.word(mark.first))
        if context is None or not context.isdisjoint(seen.cut.words):
            yield relative(today, unit, mark.value)
    elif kind == "g":
        count = mark.number if mark.number is not None else mark.value
        if (mark.number is not None or mark.value) and (days := ago(today, unit, count)):
            yield days
    elif kind == "z":
        if days := lately(today, unit, mark.number if mark.number is not None else 1):
            yield days
    elif kind == "W":
        yield from _named_day(today, mark.value % 7, mark.value // 7)


def _named_day(today: int, weekday: int, offset: int) -> Iterator[Days]:
    """ "Last Tuesday" is the latest before today; when that is in this week, the one before may be meant too."""
    monday = today - (today - 1) % 7
    if offset < 0:
        day = today - ((today - 1 - weekday) % 7 or 7)
        yield day, day + 1
        if day >= monday:
            yield day - 7, day - 6
    else:
        day = monday + weekday + 7 * offset
        yield day, day + 1


def _weekday(seen: Marked, at: int, mark: Mark, today: int, used: set[int]) -> Iterator[Found]:
    before = seen.word(mark.first - 1)
    if before in seen.known.sets["not_weekday"]:
        return
    if seen.word(mark.first)[0] in "周週" and (before == "#" or before in seen.known.numbers):
        return  # 一周日程: "one week", not a Sunday
    if any(near in used and seen.near(min(at, near), max(at, near), ",") for near in (at - 1, at + 1)):
        return  # "Monday, May 5" is the date
    if (offset := modified(seen, at, at)) is not None:
        for days in _named_day(today, mark.value, offset[0]):
            yield _at(seen, mark, mark, *days)
        return
    day = today - (today - 1 - mark.value) % 7
    yield _at(seen, mark, mark, day, day + 1, weekly=True)


def _season(seen: Marked, at: int, today: int, year: int) -> tuple[Found, set[int]] | None:
    mark = seen.marks[at]
    if seen.word(mark.last + 1) in seen.known.sets["not_season"] or other_age(seen, at, at):
        return None
    named = {at}
    years: tuple[int, ...] = ()
    for near in (at + 1, at - 1):
        low, high = min(at, near), max(at, near)
        there = seen.year(near) if seen.near(low, high, ",") else None
        if there is None and seen.near(low, high) and seen.marks[near].kind == "ry":
            there = year + seen.marks[near].value
        if there is not None:
            # "Winter 2024" may be the one that begins or the one that ends in it.
            years, named = (there - 1, there) if mark.value == 3 else (there,), named | {near}
            break
    if years:
        since, until = season_days(years[0], mark.value)[0], season_days(years[-1], mark.value)[1]
    elif days := _season_without_year(seen, at, today, year):
        since, until = days
    else:
        return None
    which = part(seen, at, at)
    since, until = part_of((since, until), which[0] if which else None)
    yearly = not years and modified(seen, at, at) is None
    first, last = seen.marks[min(named)], seen.marks[max(named)]
    return _at(seen, first, last, since, until, yearly=yearly), named


def _season_without_year(seen: Marked, at: int, today: int, year: int) -> Days | None:
    mark = seen.marks[at]
    evidence = seen.known.evidence.get(seen.word(mark.first))
    if evidence is not None and seen.word(mark.first - 1) not in evidence:
        return None
    around = [season_days(y, mark.value) for y in range(year - 2, year + 2)]
    if offset := modified(seen, at, at):
        if offset[0] < 0:
            return max((days for days in around if days[1] <= today), default=around[0])
        ahead = [days for days in around if days[1] > today]
        return ahead[min(offset[0], len(ahead) - 1)] if ahead else None
    words = seen.cut.words
    inside = any(
        "_".join(words[max(mark.first - n, 0) : mark.first]) in seen.known.sets["season_inside"] for n in (1, 2, 3)
    )
    if seen.word(mark.first) in seen.known.sets["season_alone"] or (inside and seen.word(mark.last + 1) != "of"):
        return latest(tuple(around[:3]), today)
    return None


def _year(seen: Marked, at: int) -> Found | None:
    """A year alone, or a decade ("the 1990s")."""
    mark = seen.marks[at]
    end = seen.cut.found[mark.last].end()
    if mark.value % 10 == 0 and seen.word(mark.last + 1) in _DECADES and seen.text[end : end + 1].isalpha():
        return _at(seen, mark, mark, *year_days(mark.value, 10)) if FIRST_YEAR <= mark.value <= LAST_YEAR else None
    year = seen.year(at)
    if year is None:
        return None
    joints = seen.known.sets["ranges"] | seen.known.sets["and"]
    chained = any(
        seen.near(min(at, other), max(at, other), *joints) and seen.year(other) is not None and _said_year(seen, other)
        for other in (at - 1, at + 1)
    )
    which = part(seen, at, at)
    if not chained and which is None and not _said_year(seen, at):
        return None
    return _at(seen, mark, mark, *part_of(year_days(year), which[0] if which else None))


def _said_year(seen: Marked, at: int) -> bool:
    """Whether a word beside the figure says that it is a year: "in" before it, "года" after it, or "of" before it when
    a clause ends there; else it may be a price or a number of people."""
    mark, sets = seen.marks[at], seen.known.sets
    before, after = seen.word(mark.first - 1), seen.word(mark.last + 1)
    if before in sets["years_sure"] or after in sets["years_after"] or (before == "(" and after == ")"):
        return True
    if seen.text[: seen.cut.found[mark.first].start()].rstrip().endswith(_THAI_YEARS):
        return True
    if after == "'" and seen.word(mark.last + 2) in sets["years_turkish"]:
        return True
    if mark.value % 100 and seen.german:
        return True
    return before in sets["years_hard"] and seen.ends_after(at)

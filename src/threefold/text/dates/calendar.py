"""Arithmetic of the calendar: days are counted, and every answer stays inside what `datetime` can hold."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import NamedTuple

from threefold.text.dates.period import Period

FIRST_YEAR, LAST_YEAR = 1970, 2100
EARLY, MID, LATE = 0, 1, 2
# Thirds as people use them, overlapping a little: "mid-January" may be the 10th, "late" the 19th.
_PARTS = ((0.0, 0.36), (0.3, 0.7), (0.6, 1.0))
# Larger counts of days, weeks, months, years name no time that anything is stored under.
_MOST = {"d": 3_660, "w": 520, "m": 600, "y": 100}


class Found(NamedTuple):
    """A period at the characters `start` to `end` of the text; `since` and `until` are days, `until` not included.

    `yearly` is a date without its year, `weekly` a day of the week.
    """

    start: int
    end: int
    since: int
    until: int
    yearly: bool = False
    weekly: bool = False

    def period(self) -> Period:
        """The period, held inside what a `datetime` can say."""
        since = min(max(self.since, 1), date.max.toordinal() - 1)
        until = min(max(self.until, since + 1), date.max.toordinal())
        return Period(_midnight(since), _midnight(until), self.yearly, self.weekly)


Days = tuple[int, int]


def _midnight(day: int) -> datetime:
    there = date.fromordinal(day)
    return datetime(there.year, there.month, there.day, tzinfo=UTC)


def month_days(year: int, month: int) -> Days:
    """The days of a month; `month` may run over the year's end."""
    year, month = min(max(year + (month - 1) // 12, 1), 9998), (month - 1) % 12 + 1
    first = date(year, month, 1).toordinal()
    return first, date(year + month // 12, month % 12 + 1, 1).toordinal()


def year_days(year: int, count: int = 1) -> Days:
    """The days of `count` years."""
    return month_days(year, 1)[0], month_days(year + count, 1)[0]


def part_of(days: Days, part: int | None) -> Days:
    """The beginning, the middle or the end of `days`; all of them without a part."""
    if part is None:
        return days
    since, until = days
    low, high = _PARTS[part]
    return since + int((until - since) * low), since + max(1, round((until - since) * high))


def week_days(day: int, offset: int) -> Days:
    """The week, from Monday, that is `offset` weeks from that of `day`."""
    monday = day - (day - 1) % 7 + 7 * offset
    return monday, monday + 7


def season_days(year: int, season: int) -> Days:
    """Spring, summer, autumn, winter (0 to 3) of the northern half; winter is the one that begins in `year`."""
    since = month_days(year, 3 + 3 * season)[0]
    return since, month_days(year, 6 + 3 * season)[0]


def latest(days_of_year: tuple[Days | None, ...], today: int) -> Days | None:
    """Of the same days in several years, those that began last; the first ones if none has begun."""
    known = [days for days in days_of_year if days]
    begun = [days for days in known if days[0] <= today]
    return max(begun) if begun else min(known, default=None)


def date_days(year: int, month: int, day: int, last: int | None = None) -> Days | None:
    """One day of a month, or from `day` to `last`; nothing when there is no such day."""
    if not 1 <= month <= 12 or not 1 <= year <= 9998:
        return None
    first, end = month_days(year, month)
    if not 1 <= day <= end - first:
        return None
    last = last if last is not None and day <= last <= end - first else day
    return first + day - 1, first + last


def years_near(month: int, day: int | None, year: int) -> tuple[int, ...]:
    """Years around `year` in which a date without a year is looked for; leap years for 29 February."""
    if (month, day) == (2, 29):
        return tuple(y for y in range(year - 8, year + 1) if y > 0 and date_days(y, 2, 29))
    return tuple(y for y in (year - 1, year) if y > 0)


def shifted(today: int, unit: str, count: int) -> int:
    """The day that is `count` days, weeks, months or years (`d w m y`) from `today`."""
    if unit in "dw":
        return today + count * (7 if unit == "w" else 1)
    there = date.fromordinal(today)
    first, end = month_days(there.year, there.month + count * (12 if unit == "y" else 1))
    return first + min(there.day, end - first) - 1


def relative(today: int, unit: str, offset: int) -> Days:
    """The day, week, weekend, month, quarter or year (`d w e m q y`) that is `offset` from that of `today`."""
    there = date.fromordinal(today)
    if unit == "d":
        return today + offset, today + offset + 1
    if unit == "w":
        return week_days(today, offset)
    if unit == "e":  # on a Sunday, "last weekend" is the one before
        monday = week_days(today, offset)[0]
        return monday + 5, monday + 7
    if unit == "m":
        return month_days(there.year, there.month + offset)
    if unit == "q":
        first = there.month - (there.month - 1) % 3 + 3 * offset
        return month_days(there.year, first)[0], month_days(there.year, first + 2)[1]
    return year_days(there.year + offset)


def ago(today: int, unit: str, count: int) -> Days | None:
    """`count` units ago: that day, or a week, a month, a year around it, as people say it of longer times.

    A count of 0 stands for "a few": from one to six units ago.
    """
    if count > _MOST[unit]:
        return None
    if count == 0:
        return shifted(today, unit, -6), shifted(today, unit, -1) + 1
    there, half = shifted(today, unit, -count), {"d": 0, "w": 3, "m": 15, "y": 183}[unit]
    return there - half, there + half + 1


def lately(today: int, unit: str, count: int) -> Days | None:
    """The last `count` units up to today; a count of 0 stands for "few"."""
    return None if count > _MOST[unit] else (shifted(today, unit, -(count or 4)), today + 1)

"""Months in words, with the day, the year and the part of the month that stand beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from threefold.text.dates.calendar import FIRST_YEAR, Days, date_days, latest, month_days, part_of, years_near
from threefold.text.dates.marks import Marked

_BUDDHIST = 543
_ENGLISH = frozenset({"last", "past", "this", "next"})
_THAI = ("\u0e00", "\u0e7f")


class Month(NamedTuple):
    """What a month's name and the marks beside it say; `days` is nothing when there is no such date."""

    days: Days | None
    marks: set[int]
    yearly: bool


class _Day(NamedTuple):
    first: int
    last: int | None
    marks: set[int]
    left: bool


def month(seen: Marked, at: int, today: int, year: int) -> Month | None:
    """The date around the month at mark `at`, or nothing when the word is likely no month."""
    mark = seen.marks[at]
    number = mark.number or 0 if mark.kind == "k" else mark.value
    if not 1 <= number <= 12:
        return None
    day = _day(seen, at)
    marks = {at} | (day.marks if day else set())
    twin = seen.mark(at + 1)  # "شباط/فبراير" is one month in two ways of naming months
    if twin and twin.kind in "mvab" and twin.value == number and seen.gap(at, at + 1) == ["/"]:
        marks.add(at + 1)
    if other_age(seen, min(marks), max(marks)):
        return Month(None, marks, yearly=False)
    named = _year_beside(seen, min(marks), max(marks), year)
    marks |= named[1] if named else set()
    offset = None if named else modified(seen, min(marks), max(marks))
    marks |= offset[1] if offset else set()
    which = None if day else part(seen, min(marks), max(marks)) or part(seen, at, at)
    if not _certain(seen, at, day, named is not None, offset is not None or which is not None):
        return None
    marks |= which[1] if which else set()

    def there(y: int) -> Days | None:
        if day:
            return date_days(y, number, day.first, day.last)
        return part_of(month_days(y, number), which[0] if which else None)

    if named:
        return Month(there(named[0]), marks, yearly=False)
    if offset:
        return Month(_modified_days(there, offset[0], today, year), marks, yearly=False)
    years = years_near(number, day.first if day else None, year)
    return Month(latest(tuple(there(y) for y in years), today), marks, yearly=True)


def part(seen: Marked, first: int, last: int) -> tuple[int, set[int]] | None:
    """The part ("early", "the end of") that is said of the marks `first` to `last`."""
    before, after = seen.mark(first - 1), seen.mark(last + 1)
    if before and before.kind == "p" and seen.near(first - 1, first):
        return before.value, {first - 1}
    if after and after.kind == "q" and seen.near(last, last + 1):
        return after.value, {last + 1}
    return None


def other_age(seen: Marked, first: int, last: int) -> bool:
    """Whether a year is beside the marks in which nothing was recorded: "7 January 1943" is not every 7 January."""
    for near, low, high in ((last + 1, last, last + 1), (first - 1, first - 1, first)):
        mark = seen.mark(near)
        if mark and mark.kind == "n" and 1000 <= mark.value < FIRST_YEAR and seen.near(low, high, ","):
            return True
    return False


def modified(seen: Marked, first: int, last: int) -> tuple[int, set[int]] | None:
    """-1, 0 or 1 for "last", "this" or "next" right beside the marks `first` to `last`."""
    before, after = seen.mark(first - 1), seen.mark(last + 1)
    if before and before.kind == "l" and not seen.gap(first - 1, first):
        return before.value, {first - 1}
    # In English these words come first: "August last ..." goes on with something else.
    if after and after.kind == "l" and not seen.gap(last, last + 1) and seen.word(after.first) not in _ENGLISH:
        return after.value, {last + 1}
    return None


def _modified_days(there: Callable[[int], Days | None], offset: int, today: int, year: int) -> Days | None:
    around = [days for y in range(max(year - 2, 1), year + 3) if (days := there(y))]
    if offset < 0:
        return max((days for days in around if days[1] <= today), default=None)
    ahead = sorted(days for days in around if days[1] > today)
    return ahead[0] if ahead else None


def _day(seen: Marked, at: int) -> _Day | None:
    """The day, or the days, right before or after the month."""
    if (day := seen.day(at - 1)) is not None and seen.near(at - 1, at):
        if (first := seen.day(at - 2)) is not None and first < day and _to(seen, at - 2, at - 2):
            return _Day(first, day, {at - 2, at - 1}, left=True)
        return _Day(day, None, {at - 1}, left=True)
    if (day := seen.day(at + 1)) is None or not set(seen.gap(at, at + 1)) <= {".", "the", "-", "ה", "le"}:
        return None
    last, after = seen.day(at + 2), seen.mark(at + 3)
    other = after is not None and after.kind in "mvabk" and seen.near(at + 2, at + 3)
    if last is not None and last > day and not other and _to(seen, at + 1, at):
        return _Day(day, last, {at + 1, at + 2}, left=False)
    return _Day(day, None, {at + 1}, left=False)


def _to(seen: Marked, day: int, first: int) -> bool:
    """Whether the days at the marks `day` and the next are joined: by "to", or "and" after "between" before `first`."""
    sets, gap = seen.known.sets, seen.gap(day, day + 1)
    joints = sets["ranges"]
    if seen.word(seen.marks[first].first - 1) in sets["between"]:
        joints |= sets["and"]
    return any(word in joints for word in gap) and seen.near(day, day + 1, *joints)


def _year_beside(seen: Marked, first: int, last: int, year: int) -> tuple[int, set[int]] | None:
    for near, low, high in ((last + 1, last, last + 1), (first - 1, first - 1, first)):
        if not seen.near(low, high, ","):
            continue
        if (named := seen.year(near)) is not None:
            return named, {near}
        mark = seen.marks[near]
        if mark.kind == "ry":
            return year + mark.value, {near}
        if mark.kind == "n" and 2513 <= mark.value <= 2643 and _thai(seen):
            return mark.value - _BUDDHIST, {near}
    return None


def _thai(seen: Marked) -> bool:
    """Whether the text is Thai, whose years begin 543 earlier."""
    return any(_THAI[0] <= word[:1] <= _THAI[1] for word in seen.cut.words)


def _certain(seen: Marked, at: int, day: _Day | None, dated: bool, said: bool) -> bool:
    """Whether the word is a month: a plain name always, others with a number or a word beside them."""
    mark = seen.marks[at]
    if mark.kind in "mk" or (dated and mark.kind != "b"):
        return True
    if mark.kind == "b":
        return dated and day is not None
    if mark.kind == "a":
        return day is not None
    word, before, start = seen.word(mark.first), seen.word(mark.first - 1), seen.cut.found[mark.first].start()
    evidence, sets = seen.known.evidence.get(word, frozenset()), seen.known.sets
    capital = not word.isascii() or seen.text[start].isupper()
    if day is not None:
        return day.left or capital or before in evidence or before == "on"
    if said or seen.word(mark.last + 1) in sets["closing"]:
        return True
    return before in evidence and (capital or before not in sets["capital"])

"""Ranges: two dates that a text joins into one period, as in "between May 3 and May 10" or "2019-2021"."""

from __future__ import annotations

from datetime import date

from threefold.text.dates.calendar import Found
from threefold.text.dates.words import table, tokens


def joined(found: list[Found], text: str) -> list[Found]:
    """Put pairs together that a word such as "to" joins, or "and" after "between"; `found` is in order."""
    done: list[Found] = []
    for one in found:
        if done and (both := _range(done[-1], one, text)):
            done[-1] = both
        else:
            done.append(one)
    return done


def _range(first: Found, second: Found, text: str) -> Found | None:
    if not 0 < second.start - first.end <= 24 or first.weekly or second.weekly:
        return None
    sets, words = table().sets, tokens(text[first.end : second.start]).words
    rest = [word for word in words if word not in sets["inside"] and word != ","]
    joints = [word for word in words if word in sets["ranges"]]
    if not joints and any(word in sets["and"] for word in words):
        before = tokens(text[max(first.start - 24, 0) : first.start]).words[-2:]
        joints = [word for word in before if word in sets["between"]]
    allowed = sets["ranges"] | sets["and"]
    if not joints or any(word not in allowed for word in rest):
        return None
    since, until, yearly = _within(first, second)
    return Found(first.start, second.end, since, until, yearly=yearly) if since < until else None


def _within(first: Found, second: Found) -> tuple[int, int, bool]:
    """The days from the first to the end of the second; a date without a year takes that of the other."""
    since, until = first.since, second.until
    if first.yearly and not second.yearly:
        since = _moved(since, date.fromordinal(second.since).year)
        since = _moved(since, date.fromordinal(since).year - 1) if since > second.since else since
    elif first.yearly or second.yearly:
        length = second.until - second.since
        ahead = _moved(second.since, date.fromordinal(first.since).year)
        ahead = _moved(ahead, date.fromordinal(ahead).year + 1) if ahead < first.since else ahead
        until = ahead + length
    return since, until, first.yearly and second.yearly


def _moved(day: int, year: int) -> int:
    """The same day in another year; 29 February becomes 1 March."""
    there = date.fromordinal(day)
    year = min(max(year, 1), 9998)
    return date(year, 3, 1).toordinal() if (there.month, there.day) == (2, 29) else there.replace(year=year).toordinal()

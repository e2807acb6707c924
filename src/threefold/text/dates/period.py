"""Periods of the calendar, and how near a time is to them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_DAY = 86_400.0
_WEEK = 7 * _DAY
_YEAR = 365.2425 * _DAY  # off by less than a day from any single year, which the tolerance covers
_WIDEST = 90 * _DAY
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Period(NamedTuple):
    """A part of the calendar from `since` until just before `until`, both UTC.

    `yearly` and `weekly` say that it comes again: "in April" is every April, "on Monday" every Monday. `since` is then
    that of the latest one that had begun when the text was read.
    """

    since: datetime
    until: datetime
    yearly: bool = False
    weekly: bool = False


def nearness(periods: Sequence[Period], at: datetime) -> float:
    """How near `at` (UTC when it has no zone) is to the nearest of `periods`, from 0 to 1; see `nearness_of`."""
    import numpy as np

    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    return float(nearness_of(periods, np.array([(at - _EPOCH).total_seconds()]))[0])


def nearness_of(periods: Sequence[Period], ats: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The nearness of each of `ats` (seconds since 1970, UTC) to the nearest of `periods`; 0 when there are none.

    Inside a period, and up to a tolerance outside, it is 1; beyond, exp(-½ x²), where x is the distance past the
    tolerance in quarters of the period's length, each quarter at least a day and at most 90. The tolerance is a day,
    since days begin at other times elsewhere; half a day for periods that come every week.
    """
    import numpy as np

    best = np.zeros(len(ats))
    for period in periods:
        since = (period.since - _EPOCH).total_seconds()
        length = (period.until - period.since).total_seconds()
        after = np.asarray(ats, np.float64) - since
        if period.weekly or period.yearly:
            cycle = _WEEK if period.weekly else _YEAR
            after %= cycle
            outside = np.where(after < length, 0.0, np.minimum(after - length, cycle - after))
        else:
            outside = np.maximum(np.maximum(-after, after - length), 0.0)
        tolerance = _DAY / 2 if period.weekly else _DAY
        quarter = min(max(length / 4, _DAY), _WIDEST)
        past = np.minimum(np.maximum(outside - tolerance, 0.0) / quarter, 40.0)
        np.maximum(best, np.exp(-0.5 * past * past), out=best)
    return best

"""Moments: aware UTC datetimes above the store, integer microseconds since 1970 inside it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime

from threefold.errors import InvalidInput

# A moment as callers may give it: seconds since 1970, ISO text, or none for now or for no bound.
Moment = datetime | str | float | None

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def now() -> datetime:
    """The present moment in UTC."""
    return datetime.now(UTC)


def to_micros(moment: datetime) -> int:
    """Whole microseconds since 1970-01-01 UTC."""
    return (moment - EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """The moment `micros` microseconds after 1970-01-01 UTC."""
    return EPOCH + timedelta(microseconds=micros)


def parse_moment(value: datetime | date | str | int | float, name: str) -> datetime:
    """An aware UTC datetime from a datetime, a date, ISO 8601 text, or seconds since 1970.

    A time without a zone is taken as UTC. Milliseconds since 1970 are recognised by their size.

    Raises:
        InvalidInput: where `value` is not a moment between the years 1 and 9999; `name` is the argument's name.
    """
    try:
        if isinstance(value, datetime):
            moment = value
        elif isinstance(value, date):
            moment = datetime(value.year, value.month, value.day, tzinfo=UTC)
        elif isinstance(value, str):
            moment = datetime.fromisoformat(value.strip())
        elif isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if abs(value) > 1e11 else value
            moment = EPOCH + timedelta(seconds=seconds)
        else:
            raise InvalidInput(f"{name} must be a datetime, ISO text or seconds, not {type(value).__name__}")
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(f"{name} {value!r} is no moment; write it like 2026-11-29 or 2026-11-29T08:30:00Z") from None


def iso(moment: datetime) -> str:
    """ISO 8601 in UTC with a `Z`, microseconds only where there are some."""
    moment = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return moment.isoformat().replace("+00:00", "Z")


def retry_after(value: str | None) -> float | None:
    """What a header `Retry-After` says, in seconds from now: it is a number of them, or a moment. None for neither."""
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(value).astimezone(UTC) - now()).total_seconds())
    except (ValueError, OverflowError):
        return None

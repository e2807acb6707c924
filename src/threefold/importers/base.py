"""What every importer is, what it is given, what it gives; and the small conversions that all of them need.

All of it is pure: reading files is the business of `files.py`, splitting them into records of `records.py`.
"""

from __future__ import annotations

import hashlib
import json
import math
import mimetypes
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from threefold.errors import InvalidInput
from threefold.model.scope import MAX_ID_BYTES
from threefold.model.times import parse_moment
from threefold.model.turn import Turn

MAX_PAYLOAD = 64_000
MAX_TITLE = 120
MAX_NAME = 200
MAX_TOKENS = 10**12
_EARLIEST, _LATEST = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
_OLDEST_STAMP = 10**8  # seconds: March 1973; a smaller number is a count or a year, not a moment
_CUT_ZONE = re.compile(r"\s*(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?)\s*(?:[+-][\d:]{0,4}|UTC|GMT)\s*")
_NUMBER = re.compile(r"\s*-?\d+(\.\d+)?\s*")


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that was not imported: `where` it is (path, zip member, line) and `why`, in a short sentence."""

    where: str
    why: str


@dataclass(frozen=True, slots=True)
class Record:
    """One JSON object of a file: a line of a JSONL file, or an element of a JSON list. `index` counts from 0."""

    where: str
    index: int
    value: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """A file that lies beside an export, such as an uploaded image."""

    name: str
    data: bytes


class Source(Protocol):
    """One file, as an importer sees it."""

    @property
    def where(self) -> str:
        """How the file is named to the user."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The segments of its path; the last one is its name."""

    @property
    def fallback(self) -> datetime:
        """The time of what stands before any known time: the first one in the file, else when it was last changed."""

    def records(self) -> Iterator[Record | Skipped]:
        """Its records in order; what cannot be read as a JSON object is skipped, one by one."""

    def beside(self, name: str) -> Found | Skipped | None:
        """The file beside it that is called `name`, or whose name begins with this id."""


class Importer(Protocol):
    """One history format. A module with these three names is one."""

    KIND: str

    def sniff(self, record: Mapping[str, Any]) -> bool:
        """Whether a record is of this format."""

    def read(self, source: Source) -> Iterator[Turn | Skipped]:
        """The turns of a file, each as soon as it is known, and what was left out."""


def fold_records(
    source: Source, take: Callable[[Record], Iterable[Turn | Skipped]], end: Callable[[], Iterable[Turn | Skipped]]
) -> Iterator[Turn | Skipped]:
    """Hand each record of `source` to `take`, pass on what could not be read, and finish with `end`."""
    for record in source.records():
        if isinstance(record, Skipped):
            yield record
        else:
            yield from take(record)
    yield from end()


class Clock:
    """Reads the times of one file. What has no usable time gets that of the record before it."""

    def __init__(self, fallback: datetime) -> None:
        self.last = fallback
        self.unusable = 0

    def read(self, *values: object) -> datetime:
        """The first usable moment among `values`, else the last one read."""
        for value in values:
            found = moment(value)
            if found is not None:
                self.last = found
                return found
        self.unusable += any(value not in (None, "", 0) for value in values)
        return self.last


class Tally:
    """Counts the records that are mere bookkeeping of the tool that wrote them, to be reported once for a file."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, what: str) -> None:
        """Count one record."""
        self._counts[what[:60] or "(no type)"] += 1

    def report(self, source: Source, clock: Clock) -> Iterator[Skipped]:
        """At most one line about bookkeeping and one about unusable times."""
        if self._counts:
            listed = ", ".join(f"{count} {what}" for what, count in sorted(self._counts.items())[:20])
            yield Skipped(source.where, f"bookkeeping records that hold no words of a conversation: {listed}")
        if clock.unusable:
            why = f"{clock.unusable} records have an unusable time; each was kept with the time of the one before"
            yield Skipped(source.where, why)


def mapping(value: object) -> Mapping[str, Any]:
    """`value` where it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """`value` where it is a JSON list, else an empty one."""
    return value if isinstance(value, list) else []


def text(value: object) -> str:
    """`value` where it is text, else empty text."""
    return value if isinstance(value, str) else ""


def first_text(*values: object) -> str:
    """The first of `values` that is text and not blank, else empty text."""
    return next((value for value in values if isinstance(value, str) and value.strip()), "")


def moment(value: object) -> datetime | None:
    """A moment between 1970 and 2200, from ISO text or seconds or milliseconds (also as text); else None.

    Zero is no moment: exports write it where they know none.
    """
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value)
    if isinstance(value, str) and (cut := _CUT_ZONE.fullmatch(value)):
        value = cut[1]  # a zone of which only the sign is left
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not value:
        return None
    if not isinstance(value, str) and not _OLDEST_STAMP < value < math.inf:
        return None
    try:
        found = parse_moment(value, "time")
    except InvalidInput:
        return None
    return found if _EARLIEST <= found < _LATEST else None


def digest(*parts: object) -> str:
    """A short stable name for JSON values."""
    joined = json.dumps(parts, ensure_ascii=True, sort_keys=True, default=str)
    return hashlib.sha256(joined.encode()).hexdigest()[:32]


def identifier(value: object) -> str | None:
    """`value` as an id that the store takes, or None where there is none; a hash replaces one that is too long."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        return None
    clean = value.replace("\x00", "\ufffd")
    return clean if len(clean.encode()) <= MAX_ID_BYTES // 4 else f"{clean[:32]}-{digest(clean)}"


def title_from(words: str) -> str | None:
    """The first line of `words`, shortened, to serve as a title."""
    line = next((line.strip() for line in words.splitlines() if line.strip()), "")
    return (line if len(line) <= MAX_TITLE else line[: MAX_TITLE - 1].rstrip() + "…") or None


def bounded(payload: Any) -> Any:
    """`payload`, or its beginning where it is very long (what is unknown may be a megabyte of screen output)."""
    written = json.dumps(payload, ensure_ascii=False)
    if len(written) <= MAX_PAYLOAD:
        return payload
    return {"beginning": written[:MAX_PAYLOAD], "characters": len(written)}


def file_name(name: object, default: str) -> str:
    """`name` as a plain file name: its last segment, without control characters, at most 200 bytes long."""
    last = re.split(r"[/\\]", text(name))[-1].strip()
    clean = "".join(c for c in last if c.isprintable())
    if len(clean.encode()) > MAX_NAME:
        stem, dot, ending = clean.rpartition(".")
        ending = dot + ending if stem and len(ending.encode()) < 20 else ""
        clean = clean.encode()[: MAX_NAME - len(ending.encode())].decode(errors="ignore") + ending
    return default if clean in ("", ".", "..") else clean


def mime_of(name: str, said: object = None) -> str | None:
    """A media type: what the source says where that looks like one, else from the file's name."""
    return said if isinstance(said, str) and re.fullmatch(r"[\w.+-]+/[\w.+-]+", said) else mimetypes.guess_type(name)[0]


def tokens_of(usage: object, names: Mapping[str, str]) -> dict[str, int]:
    """The counts of `usage` under our names; what is no sensible count is left out."""
    given = mapping(usage)
    found: Counter[str] = Counter()
    for theirs, ours in names.items():
        count = given.get(theirs)
        if isinstance(count, int) and not isinstance(count, bool) and 0 < count < MAX_TOKENS:
            found[ours] += count
    return dict(found)

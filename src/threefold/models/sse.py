"""Server-sent events out of bytes, as the HTML standard says (section 9.2.6): any line ends, any pieces. Pure."""

from __future__ import annotations

import codecs
import re
from typing import Final, NamedTuple

_ENDS: Final = re.compile(r"\r\n|\n|\r")


class Event(NamedTuple):
    """One event: its kind, `message` where the server names none, and its data, whose lines are joined by newlines."""

    name: str
    data: str


class EventParser:
    """Takes bytes as they come and gives the events that they complete; what the stream leaves unfinished is no event.

    `id` and `retry` mean nothing here: an answer of a model cannot be taken up again where it broke off.
    """

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._begun = False
        self._after_cr = False
        self._line: list[str] = []
        self._name = ""
        self._data: list[str] = []

    def feed(self, data: bytes) -> list[Event]:
        """The events that end in `data`."""
        text = self._decode(data)
        if not text:
            return []
        if not self._begun:
            self._begun = True
            text = text.removeprefix("\ufeff")
        if self._after_cr:  # the line ended with CR already: an LF behind it is the same end
            text = text.removeprefix("\n")
        self._after_cr = text.endswith("\r")
        first, *others = _ENDS.split(text)
        self._line.append(first)
        found = []
        for begun in others:
            event = self._ended("".join(self._line))
            self._line = [begun]
            if event is not None:
                found.append(event)
        return found

    def _ended(self, line: str) -> Event | None:
        """The event that a line ends, which only an empty one does."""
        if not line:
            event = Event(self._name or "message", "\n".join(self._data)) if self._data else None
            self._name, self._data = "", []
            return event
        field, _, value = line.partition(":")  # a comment has no name before the colon
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        return None

"""Finding secrets with Kingfisher's rules and a few of ours, phone numbers with Google's library; both offline."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from threefold.errors import Unavailable
from threefold.redaction.spans import Span, private, replaced, views

# Nothing shorter is a secret: the digits of a PIN under its name.
_SHORTEST: Final = 4
# A long text is looked at in windows, which keeps the time in proportion; the largest secrets fit where they overlap.
_WINDOW: Final = 1 << 17
_OVERLAP: Final = 1 << 14
_WEIGHTS: Final = {"medium": 1, "high": 2}
_NAME: Final = re.compile(r"[a-z]+\.(?:secrets/)?(?:generic-)?(.+?)(?:\.\d+)?")


class Detector:
    """Replaces secrets in a text, and with `personal` what tells who somebody is, by marks that say what it was."""

    def __init__(self, personal: bool) -> None:
        self._personal = personal

    def __call__(self, text: str, name: str = "") -> str:
        """See `threefold.ports.Redactor`.

        Raises:
            Unavailable: the detector failed.
        """
        if len(text) < _SHORTEST:
            return text
        # A secret under a name is seen as source code would have it.
        before, after = (f'{name}="', '"') if name else ("", "")
        shift, end = len(before), len(text)
        found = [
            Span(max(start - shift, 0), min(stop - shift, end), kind, weight)
            for start, stop, kind, weight in self._found(f"{before}{text}{after}")
            if start - shift < end and stop > shift
        ]
        return replaced(text, found) if found else text

    def _found(self, text: str) -> Iterator[Span]:
        yield from private(text)
        for view in views(text):
            for start in range(0, max(len(view) - _OVERLAP, 1), _WINDOW - _OVERLAP):
                for span in _secrets(view[start : start + _WINDOW], self._personal):
                    yield span._replace(start=span.start + start, end=span.end + start)
        if self._personal and ("+" in text or "＋" in text):
            yield from _phones(text)


def _secrets(view: str, personal: bool) -> Iterator[Span]:
    try:
        found = _scanner(personal).scan(view)
    except (RuntimeError, ValueError, OSError) as error:
        raise Unavailable(f"redaction failed ({type(error).__name__}); nothing was recorded") from None
    for each in found:
        if each.visible and each.confidence in _WEIGHTS:
            place = each.location
            yield Span(place["start_offset"], place["end_offset"], _kind(each.rule_id), _WEIGHTS[each.confidence])


def _phones(text: str) -> Iterator[Span]:
    """Numbers with their country's code: without one nearly any number would be one."""
    import phonenumbers

    for match in phonenumbers.PhoneNumberMatcher(text, None):
        number = match.raw_string.lstrip("([（［")
        if number[1:2].isdecimal() and "\n" not in number:
            yield Span(match.end - len(number), match.end, "phone number")


@cache
def _kind(rule: str) -> str:
    """What a rule finds: `github pat` of `betterleaks.github-pat`."""
    name = _NAME.fullmatch(rule)
    return (name[1] if name else rule).replace("-", " ")


@cache
def _scanner(personal: bool) -> Any:
    """Made once for all stores: its rules take some tenths of a second to load, at the very first time seconds."""
    from kingfisher_sdk import Rules, Scanner

    ours = [Path(__file__).with_name("secrets.yml")]
    return Scanner(Rules(ours + [Path(__file__).with_name("personal.yml")] * personal))

"""Splitting bytes into JSON values, one at a time, whatever is broken in between.

A JSONL file is split at its line ends. A JSON file may be one list of a gigabyte (`conversations.json`): its elements
are found by following brackets and strings, so that only one is in memory and a broken one costs nothing but itself.
A streaming parser such as ijson was weighed and left out: it stops at the first error of the file, is slower than
this scan with `json.loads` behind it, and would be a compiled dependency.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

MAX_LINE = 64 * 2**20
MAX_VALUE = 256 * 2**20
MAX_DEPTH = 100
CHUNK = 2**20
_BOM = b"\xef\xbb\xbf"
# A string ends at its quote; a raw line end cannot be part of one, so a string that was broken off ends there too.
_STRING_REST = re.compile(rb'[^"\\\n]*(?:\\[^\n][^"\\\n]*)*')
_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+")*+')  # past whole strings
_OUTSIDE = re.compile(rb'["\[\]{}]')
_BETWEEN = re.compile(rb'["\[\]{},]')
_OPENED = {ord("}"): ord("{"), ord("]"): ord("[")}


class DamagedError(ValueError):
    """A piece of a file that is no JSON value; the message says why."""


def parse(raw: bytes) -> Any:
    """The JSON value in `raw`: surrogate pairs joined, lone surrogates replaced, no NaN or infinity.

    Raises:
        DamagedError: saying what is wrong.
    """
    raw = raw.removeprefix(_BOM)
    if not raw.strip(b"\x00 \t\r\n"):
        raise DamagedError("nothing but NUL bytes")
    written, odd = _decode(raw)
    value = parse_text(written)
    return _joined(value) if odd or b"\\ud" in raw or b"\\uD" in raw else value


def parse_text(written: str) -> Any:
    """The JSON value that `written` holds.

    Raises:
        DamagedError: saying what is wrong.
    """
    try:
        value = json.loads(written, parse_float=_finite, parse_constant=_nothing)
    except json.JSONDecodeError as error:
        raise DamagedError(f"not valid JSON: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise DamagedError("nested too deeply") from None
    except ValueError as error:  # a number of thousands of digits
        raise DamagedError(f"not valid JSON: {error}") from None
    if written.count("{") + written.count("[") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise DamagedError(f"nested more than {MAX_DEPTH} levels deep")
    return value


def _decode(raw: bytes) -> tuple[str, bool]:
    """`raw` as text, and whether it may hold surrogates."""
    try:
        return raw.decode(), False
    except UnicodeDecodeError:
        try:
            return raw.decode("utf-8", "surrogatepass"), True  # CESU-8, as some databases write it
        except UnicodeDecodeError:
            return raw.decode("utf-8", "replace"), False


def _finite(written: str) -> float | None:
    number = float(written)
    return number if math.isfinite(number) else None


def _nothing(_: str) -> None:
    return None


def _depth(value: Any) -> int:
    level, current = 0, [value]
    while current and level <= MAX_DEPTH:
        level += 1
        parts = [v for v in current if isinstance(v, dict | list)]
        current = [child for v in parts for child in (v.values() if isinstance(v, dict) else v)]
    return level


def _joined(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [_joined(v) for v in value]
    if isinstance(value, dict):
        return {_joined(k): _joined(v) for k, v in value.items()}
    return value


def lines(stream: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """(line number, bytes) of each line that is not blank; None for a line over `MAX_LINE` bytes."""
    number = 0
    while line := stream.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            while line and not line.endswith(b"\n"):
                line = stream.readline(MAX_LINE)
            yield number, None
        elif line.strip():
            yield number, line


def values(stream: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """(line number, bytes) of each element of the JSON list in `stream`, or of each JSON value that follows another.

    The bytes need not be valid JSON; None stands for an element over `MAX_VALUE` bytes.
    """
    scan = _Scan()
    while chunk := stream.read(CHUNK):
        yield from scan.feed(chunk)
    yield from scan.cut(b"")


class _Scan:
    """Where the scan of a JSON file stands: the brackets that are open, and the bytes of the element so far."""

    def __init__(self) -> None:
        self._open = bytearray()
        self._base = 0  # 1 within the outer list, whose elements are wanted
        self._in_string = self._escaped = self._started = False
        self._element = bytearray()
        self._too_long = False
        self._line = 1

    def feed(self, chunk: bytes) -> Iterator[tuple[int, bytes | None]]:
        """Go on with the next bytes, giving the elements that end in them."""
        at = mark = 0
        if not self._started:
            at = mark = len(_BOM) if chunk.startswith(_BOM) else 0
            self._started = True
        while at < len(chunk):
            if self._in_string:
                at = self._string(chunk, at)
                continue
            inside = len(self._open) > self._base
            begin = _TO_BRACKET.match(chunk, at).end() if inside else at  # type: ignore[union-attr]  # it matches
            found = (_BETWEEN if not inside and self._base == 1 else _OUTSIDE).search(chunk, begin)
            if found is None:
                break
            at, token = found.end(), chunk[found.start()]
            if token == 0x22:
                self._in_string = True
            elif inside:
                if self._bracket(token):
                    yield from self.cut(chunk[mark:at])
                    mark = at
            else:
                begins = token in b"{[" and self._base + (token == 0x7B) > 0
                yield from self.cut(chunk[mark : at - 1])
                mark = at - 1 if begins or token == 0x7D else at
                self._between(token)
        self._add(chunk[mark:])

    def _string(self, chunk: bytes, at: int) -> int:
        if self._escaped:
            self._escaped = False
            return at + 1
        end = _STRING_REST.match(chunk, at).end()  # type: ignore[union-attr]  # it matches everywhere, if only nothing
        if end < len(chunk):
            self._escaped = chunk[end] == 0x5C and end + 1 == len(chunk)
            self._in_string = chunk[end] == 0x5C
            return end + 1
        return end

    def _bracket(self, token: int) -> bool:
        """Note a bracket within an element; whether the element ends with it."""
        if token in b"{[":
            self._open.append(token)
            return False
        # A closing bracket of the other kind closes what was left open inside, so that a gap does not swallow the rest.
        matching = self._open.rfind(_OPENED[token], self._base)
        if matching >= 0:
            del self._open[matching:]
        elif token == 0x5D and self._base:
            self._open.clear()
            self._base = 0
        return len(self._open) <= self._base

    def _between(self, token: int) -> None:
        """Note a bracket or comma between elements."""
        if token == 0x7B or (token == 0x5B and self._base):
            self._open.append(token)
        elif token == 0x5B:
            self._open.append(token)
            self._base = 1
        elif token == 0x5D:
            self._open.clear()
            self._base = 0

    def _add(self, piece: bytes) -> None:
        if len(self._element) + len(piece) > MAX_VALUE:
            self._too_long = True
            self._line += self._element.count(b"\n")
            self._element.clear()
        self._element += piece

    def cut(self, piece: bytes) -> Iterator[tuple[int, bytes | None]]:
        """End the element with `piece`, giving it unless it is blank."""
        self._add(piece)
        whole = bytes(self._element)
        bare = whole.lstrip()
        if self._too_long:
            yield self._line, None
        elif bare:
            yield self._line + whole[: len(whole) - len(bare)].count(b"\n"), bare
        self._line += whole.count(b"\n")
        self._element.clear()
        self._too_long = False

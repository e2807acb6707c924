"""Names of secrets in many languages, made visible to a detector that reads ASCII. Pure."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

# What stands for a name in `secrets.yml`: characters that no text is shown with (`spans.py`).
WORD: Final = "\x01"
PIN: Final = "\x02"
_SHORTEST: Final = {WORD: 6, PIN: 4}
_BLANK: Final = r"[ \t\xa0\u2000-\u200f\u202a-\u202f\u2066-\u2069\u3000]"
_CLOSED: Final = r"(?:\*\*|[\"'”」』»)）\]】]){0,2}"
_OPENED: Final = rf"(?:\*\*|[«‹“„‘「『【])?{_BLANK}?"
_SIGN: Final = r"(?::=|=>|={1,3}|[:：＝])"
# Scripts that write words side by side, or small ones and the next together.
_RUNNING: Final = r"\u0600-\u06ff\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_RUNS: Final = re.compile(f"[{_RUNNING}]")
# Where another name begins a word: that of a secret also within `db_senha`, a PIN not within `led_pin`.
_BEGINS: Final = {
    WORD: re.compile(rf"(?<![^\W\d_{_RUNNING}])"),
    PIN: re.compile(rf"(?<![^\W{_RUNNING}])(?<!\.)"),
}
_PLAIN: Final = str.maketrans("İς’\xa0", "iσ' ")
_BARE: Final = str.maketrans("łı", "li")


class _Name(NamedTuple):
    spelt: str
    stand_in: str
    told: re.Pattern[str]


def named(text: str) -> str:
    """`text` with stand-ins for names of secrets, up to where the value begins; of each the last sign is a colon."""
    folded = _folded(text)
    places = [place for name in _names() if name.spelt in folded for place in _places(folded, name)]
    if not places:
        return text
    signs = list(text)
    for start, end, stand_in in places:
        signs[start:end] = stand_in * (end - start - 1) + ":"
    return "".join(signs)


def _folded(text: str) -> str:
    """In small letters, each where it stood: of all letters only İ becomes two."""
    return text.translate(_PLAIN).lower().replace("ς", "σ")


def _places(folded: str, name: _Name) -> Iterator[tuple[int, int, str]]:
    """Where the name stands and its value follows."""
    start = folded.find(name.spelt)
    while start != -1:
        end = start + len(name.spelt)
        begins = _RUNS.match(name.spelt) or _BEGINS[name.stand_in].match(folded, start)
        if begins and (told := name.told.match(folded, end)):
            yield start, told.end(), name.stand_in
        start = folded.find(name.spelt, end)


@cache
def _names() -> tuple[_Name, ...]:
    tables = tomllib.loads(Path(__file__).with_name("names.toml").read_text("utf-8"))
    found: list[_Name] = []
    for language, table in tables.items():
        stand_in = PIN if language == "pin" else WORD
        for key, by in (("names", f"{_SIGN}|{_said(table, _SHORTEST[stand_in])}"), ("signed", _SIGN)):
            told = re.compile(f"{_CLOSED}{_BLANK}{{0,9}}(?:{by}){_BLANK}{{0,3}}{_OPENED}")
            found += [_Name(spelt, stand_in, told) for spelt in _spellings(table.get(key, ()))]
    return tuple(found)


def _said(table: Mapping[str, Sequence[str]], shortest: int) -> str:
    """The words that tell a value, between blanks where their script has them; or the verb that comes after it."""
    told = [
        re.escape(word) if _RUNS.match(word) else rf"(?<={_BLANK}){re.escape(word)}(?={_BLANK}|{_SIGN})"
        for given in table["is"]
        for word in (given, unicodedata.normalize("NFD", given))
    ]
    after = [rf"(?<={_BLANK})(?=[!-~]{{{shortest},256}}{_BLANK}{{1,3}}{verb})" for verb in table.get("ends", ())]
    return "|".join([f"(?:{'|'.join(told)}){_BLANK}{{0,3}}{_SIGN}?", *after])


def _spellings(names: Iterable[str]) -> Iterable[str]:
    """The names as they are, with their marks apart, and without them; each once."""
    found: dict[str, None] = {}
    for name in map(_folded, names):
        apart = unicodedata.normalize("NFD", name)
        bare = "".join(char for char in apart if not unicodedata.combining(char)).translate(_BARE)
        found.update(dict.fromkeys((name, apart, bare)))
    return found

"""The tables that `scripts/make_folding_tables.py` made, read when they are first needed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).with_name("data")
_LATIN = re.compile("[a-z]")
_GREEK = re.compile("[\u0370-\u03ff]")
_CYRILLIC = re.compile("[\u0400-\u045f]")
_OTHER = re.compile("[^\\W\\d_a-z\u0370-\u03ff\u0400-\u045f]")


class _Way(NamedTuple):
    """From one script into another: the letters that look alike, and those that do so only as capitals."""

    letters: dict[str, str]
    doubtful: frozenset[str]

    def cost(self, letters: Sequence[str]) -> tuple[int, int] | None:
        """How many of `letters` are doubtful, and how many there are; none if they cannot be turned."""
        if not all(letter in self.letters for letter in letters):
            return None
        return sum(letter in self.doubtful for letter in letters), len(letters)

    def turn(self, word: str) -> str:
        return "".join(self.letters.get(letter, letter) for letter in word)


def han() -> dict[int, int]:
    """Han characters and the form that they are read as: traditional Chinese and Japanese forms become simplified."""
    forms, same = (FOLDER / "han.txt").read_text("utf-8").splitlines()
    return str.maketrans(forms, same)


def one_script(word: str) -> str:
    """A folded word, in one script where letters of another that look alike had slipped in (`пoчтa`, `pаypal`).

    A Cyrillic and Latin word is turned into the script that all its letters have; into that for which fewer letters,
    above all doubtful ones, change, if both have. Latin letters in a Greek word are slips too, but Greek letters in a
    Latin word are symbols (TNFα, RORγt). What cannot be turned stays as it is.
    """
    latin = _LATIN.findall(word)
    if not latin or _OTHER.search(word):
        return word
    greek, cyrillic = _GREEK.findall(word), _CYRILLIC.findall(word)
    if greek and cyrillic:
        return word
    if greek:
        _, into = _ways("greek")
        return into.turn(word) if len(greek) > len(latin) and into.cost(latin) else word
    if not cyrillic:
        return word
    out, into = _ways("cyrillic")
    costs = [(cost, way) for way, letters in ((into, latin), (out, cyrillic)) if (cost := way.cost(letters))]
    return min(costs, key=lambda each: each[0])[1].turn(word) if costs else word


@cache
def _ways(script: str) -> tuple[_Way, _Way]:
    """Out of the script into Latin, and from Latin into it; the first of several letters is taken."""
    lines = [line.split("\t") for line in (FOLDER / "lookalikes.txt").read_text("utf-8").splitlines()]
    pairs = [(letter, latin, case == "capital") for name, letter, latin, case in lines if name == script]
    out = _Way({letter: latin for letter, latin, _ in pairs}, frozenset(letter for letter, _, doubt in pairs if doubt))
    back = {latin: letter for letter, latin, _ in reversed(pairs)}
    return out, _Way(back, frozenset(latin for latin, letter in back.items() if letter in out.doubtful))

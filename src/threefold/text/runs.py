"""Runs of scripts without spaces: overlapping pairs of characters, and where each is in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from threefold.text.fold import fold
from threefold.text.patterns import IGNORED

# What belongs to the character before it, so that both fold as one: marks and vowel signs of Thai and Lao, the dots of
# kana, vowels and finals of Hangul that is spelt out, invisible characters.
_AFTER = (
    "\u0e31\u0e33-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb3-\u0ebc\u0ec8-\u0ece\u3099\u309a\uff9e\uff9f"
    f"\u1160-\u11ff\ud7b0-\ud7ff\u314f-\u3163\uffc2-\uffdc{IGNORED}"
)
_CLUSTER = re.compile(f".[{_AFTER}]*", re.DOTALL)
_BESIDE = re.compile(f"[{_AFTER}]")


def pairs(run: str) -> list[str]:
    """The terms of a folded run: every character begins one, the last is alone, so that one character is a prefix."""
    return [run[i : i + 2] for i in range(len(run))]


def placed(run: str, start: int) -> Iterator[tuple[int, int, str]]:
    """(start, end, term) for each pair of a run that begins at `start`, as it was written."""
    folded = fold(run)
    spans = _spans(run, folded)
    for i, pair in enumerate(pairs(folded)):
        yield start + spans[i][0], start + spans[i + len(pair) - 1][1], pair


def _spans(run: str, folded: str) -> list[tuple[int, int]]:
    """Where each character of `folded` comes from in `run`."""
    if folded == run or (len(folded) == len(run) and not _BESIDE.search(run)):
        return [(i, i + 1) for i in range(len(run))]
    made, spans = "", []
    for match in _CLUSTER.finditer(run):
        part = fold(match[0])
        made += part
        spans += [match.span()] * len(part)
    return spans if made == folded else [(0, len(run))] * len(folded)

"""Putting foreign text into a prompt so that it stays what it is: data that somebody said, which nobody obeys.

Every line of it begins with a mark, whatever Unicode takes for the end of a line; so nothing in it can look like a
line of ours, close a tag or begin a message. The text itself is not changed.
"""

from __future__ import annotations

import unicodedata
from typing import Final

MARK: Final = "> "
_FORGING: Final = frozenset("[]")
# Characters that order what follows to be shown from the other side; a label must not turn the line that it is in.
_TURNING: Final = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def quoted(text: str) -> str:
    """`text`, each line after the mark; an empty one is one empty line."""
    return "\n".join(MARK + line for line in text.splitlines() or [""])


def set_in(text: str) -> str:
    """A text whose lines after the first are set in, so that none of them can begin as a line of ours does."""
    return "\n  ".join(text.splitlines())


def spoken(speaker: str, text: str) -> str:
    """What somebody said, to be quoted beside what others said."""
    return set_in(f"{speaker}: {text}")


def named(text: str, most: int = 80) -> str:
    """A foreign name for a line of ours: one line of at most `most` characters, without controls, brackets, or the dot
    that stands between the parts of such a line."""
    plain = text if text.isascii() and text.isprintable() and not _FORGING & set(text) else _harmless(text)
    line = " ".join(plain.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def _harmless(text: str) -> str:
    return "".join(
        " " if c.isspace() else {"[": "(", "]": ")", "·": "-"}.get(c, c)
        for c in text
        if c.isspace() or (c not in _TURNING and unicodedata.category(c) not in ("Cc", "Cs"))
    )

"""Text of others as a quotation that it cannot leave. Pure."""

from __future__ import annotations

import unicodedata
from typing import Final

MARK: Final = "> "
# Control, format and unassigned characters, and what parts lines: none of it belongs into a line of ours.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def quoted(text: str) -> str:
    """The text with `> ` before each of its lines, whatever parts them in Unicode; at least one line.

    Whatever begins a line without the mark was not in the text.
    """
    return "\n".join(MARK + line for line in text.splitlines() or [""])


def named(text: str, most: int = 200) -> str:
    """A title or name of others on one line, without what is not seen, of at most so many characters."""
    line = " ".join("".join(" " if unicodedata.category(c) in _UNSEEN else c for c in text[: 4 * most]).split())
    return line if len(line) <= most else line[: most - 1] + "…"

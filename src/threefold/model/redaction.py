"""What stands in place of what was taken out of a text. Pure."""

from __future__ import annotations

import re
from collections import Counter

_MARK = re.compile(r"\[redacted: ([^\[\]\n]{1,60})\]")


def mark(kind: str) -> str:
    """What stands in place of something of this kind."""
    return f"[redacted: {kind}]"


def marks(*texts: str) -> Counter[str]:
    """How many marks of which kind stand in the texts."""
    return Counter(kind for text in texts for kind in _MARK.findall(text))

"""Whether a text asks: a small thing that tells an answer from the question before it."""

from __future__ import annotations

import re

# The end of a text that `asks` needs: stores hand out no more than this.
ENDING = 8
# Latin, Greek, Arabic, Armenian, full-width, Ethiopic, reversed, doubled. Greek is typed with the semicolon that its
# sign looks like, which asks after a Greek letter only.
_SIGNS = ("?", "\u037e", "\u061f", "\u055e", "\uff1f", "\u1367", "\u2e2e", "\u2047", "\u2048", "\u2049")
_GREEK = re.compile("[\u0370-\u03ff\u1f00-\u1fff];$")
_AFTER = " \t\r\n\"')]}»”’」』）】》*_.!！…\u200e\u200f"


def asks(ending: str) -> bool:
    """Whether a text with this ending ends with a question mark, whatever closes the sentence after it."""
    said = ending.rstrip(_AFTER)
    return said.endswith(_SIGNS) or _GREEK.search(said) is not None

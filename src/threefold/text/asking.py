"""Whether a text asks: a small thing that tells an answer from the question before it."""

from __future__ import annotations

# The end of a text that `asks` needs: stores hand out no more than this.
ENDING = 8
# Latin, Greek (where the sign looks like a semicolon), Arabic, Armenian, full-width, Ethiopic, reversed, doubled.
_SIGNS = ("?", "\u037e", "\u061f", "\u055e", "\uff1f", "\u1367", "\u2e2e", "\u2047", "\u2048", "\u2049")
_AFTER = " \t\r\n\"')]}»”’」』*_.!…"


def asks(ending: str) -> bool:
    """Whether a text with this ending ends with a question mark, whatever closes the sentence after it."""
    return ending.rstrip(_AFTER).endswith(_SIGNS)

"""Making any Python text storable without losing what can be kept."""

from __future__ import annotations


def storable(text: str) -> str:
    """`text` with surrogate pairs joined and lone surrogates replaced by U+FFFD; all else is kept exactly."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text

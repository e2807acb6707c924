"""How values become what PostgreSQL keeps: owners and terms by hash, texts without NUL, vectors as text."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, overload
from uuid import UUID

from threefold.backends.blobs.keys import owner_key as blobs_key
from threefold.model.scope import Scope

if TYPE_CHECKING:
    import numpy as np

# PostgreSQL's text cannot hold NUL. It is written as a character that no text means, and that one as itself doubled.
_MARK = "\U0010fffe"


def owner_key(scope: Scope) -> UUID:
    """The owner's key: 128 bits of a SHA-256 of tenant, user and realm, the one under which its blobs are kept, too."""
    return UUID(hex=blobs_key(scope))


def term_key(owner: UUID, term: str) -> int:
    """A term's key among those of its owner: a signed 64-bit hash."""
    digest = hashlib.blake2b(term.encode(), digest_size=8, key=owner.bytes).digest()
    return int.from_bytes(digest, "big", signed=True)


@overload
def kept(text: str) -> str: ...
@overload
def kept(text: None) -> None: ...
def kept(text: str | None) -> str | None:
    """`text` as it is kept: without NUL."""
    if text is not None and ("\x00" in text or _MARK in text):
        return text.replace(_MARK, _MARK + _MARK).replace("\x00", _MARK + "0")
    return text


@overload
def given(text: str) -> str: ...
@overload
def given(text: None) -> None: ...
def given(text: str | None) -> str | None:
    """What `kept` was given."""
    if text is not None and _MARK in text:
        return "".join(_unmarked(text))
    return text


def _unmarked(text: str) -> list[str]:
    parts, marked = [], False
    for c in text:
        if marked:
            parts.append("\x00" if c == "0" else c)
        elif c != _MARK:
            parts.append(c)
        marked = c == _MARK and not marked
    return parts


def vector_text(vector: np.ndarray) -> str:
    """A vector as pgvector reads it; nine digits say a float32 exactly."""
    return "[" + ",".join([f"{x:.9g}" for x in vector.tolist()]) + "]"

"""How names become keys: owners and terms by hash, and texts that PostgreSQL can keep."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import overload
from uuid import UUID

from threefold.model.scope import Scope

# PostgreSQL's text cannot hold NUL. It is written as a character that no text means, and that one as itself doubled.
_MARK = "\U0010fffe"


@lru_cache(maxsize=4096)
def _owner_key(tenant: str, user: str) -> UUID:
    identity = f"{len(tenant)}:{tenant}{user}"
    return UUID(bytes=hashlib.sha256(identity.encode()).digest()[:16])


def owner_key(scope: Scope) -> UUID:
    """The owner's key: 128 bits of a SHA-256 of tenant and user, the same in every store."""
    return _owner_key(scope.tenant, scope.user)


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

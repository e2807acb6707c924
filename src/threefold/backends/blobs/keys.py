"""How blobs are named, the same in every kind of place: `<owner's hash>/<first two digits>/<SHA-256>`."""

from __future__ import annotations

import hashlib
import re

from threefold.errors import InvalidInput
from threefold.model.scope import RECORD, Scope

_OWNER, _DIGEST = re.compile("[0-9a-f]{32}"), re.compile("[0-9a-f]{64}")
_UNFINISHED = re.compile(r"[0-9a-f]{64}\.\w+\.part")


def owner_key(scope: Scope) -> str:
    """The owner's part of a name: a hash, so no id can leave it, collide, or be read from it."""
    identity = f"{len(scope.tenant)}:{scope.tenant}{scope.user}"
    if scope.realm != RECORD:
        identity = f"{len(scope.realm)}:{scope.realm}|{identity}"
    return hashlib.sha256(identity.encode()).hexdigest()[:32]


def blob_path(owner: str, name: str) -> str:
    """The whole name of a blob, or of an unfinished one, of the owner with this key.

    Raises:
        InvalidInput: `owner` or `name` is no such name.
    """
    if not _OWNER.fullmatch(owner) or not (is_digest(name) or _UNFINISHED.fullmatch(name)):
        raise InvalidInput(f"digest {name!r} must be 64 lower-case hex digits of a SHA-256")
    return f"{owner}/{name[:2]}/{name}"


def is_digest(name: str) -> bool:
    """Whether this is the name of a finished blob."""
    return bool(_DIGEST.fullmatch(name))


def split_path(path: str) -> tuple[str, str] | None:
    """(owner's key, name) of a whole name; None for what is not ours."""
    owner, _, rest = path.partition("/")
    name = rest[3:]
    ours = _OWNER.fullmatch(owner) and (is_digest(name) or _UNFINISHED.fullmatch(name))
    return (owner, name) if ours and rest[:3] == f"{name[:2]}/" else None

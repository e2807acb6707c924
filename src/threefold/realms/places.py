"""Where things lie that may be shared: a user's own, those of a tenant, those of everyone. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final, Literal

from threefold.model.scope import Scope

Place = Literal["own", "organization", "everyone"]
# Ids of what is shared begin so; those of a user's own as the realm says.
_SHARED: Final[Mapping[Place, str]] = {"organization": "org_", "everyone": "all_"}


SEEN_FROM: Final[Mapping[Place, tuple[Place, ...]]] = {
    "own": ("own", "organization", "everyone"), "organization": ("organization", "everyone"), "everyone": ("everyone",),
}  # fmt: skip
"""What a handle may read that stands for a user, for a tenant, for everyone; the nearest first."""


@lru_cache(256)
def place_of(scope: Scope, realm: str, place: Place) -> Scope:
    """A place of a realm as it is seen from a user's scope."""
    if place == "own":
        return replace(scope, realm=realm)
    if place == "organization":
        return Scope("organization", scope.tenant, realm=f"{realm}.organization")
    return Scope("everyone", "everyone", realm=f"{realm}.everyone")


def prefix(place: Place, own: str) -> str:
    """How ids of a place begin; `own` is how a user's own do."""
    return _SHARED.get(place, own)


def of_id(id_: object, own: str) -> Place | None:
    """Where something with this id lies; None where no id begins so."""
    begin = id_[:4] if isinstance(id_, str) else ""
    return "own" if begin == own else next((place for place, shared in _SHARED.items() if begin == shared), None)

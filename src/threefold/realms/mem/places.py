"""Where memories lie: a user's own, those of a tenant, those of everyone. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final, Literal

from threefold.errors import NotFound
from threefold.model.memory import LAYERS, Layer
from threefold.model.scope import PERSONAL, Scope

Place = Literal["own", "organization", "everyone"]
REALM: Final = PERSONAL[1]
# Cycles of decay, the same for all.
DECAYS: Final = Scope("everyone", "everyone", realm="mem.decays")
_PREFIXES: Final[dict[str, Place]] = {"mem_": "own", "org_": "organization", "all_": "everyone"}
LAYERS_OF: Final[dict[Place, tuple[Layer, ...]]] = {
    "own": ("working", "session", "longterm"), "organization": ("organizational",), "everyone": ("global",),
}  # fmt: skip


SEEN_FROM: Final[dict[Place, tuple[Layer, ...]]] = {
    "own": LAYERS, "organization": ("organizational", "global"), "everyone": ("global",),
}  # fmt: skip
"""Layers that a handle may read which stands for a user, for a tenant, for everyone."""


def own(scope: Scope) -> Scope:
    """Where a user's own memories lie."""
    return replace(scope, realm=REALM)


def organization(tenant: str) -> Scope:
    """Where those lie that all users of a tenant share."""
    return Scope("organization", tenant, realm="mem.organization")


def everyone() -> Scope:
    """Where those lie that all tenants share."""
    return Scope("everyone", "everyone", realm="mem.everyone")


def place_of(scope: Scope, place: Place) -> Scope:
    """A place as it is seen from a user's scope."""
    if place == "own":
        return own(scope)
    return organization(scope.tenant) if place == "organization" else everyone()


def of_layer(layer: Layer) -> Place:
    """Where memories of a layer lie."""
    return next(place for place, layers in LAYERS_OF.items() if layer in layers)


def of_layers(layers: Collection[Layer]) -> Sequence[Place]:
    """Where memories of these layers lie, in order of the layers."""
    return list(dict.fromkeys(of_layer(layer) for layer in LAYERS if layer in layers))


def of_id(record: str) -> Place:
    """Where a memory with this id lies.

    Raises:
        NotFound: no memory has such an id.
    """
    place = _PREFIXES.get(record[:4]) if isinstance(record, str) else None
    if place is None:
        raise NotFound(f"memory {record!r}: no such memory; ids begin with mem_, org_ or all_")
    return place


def prefix(place: Place) -> str:
    """How ids of a place begin."""
    return next(begin for begin, where in _PREFIXES.items() if where == place)

"""Which memories lie where: layers are a user's own, a tenant's, or everyone's. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from threefold.errors import NotFound
from threefold.model.memory import LAYERS, Layer
from threefold.model.scope import Scope
from threefold.realms import places
from threefold.realms.places import SEEN_FROM as PLACES_SEEN_FROM
from threefold.realms.places import Place

REALM: Final = "mem"
# Cycles of decay, the same for all.
DECAYS: Final = Scope("everyone", "everyone", realm="mem.decays")
_OWN: Final = "mem_"
LAYERS_OF: Final[dict[Place, tuple[Layer, ...]]] = {
    "own": ("working", "session", "longterm"), "organization": ("organizational",), "everyone": ("global",),
}  # fmt: skip


SEEN_FROM: Final[dict[Place, tuple[Layer, ...]]] = {
    place: tuple(layer for each in seen for layer in LAYERS_OF[each]) for place, seen in PLACES_SEEN_FROM.items()
}
"""Layers that a handle may read which stands for a user, for a tenant, for everyone."""


def place_of(scope: Scope, place: Place) -> Scope:
    """A place as it is seen from a user's scope."""
    return places.place_of(scope, REALM, place)


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
    place = places.of_id(record, _OWN)
    if place is None:
        raise NotFound(f"memory {record!r}: no such memory; ids begin with mem_, org_ or all_")
    return place


def is_id(record: str) -> bool:
    """Whether memories have such ids."""
    return places.of_id(record, _OWN) is not None


def prefix(place: Place) -> str:
    """How ids of a place begin."""
    return places.prefix(place, _OWN)

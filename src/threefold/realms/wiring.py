"""What a realm of one scope is wired to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from threefold.ports import Blobs, Embedder, Store
from threefold.search.rank import Ranking


class Ports(NamedTuple):
    """Ports and settings. `committed` is called after a commit that has work for later, `warm` to load the model."""

    store: Store
    blobs: Blobs
    embedder: Embedder | None
    clock: Callable[[], datetime]
    ttl: timedelta | None
    ranking: Ranking
    committed: Callable[[], None]
    warm: Callable[[], None]

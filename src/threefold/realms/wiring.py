"""What a realm of one scope is wired to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from threefold.ports import Blobs, Embedder, Redactor, Store, Summarizer
from threefold.search.rank import Ranking

# A time to live that ends later than this has no end.
FOREVER: Final = datetime(9999, 1, 1, tzinfo=UTC)


class Ports(NamedTuple):
    """Ports and settings. `committed` is called after a commit that has work for later, `warm` to load the model.

    By `redact` every text goes before a realm makes anything of it; None where the record is literal.
    `summarizer` writes the summaries of threads; None where sentences of what was said make them.
    """

    store: Store
    blobs: Blobs
    embedder: Embedder | None
    clock: Callable[[], datetime]
    ttl: timedelta | None
    ranking: Ranking
    committed: Callable[[], None]
    warm: Callable[[], None]
    redact: Redactor | None = None
    summarizer: Summarizer | None = None

    def expires(self) -> datetime | None:
        """The end of the time to live of what is recorded now.

        It counts from the recording, not from the turn's own time: an old history that is imported today is kept too.
        """
        now = self.clock()
        return None if self.ttl is None or self.ttl > FOREVER - now else now + self.ttl

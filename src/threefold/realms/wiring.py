"""What a realm of one scope is wired to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from threefold.errors import InvalidInput
from threefold.model.document import Extracted
from threefold.ports import Blobs, Embedder, Extractor, Redactor, Store, Summarizer
from threefold.search.embedding import Questions
from threefold.search.rank import Ranking

# A time to live that ends later than this has no end.
FOREVER: Final = datetime(9999, 1, 1, tzinfo=UTC)


def _text_alone(data: bytes, mime: str | None = None, name: str = "") -> Extracted:
    """An extractor of plain text in UTF-8."""
    try:
        return Extracted(data.decode(), mime or "text/plain")
    except UnicodeDecodeError:
        raise InvalidInput(f"content {name!r} is no text in UTF-8") from None


class Ports(NamedTuple):
    """Ports and settings. `committed` is called after a commit that has work for later, `warm` to load the model.

    By `redact` every text goes before a realm makes anything of it; None where the record is literal. `extract` reads
    the text of files. `summarizer` writes the summaries of threads; None where sentences of what was said make them.
    `question` gives the vector of a question, `unrelated` the cosine that the embedder gives to texts that have nothing
    to do with each other.
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
    extract: Extractor = _text_alone
    summarizer: Summarizer | None = None
    unrelated: Callable[[], float] = float
    question: Questions = Questions(None)

    def expires(self) -> datetime | None:
        """The end of the time to live of what is recorded now.

        It counts from the recording, not from the turn's own time: an old history that is imported today is kept too.
        """
        now = self.clock()
        return None if self.ttl is None or self.ttl > FOREVER - now else now + self.ttl

"""What a realm of one scope is wired to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from threefold.errors import InvalidInput
from threefold.model.document import Extracted
from threefold.ports import Blobs, Embedder, Extractor, Redactor, Store
from threefold.search.rank import Ranking


def _text_alone(data: bytes, mime: str | None = None, name: str = "") -> Extracted:
    """An extractor of plain text in UTF-8."""
    try:
        return Extracted(data.decode(), mime or "text/plain")
    except UnicodeDecodeError:
        raise InvalidInput(f"content {name!r} is no text in UTF-8") from None


class Ports(NamedTuple):
    """Ports and settings. `committed` is called after a commit that has work for later, `warm` to load the model.

    By `redact` every text goes before a realm makes anything of it; None where the record is literal. `extract` reads
    the text of files.
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

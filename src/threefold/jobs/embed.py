"""Embedding after the commit: claim rows, embed them, store the vectors; failures are noted and tried again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from threefold.errors import Conflict, ThreefoldError
from threefold.ports import Embedder, PendingRow, Upkeep
from threefold.search.embedding import embed

BATCH = 256
LEASE_SECONDS = 120.0
FIRST_RETRY, LAST_RETRY = timedelta(seconds=5), timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Progress:
    """What one round did: rows that got a vector, rows that failed, and why the last one did."""

    embedded: int = 0
    failed: int = 0
    why: str | None = None


def embed_some(
    upkeep: Upkeep, embedder: Embedder, clock: Callable[[], datetime], limit: int = BATCH
) -> Progress | None:
    """Embed up to `limit` waiting rows; None where nothing waits.

    A batch that fails is tried row by row, so that one bad text does not hold up the others.

    Raises:
        Conflict: the store holds vectors of another model.
    """
    rows = upkeep.claim(limit, clock(), LEASE_SECONDS)
    if not rows:
        return None
    try:
        return _embed(upkeep, embedder, rows)
    except Conflict:
        upkeep.embedding_failed(
            rows, f"the store was embedded by another model than {embedder.name!r}", _later(clock, rows)
        )
        raise
    except ThreefoldError as error:
        if len(rows) == 1:
            return _note(upkeep, rows, error, clock)
    embedded, failed, why = 0, 0, None
    for row in rows:
        try:
            embedded += _embed(upkeep, embedder, (row,)).embedded
        except ThreefoldError as error:
            failed, why = failed + 1, _note(upkeep, (row,), error, clock).why
    return Progress(embedded, failed, why)


def _embed(upkeep: Upkeep, embedder: Embedder, rows: tuple[PendingRow, ...]) -> Progress:
    vectors = embed(embedder, [row.text for row in rows])
    return Progress(upkeep.put_vectors(embedder.name, list(zip(rows, vectors, strict=True))))


def _note(
    upkeep: Upkeep, rows: tuple[PendingRow, ...], error: ThreefoldError, clock: Callable[[], datetime]
) -> Progress:
    why = f"{type(error).__name__}: {error}"
    upkeep.embedding_failed(rows, why, _later(clock, rows))
    return Progress(0, len(rows), why)


def _later(clock: Callable[[], datetime], rows: tuple[PendingRow, ...]) -> datetime:
    """Twice as late after each failure, at most an hour."""
    attempts = min(max(row.attempts for row in rows), 20)
    return clock() + min(FIRST_RETRY * float(2**attempts), LAST_RETRY)

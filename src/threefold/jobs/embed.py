"""Embedding after the commit: claim rows, embed them, store the vectors; failures are noted and tried again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from threefold.errors import Conflict, ThreefoldError
from threefold.ports import Embedder, PendingRow, Upkeep
from threefold.search.embedding import embed

Clock = Callable[[], datetime]

# Rows claimed at first, and the bounds of what is claimed later.
BATCH, FEWEST, MOST = 64, 16, 2048
SECONDS_AT_ONCE = 1.0
LEASE_SECONDS = 120.0
FIRST_RETRY, LAST_RETRY = timedelta(seconds=5), timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Progress:
    """What one round did: rows that got a vector, rows that failed, and why the last one did."""

    embedded: int = 0
    failed: int = 0
    why: str | None = None


class Pace:
    """How many rows to claim at once: what takes about a second.

    A quick model then commits seldom; a slow one never outlives its lease, and loses little where it fails.
    """

    def __init__(self) -> None:
        self.limit = BATCH

    def embed_some(self, upkeep: Upkeep, embedder: Embedder, clock: Clock, most: int = MOST) -> Progress | None:
        """As `embed_some`, of at most `most` rows."""
        limit = min(self.limit, most)
        began = time.perf_counter()
        done = embed_some(upkeep, embedder, clock, limit)
        if done is not None and done.embedded + done.failed == limit:
            rate = limit / max(time.perf_counter() - began, 1e-6)
            self.limit = int(min(max(rate * SECONDS_AT_ONCE, FEWEST), 4 * self.limit, MOST))
        return done


def embed_some(upkeep: Upkeep, embedder: Embedder, clock: Clock, limit: int = BATCH) -> Progress | None:
    """Embed up to `limit` waiting rows; None where nothing waits.

    A batch that fails is tried in halves, so that one bad text does not hold up the others.

    Raises:
        Conflict: the store holds vectors of another model.
    """
    rows = upkeep.claim(limit, clock(), LEASE_SECONDS)
    if not rows:
        return None
    failures: list[tuple[PendingRow, str]] = []
    try:
        embedded = _in_halves(upkeep, embedder, rows, failures)
    except Conflict:
        # Those that were stored meanwhile wait no longer; for them it does nothing.
        why = f"the store was embedded by another model than {embedder.name!r}"
        upkeep.embedding_failed(rows, why, _later(clock, rows))
        raise
    for (why, _), group in groupby(failures, key=lambda failure: (failure[1], failure[0].attempts)):
        failed = tuple(row for row, _ in group)
        upkeep.embedding_failed(failed, why, _later(clock, failed))
    return Progress(embedded, len(failures), failures[-1][1] if failures else None)


def _in_halves(
    upkeep: Upkeep, embedder: Embedder, rows: tuple[PendingRow, ...], failures: list[tuple[PendingRow, str]]
) -> int:
    """Embed and store what can be; returns how many rows that were, and adds the others to `failures`."""
    try:
        vectors = embed(embedder, [row.text for row in rows])
        return upkeep.put_vectors(embedder.name, list(zip(rows, vectors, strict=True)))
    except Conflict:
        raise
    except ThreefoldError as error:
        if len(rows) == 1:
            failures.append((rows[0], f"{type(error).__name__}: {error}"))
            return 0
    half = len(rows) // 2
    return sum(_in_halves(upkeep, embedder, part, failures) for part in (rows[:half], rows[half:]))


def _later(clock: Clock, rows: tuple[PendingRow, ...]) -> datetime:
    """Twice as late after each failure, at most an hour."""
    attempts = min(max(row.attempts for row in rows), 20)
    return clock() + min(FIRST_RETRY * float(2**attempts), LAST_RETRY)

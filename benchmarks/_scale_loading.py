"""Loading: the same histories into every engine, group by group in turns, so that noise meets all of them."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from _metrics import percentile
from _scale_data import Histories, MadeUp, User, small_users
from _scale_engines import Engine
from tqdm import tqdm

from threefold.jobs.embed import embed_some
from threefold.model.commit import Commit, RecordTurn
from threefold.model.record import TurnRecord
from threefold.model.scope import Scope
from threefold.model.times import now
from threefold.model.turn import Turn
from threefold.ports import Backend
from threefold.realms.conv.fold import fold

# Users who search, where the store is large enough for them beside others.
SIZES = (1000, 10_000, 100_000)
PATH = "Store.commit of up to 256 turns, then claim and put_vectors of 256 rows; folding and the model not counted"
_GROUP = 256
_EMBED_EVERY = 5000
_BARE = 5


def load(backend: Backend, scope: Scope, records: Sequence[TurnRecord]) -> None:
    """Take in folded turns of one owner. The only place that knows by which path."""
    for start in range(0, len(records), _GROUP):
        backend.commit(Commit(scope, tuple(RecordTurn(record) for record in records[start : start + _GROUP])))


class _Timed:
    """The model, which measures the time that it takes itself."""

    def __init__(self, model: MadeUp) -> None:
        self.name, self.dimensions, self.ready = model.name, model.dimensions, True
        self._model, self.seconds = model, 0.0

    def embed(self, texts: Sequence[str]) -> Any:
        """See `Embedder.embed`."""
        start = time.perf_counter()
        vectors = self._model.embed(texts)
        self.seconds += time.perf_counter() - start
        return vectors


@dataclass
class Loading:
    """A store that grows in every engine; `seconds` are those of the stage at hand, by engine and work."""

    engines: Sequence[Engine]
    histories: Histories
    model: MadeUp
    questions: int
    each: int
    rows: int = 0
    owners: int = 0
    users: list[User] = field(default_factory=list)
    seconds: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    _waiting: int = 0
    _first: int = 0
    _sizes: list[int] = field(default_factory=list)

    def grow(self, rows: int) -> Iterator[dict[str, Any]]:
        """Load up to `rows` rows in all, first the users who search; tells how fast, and how large it is."""
        before, self._first = self.rows, self.owners
        self.seconds.clear()
        with tqdm(total=rows - before, desc=f"loading to {rows:,}", unit="row", mininterval=1.0) as bar:
            for size in self._fitting(rows):
                scope, turns = self._add(size, bar)
                self.users.append(self.histories.user(scope, turns, self.questions, self.model))
            for size in small_users(rows - self.rows, self.each):
                self._add(size, bar)
            self._embed()
        for engine in self.engines:
            engine.settle()
        yield from self._figures(self.rows - before)

    def _fitting(self, rows: int) -> list[int]:
        """Sizes of users that are still to come and for whom the store is large enough."""
        taken, fitting = sum(user.rows for user in self.users), []
        for size in SIZES[len(self.users) :]:
            taken += size
            if taken <= rows and self.rows + sum(fitting) + size <= rows:
                fitting.append(size)
            else:
                break
        return fitting

    def _add(self, rows: int, bar: Any) -> tuple[Scope, list[Turn]]:
        scope = Scope(f"user {self.owners}")
        turns = self.histories.turns(rows)
        records = [fold(scope, turn, None).record for turn in turns]
        for engine in _in_turns(self.engines, self.owners):
            start = time.perf_counter()
            load(engine.backend, scope, records)
            self.seconds[engine.name, "load"] += time.perf_counter() - start
            engine.feed(scope, turns)
        self.owners += 1
        self.rows += rows
        self._sizes.append(rows)
        self._waiting += rows
        bar.update(rows)
        if self._waiting >= _EMBED_EVERY:
            self._embed()
        return scope, turns

    def _embed(self) -> None:
        for engine in _in_turns(self.engines, self.owners):
            model = _Timed(self.model)
            start = time.perf_counter()
            while embed_some(engine.backend, model, now) is not None:
                pass
            self.seconds[engine.name, "vectors"] += time.perf_counter() - start - model.seconds
        self._waiting = 0

    def _figures(self, loaded: int) -> Iterator[dict[str, Any]]:
        for engine in self.engines:
            commits, vectors = self.seconds[engine.name, "load"], self.seconds[engine.name, "vectors"]
            line = {
                "engine": engine.name,
                "what": "load",
                "loaded": loaded,
                "path": PATH,
                "rows_per_second": loaded / (commits + vectors),
                "record_rows_per_second": loaded / commits,
                "vector_rows_per_second": loaded / vectors,
            }
            floor = self._bare_rate(engine)
            if floor is not None:
                line |= {"floor_rows_per_second": floor, "ratio": floor / line["rows_per_second"]}
            yield line
            size = engine.size()
            yield {
                "engine": engine.name,
                "what": "size",
                **size,
                "bytes_per_row": size["bytes"] / size["rows"],
                "ratio": size["bytes"] / size["text_bytes"],
            }

    def _bare_rate(self, engine: Engine) -> float | None:
        """Rows a second of the bare driver, by the last small users of the stage: what it loads stays in its tables."""
        took = []
        for number in range(max(self._first, self.owners - _BARE), self.owners):
            write = engine.bare_load(Scope(f"user {number}"))
            if write is None:
                return None
            start = time.perf_counter()
            write()
            took.append((time.perf_counter() - start) / self._sizes[number])
        return 1 / percentile(took, 0.5)


def _in_turns(engines: Sequence[Engine], round_: int) -> list[Engine]:
    """Now one first, now the other."""
    return list(engines) if round_ % 2 == 0 else list(reversed(engines))

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

from threefold.model.moving import MovedTurn
from threefold.model.scope import Scope
from threefold.model.turn import Turn
from threefold.ports import Backend
from threefold.realms.conv.fold import fold

# Users who search, where the store is large enough for them beside others.
SIZES = (1000, 10_000, 100_000)
PATH = "Upkeep.receive of up to 256 turns with their vectors; folding and the model not counted"
_GROUP = 256
_BARE = 5


def load(backend: Backend, scope: Scope, turns: Sequence[MovedTurn], model: str) -> None:
    """Take in whole turns of one owner, as a copy from another store does."""
    for start in range(0, len(turns), _GROUP):
        backend.receive(scope, turns[start : start + _GROUP], model)


def moved(scope: Scope, turns: Sequence[Turn], model: MadeUp) -> list[MovedTurn]:
    """The turns as another store would give them, each with its vectors."""
    found, positions = list[MovedTurn](), dict[str, int]()
    for turn in turns:
        record = fold(scope, turn, None).record
        first = positions.get(record.conversation, 0) + 1
        positions[record.conversation] = first + len(record.rows) - 1
        vectors = dict(enumerate(model.embed([row.spoken for row in record.rows])))
        found.append(MovedTurn(record, first, positions[record.conversation], vectors=vectors))
    return found


@dataclass
class Loading:
    """A store that grows in every engine; `seconds` are those of the stage at hand, by engine."""

    engines: Sequence[Engine]
    histories: Histories
    model: MadeUp
    questions: int
    each: int
    rows: int = 0
    owners: int = 0
    users: list[User] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
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
        arriving = moved(scope, turns, self.model)
        for engine in _in_turns(self.engines, self.owners):
            start = time.perf_counter()
            load(engine.backend, scope, arriving, self.model.name)
            self.seconds[engine.name] += time.perf_counter() - start
            engine.feed(scope, turns)
        self.owners += 1
        self.rows += rows
        self._sizes.append(rows)
        bar.update(rows)
        return scope, turns

    def _figures(self, loaded: int) -> Iterator[dict[str, Any]]:
        for engine in self.engines:
            line = {
                "engine": engine.name,
                "what": "load",
                "loaded": loaded,
                "path": PATH,
                "rows_per_second": loaded / self.seconds[engine.name],
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

"""Recording at scale: one client beside its floor, then many, as threads and as processes; every turn is durable."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from _figures import clocked
from _metrics import percentile
from _scale_engines import Engine, opened
from _scale_searching import compared_ms

import threefold
from threefold.model.scope import Scope

_WARM_UP = 10


def record(handle: threefold.Handle, conversation: str, turn: str, said: Sequence[str]) -> None:
    """One turn as a program records it."""
    with handle.turn(conversation, turn) as open_turn:
        open_turn.prompt(said[0])
        open_turn.answer(said[1])


def single(engines: Sequence[Engine], name: str, said: Sequence[str], seconds: float) -> Iterator[dict[str, Any]]:
    """One client at a time: a turn on an engine, the same turn by its bare driver, then the next engine."""
    took: dict[str, list[float]] = {engine.name: [] for engine in engines}
    floor: dict[str, list[float]] = {engine.name: [] for engine in engines}
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end or number < 2 * _WARM_UP:
        conversation, turn = f"c{number // 10}", f"t{number % 10}"
        pair = [said[(2 * number + i) % len(said)] for i in range(2)]
        for engine in engines:
            mine = clocked(partial(record, engine.db.user(name), conversation, turn, pair))
            write = engine.bare_write(Scope(name), conversation, turn)
            bare = None if write is None else clocked(write)
            if number >= _WARM_UP:
                took[engine.name].append(mine)
                if bare is not None:
                    floor[engine.name].append(bare)
        number += 1
    for engine in engines:
        mine = took[engine.name]
        times = compared_ms(mine, floor[engine.name]) if floor[engine.name] else _alone(mine)
        rate = 1000 / (sum(mine) / len(mine))
        yield _line(engine, 1, "thread", mine, rate) | times | {"target": "ratio ≤ 1.5"}


def _alone(took: Sequence[float]) -> dict[str, float]:
    return {"p50_ms": percentile(took, 0.5), "p95_ms": percentile(took, 0.95)}


def _line(engine: Engine, clients: int, kind: str, took: Sequence[float], rate: float) -> dict[str, Any]:
    return {
        "engine": engine.name,
        "what": "record",
        "clients": clients,
        "kind": kind,
        "n": len(took),
        "turns_per_second": rate,
    } | _alone(took)


def threads(engine: Engine, name: str, clients: int, said: Sequence[str], seconds: float) -> dict[str, Any]:
    """Clients as threads of this process, each its own user."""
    took: list[list[float]] = [[] for _ in range(clients)]
    ready = threading.Barrier(clients + 1)

    def write(number: int) -> None:
        handle = engine.db.user(f"{name}.{number}")
        record(handle, "warm", "up", said)
        ready.wait()
        took[number] = _until(handle, said, seconds)

    workers = [threading.Thread(target=write, args=(number,)) for number in range(clients)]
    for worker in workers:
        worker.start()
    ready.wait()
    start = time.perf_counter()
    for worker in workers:
        worker.join()
    done = [ms for mine in took for ms in mine]
    return _line(engine, clients, "thread", done, len(done) / (time.perf_counter() - start))


def _until(handle: threefold.Handle, said: Sequence[str], seconds: float) -> list[float]:
    """Record until the time is over; milliseconds of each turn."""
    took: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        number = len(took)
        pair = [said[(2 * number + i) % len(said)] for i in range(2)]
        took.append(clocked(partial(record, handle, f"c{number // 10}", f"t{number % 10}", pair)))
    return took


def processes(engine: Engine, name: str, clients: int, said: Sequence[str], seconds: float) -> dict[str, Any]:
    """Clients as processes of one thread, as several instances of a service are."""
    context = multiprocessing.get_context("spawn")
    ready, results = context.Barrier(clients + 1), context.Queue()
    workers = [
        context.Process(target=_process, args=(engine.store, f"{name}.{i}", said, seconds, ready, results))
        for i in range(clients)
    ]
    for worker in workers:
        worker.start()
    ready.wait(timeout=120)
    start = time.perf_counter()
    done = [ms for _ in workers for ms in results.get(timeout=seconds + 120)]
    took = time.perf_counter() - start
    for worker in workers:
        worker.join()
    return _line(engine, clients, "process", done, len(done) / took)


def _process(store: str, user: str, said: Sequence[str], seconds: float, ready: Any, results: Any) -> None:
    with opened(store, None) as db:
        handle = db.user(user)
        record(handle, "warm", "up", said)
        ready.wait(timeout=120)
        results.put(_until(handle, said, seconds))

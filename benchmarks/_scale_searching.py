"""Searching at scale: latency beside its floor, growth with the store, and whether the engines agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from _figures import clocked
from _metrics import percentile
from _scale_data import MadeUp, User
from _scale_engines import Engine

from threefold.model.query import Filter, Query
from threefold.model.times import now

_WARM_UP = 10
_TOP = 10
# Questions for what takes long to check by hand.
_CHECKED = 50


def latency(engines: Sequence[Engine], user: User) -> Iterator[dict[str, Any]]:
    """Hybrid search of one user on every engine; each question goes to all of them and all floors in turns."""
    asks = {}
    for engine in engines:
        asks[engine.name, "product"] = engine.db.user(user.scope.user).conv.search
        asks[engine.name, "floor"] = engine.bare_search(user)
    for question in user.questions[:_WARM_UP]:
        for ask in asks.values():
            ask(question)
    took: dict[tuple[str, str], list[float]] = {place: [] for place in asks}
    for number, question in enumerate(user.questions):
        for place in list(asks) if number % 2 else reversed(list(asks)):
            took[place].append(clocked(partial(asks[place], question)))
    for engine in engines:
        mine, floor = took[engine.name, "product"], took[engine.name, "floor"]
        yield {
            "engine": engine.name,
            "what": "search",
            "user_rows": user.rows,
            "n": len(mine),
            **compared_ms(mine, floor),
            "target": "ratio ≤ 2",
        }


def compared_ms(took: Sequence[float], floor: Sequence[float]) -> dict[str, float]:
    """The fields that every figure of times has."""
    median, bare = percentile(took, 0.5), percentile(floor, 0.5)
    return {"p50_ms": median, "p95_ms": percentile(took, 0.95), "floor_p50_ms": bare, "ratio": median / bare}


def growth(lines: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """How much slower the same user's search became from the first store that had the user to the last one."""
    searches = [line for line in lines if line["what"] == "search"]
    for place in dict.fromkeys((line["engine"], line["user_rows"]) for line in searches):
        first, *rest = [line for line in searches if (line["engine"], line["user_rows"]) == place]
        for line in rest:
            yield {
                "engine": line["engine"],
                "what": "growth",
                "user_rows": line["user_rows"],
                "rows": line["rows"],
                "users": line["users"],
                "from_rows": first["rows"],
                "from_users": first["users"],
                "ratio": line["p50_ms"] / first["p50_ms"],
                "floor_ratio": line["floor_p50_ms"] / first["floor_p50_ms"],
                "target": "ratio ≤ 1.3",
            }


def agreement(engines: Sequence[Engine], user: User) -> Iterator[dict[str, Any]]:
    """The first ten hits of both engines: how many are the same, how often all of them and in the same order."""
    if len(engines) < 2:
        return
    shared, ordered = [], []
    for question in user.questions[:_CHECKED]:
        one, other = (_hits(engine, user, question) for engine in engines[:2])
        shared.append(len(set(one) & set(other)) / max(len(one), len(other), 1))
        ordered.append(one == other)
    yield {
        "engine": "both",
        "what": "agreement",
        "user_rows": user.rows,
        "n": len(shared),
        "equal_hits": sum(shared) / len(shared),
        "equal_order": sum(ordered) / len(ordered),
    }


def _hits(engine: Engine, user: User, question: str) -> list[tuple[str, str]]:
    return [(hit.conversation, hit.turn) for hit in engine.db.user(user.scope.user).conv.search(question, limit=_TOP)]


def exactness(engines: Sequence[Engine], user: User, model: MadeUp) -> Iterator[dict[str, Any]]:
    """The semantic list against a scan by hand over the same vectors, halved in precision as they are stored."""
    stored = user.vectors.astype(np.float16).astype(np.float32)
    for engine in engines:
        found = []
        for question in user.questions[:_CHECKED]:
            vector = model.embed([question])[0]
            best = np.argsort(-(stored @ vector), kind="stable")[:_TOP]
            query = Query(user.scope, Filter(now()), (), ("semantic",), vector, model.name, _TOP)
            keys = {(c.key.conversation, c.key.turn, c.key.seq) for c in engine.backend.candidates(query).rows}
            found.append(len(keys & {user.keys[i] for i in best}) / _TOP)
        yield {
            "engine": engine.name,
            "what": "semantic recall@10",
            "user_rows": user.rows,
            "n": len(found),
            "recall": sum(found) / len(found),
            "target": "1",
        }

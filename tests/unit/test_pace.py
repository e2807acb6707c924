"""Embedding in the background: how much at once, and what a text that fails costs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import threefold
from threefold.jobs import embed as job
from threefold.testing.fakes import Clock, FailingEmbedder, HashEmbedder


class Counting(FailingEmbedder):
    """Notes how many texts each call has; takes as long as it is told to, by the clock of the job."""

    def __init__(self, now: list[float], seconds_for_each: float) -> None:
        super().__init__()
        self.calls, self.now, self.seconds = [], now, seconds_for_each

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.calls.append(len(texts))
        self.now[0] += self.seconds * len(texts)
        return super().embed(texts)


def filled(embedder: HashEmbedder, rows: int) -> threefold.Threefold:
    db = threefold.open(":memory:", embedder=embedder, background=False, clock=Clock())
    with db.user("alice").turn("trip") as turn:
        for i in range(rows):
            turn.note(f"river {i}")
    return db


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    at = [0.0]
    monkeypatch.setattr(job.time, "perf_counter", lambda: at[0])
    return at


@pytest.mark.parametrize(("seconds", "largest"), [(1e-5, 1024), (1 / 500, 500), (0.1, 64), (10, 64)])
def test_a_batch_takes_about_a_second(now: list[float], seconds: float, largest: int) -> None:
    model = Counting(now, seconds)
    with filled(model, 2000) as db:
        assert db.embed_pending().embedded == 2000
    assert model.calls[0] == 64
    assert max(model.calls) == largest
    assert model.calls[1] == max(16, min(256, round(1 / seconds)))
    assert sum(model.calls) == 2000


def test_a_limit_is_kept(now: list[float]) -> None:
    with filled(Counting(now, 0.001), 700) as db:
        assert [db.embed_pending(limit=300).embedded for _ in range(3)] == [300, 300, 100]


def test_a_text_that_fails_costs_few_calls(now: list[float]) -> None:
    model = Counting(now, 0.001)
    with filled(model, 200) as db:
        with db.user("alice").turn("trip") as turn:
            turn.note("poison")
        done = db.embed_pending()
        assert (done.embedded, done.failed) == (200, 1)
        assert len(model.calls) < 20
        assert db.state().failed == 1

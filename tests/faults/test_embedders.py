"""Embedders that fail, lie, are slow or are others: the record and lexical search go on, and it can be seen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta

import numpy as np
import pytest

import threefold
from threefold.errors import Conflict
from threefold.testing.fakes import Clock, FailingEmbedder, HashEmbedder

Open = Callable[..., threefold.Threefold]


def say(db: threefold.Threefold, *prompts: str) -> None:
    for prompt in prompts:
        with db.user("alice").turn("trip") as turn:
            turn.prompt(prompt)


def lexical_goes_on(db: threefold.Threefold, words: str = "river") -> tuple[str, ...]:
    found = db.user("alice").conv.search(words)
    assert len(found) > 0
    assert found.mode == "lexical"
    return found.warnings


class Odd(HashEmbedder):
    """Does to each result what it is told."""

    def __init__(self, change: Callable[[np.ndarray], object]) -> None:
        super().__init__(16, "odd-1")
        self.change = change

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        return self.change(super().embed(texts))  # type: ignore[return-value]


def raises(error: Exception) -> Callable[[np.ndarray], object]:
    def change(_: np.ndarray) -> object:
        raise error

    return change


ODD = {
    "too few": lambda v: v[:-1],
    "other width": lambda v: v[:, :8],
    "flat": lambda v: v[0],
    "not numbers": lambda v: v * np.nan,
    "infinite": lambda v: v / 0.0 if np.seterr(all="ignore") else v,
    "a list": lambda v: v.tolist(),
    "nothing": lambda v: None,
    "connection lost": raises(ConnectionError("no route")),
    "its own error": raises(ValueError("texts too long")),
    "out of memory": raises(MemoryError()),
}


@pytest.mark.parametrize("kind", ODD)
def test_whatever_an_embedder_does_wrong_is_noted_and_hurts_nothing_else(
    open_db: Open, kind: str, clock: Clock
) -> None:
    db = open_db(embedder=Odd(ODD[kind]))
    say(db, "river boat", "river bridge")
    progress = db.embed_pending()
    assert (progress.embedded, progress.failed) == (0, 2)
    state = db.state(check=True)
    assert (state.pending, state.failed, state.counts["vectors"], state.embedder) == (2, 2, 0, None)
    assert state.last_failure
    assert "odd-1" in state.last_failure
    assert len(lexical_goes_on(db)) == 1
    db.embedder.change = lambda v: v
    clock.advance(timedelta(hours=1))
    assert db.embed_pending().embedded == 2
    assert db.user("alice").conv.search("river").mode == "hybrid"


def test_one_text_that_fails_does_not_hold_up_the_others(open_db: Open, clock: Clock) -> None:
    db = open_db(embedder=FailingEmbedder("poison"))
    say(db, *[f"river {i}" for i in range(20)], "river of poison")
    progress = db.embed_pending()
    assert (progress.embedded, progress.failed) == (20, 1)
    assert len(db.user("alice").conv.search("river", limit=50)) == 21
    # It is tried again, later each time.
    waits = []
    for _ in range(5):
        started = clock.at
        while db.embed_pending().failed == 0:
            clock.advance(timedelta(seconds=5))
        waits.append(clock.at - started)
    assert waits == sorted(waits)
    assert waits[-1] > waits[0]
    db.embedder.poison = "no longer"
    clock.advance(timedelta(hours=2))
    assert db.embed_pending().embedded == 1
    assert (db.state().pending, db.state().failed, db.state().last_failure) == (0, 0, None)


def test_an_embedder_that_is_down_is_said_in_the_result(open_db: Open) -> None:
    db = open_db(embedder=FailingEmbedder())
    say(db, "river boat")
    db.embed_pending()
    db.embedder.down = True
    (warning,) = lexical_goes_on(db)
    assert "down" in warning
    say(db, "river bridge")
    assert db.embed_pending().failed == 1
    assert db.state().counts["vectors"] == 1
    db.embedder.down = False
    assert db.user("alice").conv.search("river").mode == "hybrid"


@pytest.mark.parametrize("other", [HashEmbedder(64, "other-2"), HashEmbedder(32, "hash-1")])
def test_another_model_is_never_mixed_in(open_db: Open, other: HashEmbedder, clock: Clock, backend: str) -> None:
    if backend == "memory":
        pytest.skip("nothing outlives the process here")
    first = open_db()
    say(first, "river boat")
    first.embed_pending()
    first.close()
    db = open_db(embedder=other)
    say(db, "river bridge")
    (warning,) = lexical_goes_on(db)
    assert "reembed" in warning
    with pytest.raises(Conflict, match="reembed"):
        db.embed_pending()
    assert (db.state().counts["vectors"], db.state().embedder, db.state().dimensions) == (1, "hash-1", 64)
    assert db.reembed() == 2
    assert db.embed_pending().embedded == 2
    assert (db.state().embedder, db.state().dimensions) == (other.name, other.dimensions)
    assert db.user("alice").conv.search("river").mode == "hybrid"
    db.close()
    back = open_db()
    assert len(lexical_goes_on(back)) == 1


def test_a_store_that_was_opened_without_a_model_can_get_one_later(open_db: Open, backend: str) -> None:
    if backend == "memory":
        pytest.skip("nothing outlives the process here")
    none = open_db(embedder=None)
    say(none, "river boat")
    assert len(lexical_goes_on(none)) == 1
    assert none.embed_pending().embedded == 0
    with pytest.raises(Conflict):
        none.reembed()
    none.close()
    db = open_db()
    assert db.embed_pending().embedded == 1
    assert len(db.user("alice").conv.search("river boat", lists=["semantic"])) == 1


class Slow(HashEmbedder):
    """Ready only after it was loaded, which happens in `embed` and lasts until it is allowed to end."""

    def __init__(self) -> None:
        super().__init__(16, "slow-1")
        self.ready, self.may_load, self.asked_by = False, threading.Event(), []

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.asked_by.append(threading.current_thread().name)
        assert self.may_load.wait(60)
        self.ready = True
        return super().embed(texts)


def test_a_model_that_is_loading_is_never_waited_for(tmp_path) -> None:
    model = Slow()
    with threefold.open(tmp_path, embedder=model, durable=False) as db:
        say(db, "river boat")
        (warning,) = lexical_goes_on(db)
        assert "loaded" in warning
        model.may_load.set()
        for _ in range(600):
            if db.user("alice").conv.search("river").mode == "hybrid" and db.state().pending == 0:
                break
            time.sleep(0.05)
        assert db.user("alice").conv.search("river").mode == "hybrid"
        assert threading.current_thread().name not in model.asked_by[:1]


def test_the_background_thread_outlives_whatever_the_model_raises(tmp_path, clock: Clock) -> None:
    model = Odd(raises(ZeroDivisionError("a defect in the model")))
    with threefold.open(tmp_path, embedder=model, clock=clock, durable=False) as db:
        say(db, "river boat")
        for _ in range(600):
            if db.state().failed:
                break
            time.sleep(0.05)
        assert "a defect in the model" in db.state().last_failure
        model.change = lambda v: v
        clock.advance(timedelta(hours=1))
        say(db, "river bridge")
        for _ in range(600):
            if not db.state().pending:
                break
            time.sleep(0.05)
        assert (db.state().pending, db.state().counts["vectors"]) == (0, 2)


def test_a_slow_model_is_loaded_though_nothing_waits_for_vectors(tmp_path) -> None:
    quick = HashEmbedder(16, "slow-1")
    with threefold.open(tmp_path, embedder=quick, durable=False, background=False) as db:
        say(db, "river boat")
        db.embed_pending()
    model = Slow()
    with threefold.open(tmp_path, embedder=model, durable=False) as db:
        lexical_goes_on(db)
        model.may_load.set()
        for _ in range(600):
            if db.user("alice").conv.search("river").mode == "hybrid":
                break
            time.sleep(0.05)
        assert db.user("alice").conv.search("river").mode == "hybrid"

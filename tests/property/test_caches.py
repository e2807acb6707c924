"""The caches of the embedded engine say what the file says, whatever was added, replaced or removed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import threefold
from threefold.backends.sqlite import columns
from threefold.backends.sqlite import vectors as cached
from threefold.backends.sqlite.keys import read_owner
from threefold.backends.sqlite.search import candidates
from threefold.model.query import Filter, Query
from threefold.model.scope import Scope
from threefold.model.times import now


class Numbers:
    """An embedder whose vectors tell every text apart; texts with an odd number fail as long as `failing`."""

    name, dimensions, ready, failing = "numbers", 8, True, False

    def embed(self, texts: Any) -> np.ndarray:
        if self.failing and any(int(text.split()[-1]) % 2 for text in texts):
            raise ValueError("odd")
        seeds = [sum(map(ord, text)) * 31 + len(text) for text in texts]
        found = np.array([np.random.default_rng(seed).random(8) for seed in seeds], dtype=np.float32)
        return found.reshape(len(texts), 8)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("record"), st.integers(0, 3), st.integers(0, 9)),
        st.tuples(st.just("forget"), st.integers(0, 3), st.integers(0, 9)),
        st.tuples(st.sampled_from(["embed", "fail", "mend", "reembed"]), st.just(0), st.just(0)),
    ),
    max_size=25,
)


def _step(db: threefold.Threefold, model: Numbers, kind: str, place: int, number: int) -> None:
    alice = db.user("alice")
    if kind == "record":
        with alice.turn(f"c{place}", turn=f"t{number}") as turn:
            turn.prompt(f"text of {place} number {number}", author=("Anna", "Bob", None)[number % 3])
            turn.answer(f"answer {place} number {number + 1}")
    elif kind == "forget":
        alice.forget(conversation=f"c{place}")
    elif kind == "reembed":
        db.reembed()
    elif kind == "embed":
        db.embed_pending()
    else:
        model.failing = kind == "fail"


@settings(max_examples=30, deadline=None)
@given(steps=STEPS)
def test_a_search_after_every_step_finds_what_a_fresh_reader_finds(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]
) -> None:
    folder: Path = tmp_path_factory.mktemp("store")
    model = Numbers()
    with threefold.open(folder, embedder=model, background=False) as db:
        for kind, place, number in steps:
            _step(db, model, kind, place, number)
            store = db._backend
            with store._readers.snapshot() as connection:
                owner = read_owner(connection, Scope("alice"))
                if owner is not None:
                    held = store._caches.vectors._matrix(connection, owner)
                    fresh = cached.VectorCache()._matrix(connection, owner)
                    assert held.ids.tolist() == fresh.ids.tolist()
                    assert np.array_equal(held.vectors, fresh.vectors)
                    assert said(store._caches.columns.of(connection, owner)) == said(
                        columns.ColumnCache().of(connection, owner)
                    )


def said(of: columns.Columns) -> list[Any]:
    """What the columns say, by names: places are given in another order where a cache was read in parts."""
    return list(zip(of.ids.tolist(), of.expires.tolist(), of.rows, strict=True))


def test_what_is_added_is_read_on_from_where_the_cache_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    load = cached._load

    def noted(*arguments: Any) -> Any:
        found = load(*arguments)
        read.append(found.count)
        return found

    monkeypatch.setattr(cached, "_load", noted)
    with threefold.open(tmp_path, embedder=Numbers(), background=False) as db:
        alice = db.user("alice")
        for number in range(6):
            with alice.turn("c", turn=f"t{number}") as turn:
                turn.prompt(f"text number {number}")
            db.embed_pending()
            assert alice.conv.search("text number 1", lists=("semantic",), limit=10).hits
        assert read == [1] * 6


def test_a_snapshot_from_before_sees_only_the_beginning(tmp_path: Path) -> None:
    with threefold.open(tmp_path, embedder=Numbers(), background=False) as db:
        alice = db.user("alice")

        def record(number: int) -> None:
            with alice.turn("c", turn=f"t{number}") as turn:
                turn.prompt(f"text number {number}")

        record(1)
        store = db._backend
        with store._readers.snapshot() as before:
            assert read_owner(before, Scope("alice")).rows == 1
            record(2)
            assert len(alice.conv.search("text").hits) == 2
            query = Query(Scope("alice"), Filter(now()), ("text", "2"))
            found = candidates(before, query, store._caches)
            assert [row.key.turn for row in found.rows] == ["t1"]
            alice.forget(conversation="c", turn="t1")
            assert [hit.turn for hit in alice.conv.search("text").hits] == ["t2"]
            assert [row.key.turn for row in candidates(before, query, store._caches).rows] == ["t1"]
        assert [hit.turn for hit in alice.conv.search("text").hits] == ["t2"]

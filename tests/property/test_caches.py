"""The caches of the embedded engine say what the file says, whatever was added, changed, replaced or removed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from conftest import FAST_FOLDER
from hypothesis import given, settings
from hypothesis import strategies as st

import threefold
from threefold.backends.opening import open_backend
from threefold.backends.sqlite import store as stores
from threefold.backends.sqlite import vectors as cached
from threefold.backends.sqlite.keys import read_owner
from threefold.backends.sqlite.search import Caches, candidates
from threefold.errors import Conflict
from threefold.model.codec import digest_of
from threefold.model.commit import RecordTurn
from threefold.model.query import LISTS, Filter, Query
from threefold.model.record import StoredTurn, TurnRecord
from threefold.model.scope import Scope
from threefold.model.times import now
from threefold.testing.contract import Desk
from threefold.testing.contract.desk import ALICE, NOW, make_turn
from threefold.testing.fakes import HashEmbedder

MODEL = HashEmbedder(8)
LABELS = ("one", "two", "three")


class Numbers:
    """An embedder whose vectors tell every text apart."""

    name, dimensions, ready = "numbers", 8, True

    def embed(self, texts: Any) -> np.ndarray:
        seeds = [sum(map(ord, text)) * 31 + len(text) for text in texts]
        found = np.array([np.random.default_rng(seed).random(8) for seed in seeds], dtype=np.float32)
        return found.reshape(len(texts), 8)


# What is done, to which turn of which conversation, with what in it, by which of two stores, and whether the first of
# them, whose caches are looked at, searches afterwards.
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["change"] * 8 + ["embed", "embed some", "hold"] * 2 + ["record", "forget", "reembed", "release"]
        ),
        st.integers(0, 1),
        st.integers(0, 2),
        st.integers(0, 15),
        st.booleans(),
        st.booleans(),
    ),
    min_size=10,
    max_size=30,
)


def edition(desk: Desk, place: int, number: int, what: int) -> TurnRecord:
    """A turn of up to four rows, with some of the labels: others say some of it too, in another order or twice."""
    texts = [f"text of {place} number {number}", "more 0", "more 1", "more 1"]
    said = [texts[(what + i) % 4] for i in range(what // 4)]
    turn = make_turn(
        f"c{place}", f"t{number}", said, None if what % 5 else f"answer {what}", NOW + timedelta(minutes=what),
        author=("Anna", "Bob", None)[what % 3],
    )  # fmt: skip
    labels = LABELS[: what % 4]
    record = replace(desk.fold(turn, ttl=timedelta(days=1 + what)), labels=labels)
    return replace(record, digest=digest_of([record.digest, what]))


def take(desk: Desk, kind: str, place: int, number: int, what: int) -> None:
    """A step but for those that hold a snapshot."""
    if kind == "record":
        with suppress(Conflict):
            desk.commit(RecordTurn(edition(desk, place, number, what)))
    elif kind == "change":
        stored = desk.turn(f"c{place}", f"t{number}")
        replaces = stored.record.digest if isinstance(stored, StoredTurn) else ""
        desk.commit(RecordTurn(edition(desk, place, number, what), replaces=replaces))
    elif kind == "forget":
        desk.purge(f"c{place}", f"t{number}" if what % 2 else None)
    elif kind == "reembed":
        desk.backend.reset_vectors()
    elif kind == "embed":
        desk.embed(MODEL)
    else:
        rows = [row for row in desk.backend.claim(1000, desk.now, 0) if (len(row.text) + what) % 2]
        vectors = MODEL.embed([row.text for row in rows])
        desk.backend.put_vectors(MODEL.name, list(zip(rows, vectors, strict=True)))


def answers(connection: Any, caches: Caches) -> list[Any]:
    """What a snapshot answers to some questions, with these caches."""
    found = []
    for words, labels in (
        (("text", "more"), ()),
        (("answer", "anna"), (("one",),)),
        (("text", "numbre"), (("two", "three"), ("one",))),
        (("more", "text"), (("nothing",),)),
    ):
        vector = MODEL.embed([" ".join(words)])[0]
        where = Filter(NOW + timedelta(days=5), labels=labels)
        answer = candidates(connection, Query(ALICE, where, words, LISTS, vector, MODEL.name, 1000), caches)
        lists = {
            name: {answer.rows[number].key: round(score, 5) for number, score in hits}
            for name, hits in answer.lists.items()
        }
        found.append((lists, {row.key: row for row in answer.rows}, answer.rarity, answer.corrections))
    owner = read_owner(connection, ALICE)
    if owner is not None:
        matrix = caches.vectors._matrix(connection, owner)
        found += [matrix.ids.tolist(), matrix.vectors.tolist()]
        columns = caches.columns.of(connection, owner)
        assert (np.diff(columns.turns) > 0).all(), "a turn has one place"
        found += [columns.ids.tolist()]
    return found


@contextmanager
def two_stores() -> Iterator[tuple[Desk, Desk]]:
    """The same folder, opened twice; a purge does not wait for who reads."""
    with TemporaryDirectory(dir=FAST_FOLDER) as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(stores, "_SCRUB_TRIES", 1)
        here, there = (Desk(*open_backend(folder, durable=False)) for _ in range(2))
        try:
            yield here, there
        finally:
            here.close()
            there.close()


@settings(deadline=None)
@given(steps=STEPS)
def test_a_search_after_every_step_finds_what_a_fresh_reader_finds(steps: list[tuple[Any, ...]]) -> None:
    with two_stores() as (here, there), ExitStack() as held:
        store: Any = here.backend
        before: list[tuple[Any, list[Any]]] = []
        for kind, *where, by_other, looks in steps:
            if kind == "hold":
                connection = held.enter_context(store._readers.snapshot())
                before.append((connection, answers(connection, Caches())))
            elif kind == "release":
                before.clear()
                held.close()
            else:
                take(there if by_other else here, kind, *where)
            if looks:
                with store._readers.snapshot() as connection:
                    assert answers(connection, store._caches) == answers(connection, Caches())
                for connection, answered in before:
                    assert answers(connection, store._caches) == answered
        assert here.backend.state(NOW, check=True).problems == ()


def test_threads_that_search_and_change_see_one_state_or_another() -> None:
    """Each state has a word, a label and a time of its own: never two of different states."""
    with two_stores() as (here, there):
        words, rounds = ("river", "mountain", "yellow"), 40
        errors: list[BaseException] = []
        changing = threading.Event()

        def record(name: str, state: int) -> RecordTurn:
            at = NOW + timedelta(minutes=state)
            turn = make_turn(name, "1", [f"{words[state]} boat", "and more"], at=at)
            new = replace(here.fold(turn), labels=(words[state],))
            stored = here.turn(name, "1")
            return RecordTurn(new, replaces=stored.record.digest if stored else "")

        def change(desk: Desk, name: str) -> None:
            for i in range(rounds):
                desk.commit(record(name, i % 3))
                desk.say(f"{name} {i}", "1", "unlike")
                desk.embed(MODEL)

        def search(desk: Desk) -> None:
            while not changing.is_set():
                for state, word in enumerate(words):
                    found = desk.ask(f"{word} boat", *LISTS, embedder=MODEL, labels=((word,),))
                    assert {row.at for row in found.rows} <= {NOW + timedelta(minutes=state)}
                    unlike = tuple(other for other in words if other != word)
                    assert desk.find(word, labels=(unlike,)) == []

        def guarded(work: Any, *arguments: Any) -> None:
            try:
                work(*arguments)
            except BaseException as error:  # noqa: BLE001 - told by the test's own thread
                errors.append(error)

        changers = [threading.Thread(target=guarded, args=(change, here, "a"))]
        changers += [threading.Thread(target=guarded, args=(change, there, "b"))]
        searchers = [threading.Thread(target=guarded, args=(search, here)) for _ in range(3)]
        for thread in (*searchers, *changers):
            thread.start()
        for thread in changers:
            thread.join()
        changing.set()
        for thread in searchers:
            thread.join()
        assert errors == []


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

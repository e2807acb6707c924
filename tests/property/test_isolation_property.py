"""Identity: nothing of one scope, conversation or turn appears or vanishes for another, in any method of the ports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from conftest import BACKENDS, FAST_FOLDER, Address
from hypothesis import given, settings
from hypothesis import strategies as st

from threefold.backends.opening import open_backend
from threefold.errors import Conflict, NotFound
from threefold.model.query import LISTS
from threefold.model.record import StoredTurn
from threefold.model.scope import Scope
from threefold.testing.contract import Desk, full_turn
from threefold.testing.contract.desk import NOW, own
from threefold.testing.fakes import HashEmbedder
from threefold.testing.strategies import ids, scopes

MODEL = HashEmbedder(32)
HOUR = timedelta(hours=1)
fewer = settings(max_examples=max(12, settings().max_examples // 4))
Place = tuple[Scope, str, str]


def snapshot(desk: Desk, place: Place, word: str) -> dict[str, Any]:
    """Everything that the ports say of one turn, and of its scope where only it is there."""
    scope, conversation, turn = place
    stored = desk.turn(conversation, turn, scope)
    seen: dict[str, Any] = {"turn": stored}
    for name in LISTS:
        keys = desk.find(f"asked {word}", name, scope=scope, embedder=MODEL, depth=10_000, conversation=conversation)
        seen[name] = {key for key in keys if key[1] == turn}
    seen["words"] = desk.turns(word, scope=scope)
    seen["rows"] = desk.rows((conversation, turn, 0), scope=scope)
    seen["catalog"] = [e for e in desk.catalog(conversation, scope) if e.turn == turn]
    seen["conversation"] = [c for c in desk.conversations(scope) if c == conversation]
    if isinstance(stored, StoredTurn):
        seen["bytes"] = [desk.blobs.get(scope, file.digest) for file in stored.record.files]
    return seen


def nothing(desk: Desk, place: Place, word: str, gone: tuple[Any, ...]) -> None:
    seen = snapshot(desk, place, word)
    assert seen.pop("turn") in gone
    seen.pop("conversation")
    assert not any(seen.values()), seen


def fill(desk: Desk, places: list[Place]) -> list[dict[str, Any]]:
    for i, (scope, conversation, turn) in enumerate(places):
        desk.record(full_turn(conversation, turn, own(i)), scope)
        desk.react(conversation, turn, "ok", scope, text=own(i))
    while desk.embed(MODEL):
        pass
    return [snapshot(desk, place, own(i)) for i, place in enumerate(places)]


def check(desk: Desk, places: list[Place]) -> None:
    """Do everything to one place after the other; the others must not notice."""
    before = fill(desk, places)
    for i, (place, seen) in enumerate(zip(places, before, strict=True)):
        assert isinstance(seen["turn"], StoredTurn)
        assert len(seen["lexical"]) == len(seen["trigram"]) == len(seen["rows"]) == 6
        assert seen["words"] == {place[1:]}
        assert [f.text for f in seen["turn"].feedback] == [own(i)]
        assert seen["turn"].record.rows[0].text == f"asked {own(i)}"

    def others_same(changed: int, gone: set[int]) -> None:
        for j, place in enumerate(places):
            if j != changed and j not in gone:
                assert without_ordinal(snapshot(desk, place, own(j))) == without_ordinal(before[j]), (changed, j)

    gone: set[int] = set()
    for i, (scope, conversation, turn) in enumerate(places):
        desk.react(conversation, turn, "not_ok", scope, text="changed")
        others_same(i, gone)
        with pytest.raises(Conflict):
            desk.say(conversation, turn, "something else", scope)
        desk.record(full_turn(conversation, turn, f"{own(i)} anew", NOW), scope, rich=True)
        others_same(i, gone)
        rows = desk.backend.claim(1000, NOW, 60)
        assert {row.scope for row in rows} == {scope}
        desk.backend.embedding_failed(rows, "why", NOW)
        others_same(i, gone)
        again = desk.backend.claim(1000, NOW + HOUR, 60)
        desk.backend.put_vectors(MODEL.name, list(zip(again, MODEL.embed([r.text for r in again]), strict=True)))
        others_same(i, gone)
        alone = scope not in [p[0] for j, p in enumerate(places) if j != i and j not in gone]
        desk.purge(*(() if alone and i % 2 else (conversation, turn)), scope=scope)
        gone.add(i)
        nothing(desk, places[i], own(i), ("purged", None))
        others_same(i, gone)
        with pytest.raises(NotFound):
            desk.react(conversation, turn, "ok", scope)
    assert desk.backend.state(NOW, check=True).problems == ()
    assert desk.backend.state(NOW).counts["rows"] == 0


def without_ordinal(seen: dict[str, Any]) -> dict[str, Any]:
    """What must not change: places within the own conversation move when a neighbour in it goes."""
    turn = seen["turn"]
    entries = [(e.conversation, e.turn, e.about) for e in seen["catalog"]]
    return seen | {"turn": (turn.record.rows, turn.record.log, turn.feedback), "catalog": entries}


@contextmanager
def fresh_desk(backend: str) -> Iterator[Desk]:
    with TemporaryDirectory(dir=FAST_FOLDER) as folder:
        address = Address(backend, Path(folder))
        desk = Desk(*open_backend(address.name, durable=False))
        try:
            yield desk
        finally:
            desk.close()
            address.give_back()


def with_desk(backend: str, places: list[Place]) -> None:
    with fresh_desk(backend) as desk:
        check(desk, places)


@pytest.mark.parametrize("backend", BACKENDS)
@fewer
@given(st.lists(scopes(), min_size=2, max_size=3, unique=True))
def test_owners_never_meet(backend: str, owners: list[Scope]) -> None:
    with_desk(backend, [(scope, "same", "same") for scope in owners])


@pytest.mark.parametrize("backend", BACKENDS)
@fewer
@given(st.lists(ids(), min_size=2, max_size=2, unique=True))
def test_conversations_and_turns_never_meet(backend: str, pair: list[str]) -> None:
    with_desk(backend, [(Scope("alice"), conversation, turn) for conversation in pair for turn in pair])


@pytest.mark.parametrize("backend", BACKENDS)
@fewer
@given(st.lists(ids(), min_size=3, max_size=3, unique=True))
def test_the_same_ids_in_every_part_never_meet(backend: str, three: list[str]) -> None:
    a, b, c = three
    with_desk(backend, [(Scope(a, b), c, a), (Scope(b, a), c, a), (Scope(a, c), b, a), (Scope(c, a), a, c)])


@pytest.mark.parametrize("backend", BACKENDS)
@fewer
@given(ids(), ids(), ids(), ids())
def test_filters_mean_exactly_what_they_say(backend: str, role: str, conversation: str, agent: str, app: str) -> None:
    with fresh_desk(backend) as desk:
        desk.say("plain", "1", "word", Scope("alice", app="x", agent="y"))
        desk.say(conversation, "2", "word", Scope("alice", app=app, agent=agent))
        ours = {(conversation, "2")} | ({("plain", "1")} if conversation == "plain" else set())
        assert desk.turns("word", conversation=conversation) == ours
        assert desk.turns("word", roles=(role,)) == (ours | {("plain", "1")} if role == "user" else set())
        assert desk.turns("word", agent=agent) == {(conversation, "2")} | ({("plain", "1")} if agent == "y" else set())
        narrowed = {(conversation, "2")} | ({("plain", "1")} if app == "x" else set())
        assert desk.turns("word", scope=Scope("alice", app=app)) == narrowed
        assert desk.turns(role, scope=Scope("alice", "elsewhere")) == set()

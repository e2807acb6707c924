"""The memory back end: what it looks at does not grow with the square of what it holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import threefold
from threefold.backends.owned import Owned
from threefold.ports import CatalogQuery

BEGAN = datetime(2026, 5, 1, tzinfo=UTC)


def test_a_conversation_is_put_in_order_once_for_all_of_its_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    ordered: list[str] = []
    in_order = Owned.in_order
    monkeypatch.setattr(Owned, "in_order", lambda self, name: ordered.append(name) or in_order(self, name))
    with threefold.open(":memory:", embedder=None, background=False) as db:
        alice = db.user("alice")
        for number in range(200):
            with alice.turn("trip", turn=f"t{number:03}", started=BEGAN + timedelta(minutes=number)) as turn:
                turn.prompt(f"Message {number}", BEGAN + timedelta(minutes=number))
        ordered.clear()
        entries = alice.conv.turns("trip", limit=1000)
        assert [entry.ordinal for entry in entries] == list(range(1, 201))
        assert [entry.turn for entry in alice.conv.turns("trip", ordinal=-2)] == ["t198"]
        bare = db._backend.catalog(alice.scope, CatalogQuery(db.config.clock(), bare=True, limit=1000))
        assert {(entry.ordinal, entry.position, entry.about) for entry in bare} == {(0, 0, "")}
        assert not ordered
        context = alice.thread("trip").context()
        assert (context.summarised, len(context.messages)) == (150, 50)
        # Rows are read in a few pages, each of which orders it once.
        assert len(ordered) < 10

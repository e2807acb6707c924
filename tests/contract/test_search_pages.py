"""Pages of a search fit together, whatever their size and however much was stored; over each back end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import threefold
from threefold.errors import InvalidInput
from threefold.search.rank import Ranking
from threefold.testing.fakes import Clock, HashEmbedder

Open = Callable[..., threefold.Threefold]
START = datetime(2026, 11, 1, tzinfo=UTC)
SHALLOW = Ranking(depth=5)


@pytest.fixture
def many(open_db: Open) -> threefold.Threefold:
    """See `fill`."""
    return fill(open_db(embedder=HashEmbedder(16), clock=Clock()))


def fill(db: threefold.Threefold) -> threefold.Threefold:
    """120 turns of 9 conversations, more than the second stage looks at: some alike, some with several rows."""
    alice = db.user("alice")
    for i in range(120):
        at = START + timedelta(hours=i // 4)
        with alice.turn(f"c{i * i % 9}", turn=f"{i}", started=at) as turn:
            words = " ".join(("needle", "river", "boat", "bridge", "harbour")[: 1 + i % 5])
            turn.prompt(f"{words} {'filler ' * (i % 7)}{i % 3}", at=at)
            if i % 4 == 0:
                turn.answer("a needle again" if i % 8 else "the boat", at=at)
    db.embed_pending()
    return db


def refs(hits: Sequence[threefold.Hit]) -> list[str]:
    return [hit.ref for hit in hits]


ASKED = ("needle", "needlle harbour", "river boat bridge harbour", "what of the boat?")
WAYS: list[dict[str, Any]] = [
    {},
    {"group": "conversation"},
    {"ranking": Ranking(depth=5, learned=False)},
    {"ranking": Ranking(depth=5, learned=False), "group": "conversation"},
    {"lists": ["semantic"]},
    {"lists": ["lexical"], "roles": ["user"]},
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: ", ".join(way) or "plain")
def test_pages_together_are_one_long_list(many: threefold.Threefold, way: dict[str, Any]) -> None:
    search = many.user("alice").conv.search
    more = {"ranking": SHALLOW} | way
    for question in ASKED:
        whole = search(question, limit=200, **more)
        unit = [hit.conversation if "group" in way else hit.turn for hit in whole]
        assert len(set(unit)) == len(unit) > 0
        scores = [hit.score for hit in whole]
        assert scores == sorted(scores, reverse=True)
        for size in (4, 7, 50):
            pages = [search(question, limit=size, offset=at, **more) for at in range(0, len(whole), size)]
            assert [ref for page in pages for ref in refs(page)] == refs(whole), (question, size)
            assert [hit.score for page in pages for hit in page] == pytest.approx(scores)
        assert len(search(question, limit=5, offset=len(whole), **more)) == 0


def test_everything_that_matches_is_on_some_page(many: threefold.Threefold) -> None:
    search = many.user("alice").conv.search
    whole = search("needle", limit=500, ranking=SHALLOW)
    assert len(whole) == 120
    grouped = search("needle", limit=500, ranking=SHALLOW, group="conversation")
    assert {hit.conversation for hit in grouped} == {hit.conversation for hit in whole}


def test_the_best_are_the_same_however_many_are_wanted(many: threefold.Threefold) -> None:
    for question in ASKED:
        for group in ("turn", "conversation"):
            found = [
                refs(many.user("alice").conv.search(question, limit=limit, group=group, ranking=SHALLOW))[:3]
                for limit in (3, 10, 100, 5000)
            ]
            assert found.count(found[0]) == len(found), question


def test_every_back_end_gives_the_same_hits_in_the_same_order(many: threefold.Threefold) -> None:
    with threefold.open(":memory:", embedder=HashEmbedder(16), clock=Clock(), background=False) as plain:
        fill(plain)
        for question in ASKED:
            for more in ({}, {"group": "conversation"}, {"ranking": Ranking(learned=False)}):
                found = [db.user("alice").conv.search(question, limit=200, **more) for db in (plain, many)]
                assert refs(found[0]) == refs(found[1]), question
                assert [hit.score for hit in found[0]] == pytest.approx([hit.score for hit in found[1]], rel=1e-3)


def test_an_offset_is_a_number_of_hits(many: threefold.Threefold) -> None:
    search = many.user("alice").conv.search
    assert len(search("needle", limit=10_000, offset=10_000)) == 0
    for bad in (-1, 1.0, "1", True, None, 10_001):
        with pytest.raises(InvalidInput, match=r"^offset "):
            search("needle", offset=bad)  # type: ignore[arg-type]


def test_an_empty_question_is_refused_and_one_of_signs_finds_nothing(many: threefold.Threefold) -> None:
    search = many.user("alice").conv.search
    for bad in ("", " \n\t", "\u3000", None):
        with pytest.raises(InvalidInput, match=r"^query "):
            search(bad)  # type: ignore[arg-type]
    assert search("?! …").hits == ()


def test_thousands_are_given_where_thousands_match(db: threefold.Threefold) -> None:
    alice = db.user("alice")
    with_many = 1300
    for i in range(with_many // 10):
        with alice.turn("c", turn=f"{i}") as turn:
            turn.prompt(f"needle {i}")
            for n in range(9):
                turn.note(f"needle note {n}")
    for i in range(with_many):
        with alice.turn(f"d{i % 40}", turn=f"{i}") as turn:
            turn.prompt(f"needle and thread {i}")
    found = alice.conv.search("needle", limit=2000)
    assert len(found) == len(set(refs(found))) == with_many + with_many // 10
    assert len(alice.conv.search("needle", limit=1234)) == 1234
    assert len(alice.conv.search("needle", limit=100, offset=1400)) == 30
    assert len(alice.conv.search("needle", limit=10_000, group="conversation")) == 41


def test_turns_that_are_known_are_left_out_and_make_room(db: threefold.Threefold) -> None:
    alice = db.user("alice")
    refs = []
    for number in range(6):
        with alice.turn(f"c{number}") as turn:
            turn.prompt(f"river boat number {number}")
            turn.answer("a boat")
        refs.append(turn.ref)
    db.embed_pending()
    everything = alice.conv.search("river boat", limit=10)
    found = alice.conv.search("river boat", limit=3, without=refs[:3], size=None)
    assert {hit.conversation for hit in found} == {"c3", "c4", "c5"}
    assert all(hit.text in ("a boat", f"river boat number {hit.conversation[1:]}") for hit in found)
    assert len(everything) == 6
    for wrong in ("ar:1.user.prompt", "mem:record:x"):
        with pytest.raises(InvalidInput, match="no reference into the record in its long form"):
            alice.conv.search("river", without=[wrong])
    for size in (0, -1, True, 2_000_000):
        with pytest.raises(InvalidInput, match=f"size {size!r} must be"):
            alice.conv.search("river", size=size)
    short = alice.conv.search("river", size=8)
    assert all(len(hit.text) <= 12 for hit in short)

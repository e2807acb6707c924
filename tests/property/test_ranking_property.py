"""Longer candidate lists only add to the end of a ranking: what pages rest on. And no list makes a score run wild."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from threefold.model.candidates import Candidate, Candidates
from threefold.model.query import Filter, Query
from threefold.model.rows import RowKey
from threefold.model.scope import Scope
from threefold.search.rank import Group, Placing, Ranking, by_conversation, by_turn, depth_for, rank

NOW = datetime(2026, 11, 29, tzinfo=UTC)
DEPTH, DOUBLED = 3, 5
# Word 1 is misspelt: only the list of variants tells who has what it stands for.
QUERY = Query(Scope("a"), Filter(NOW), ("river", "lisobn", "boat"))
PLAIN, CORRECTED = 0b101, {"lisobn": (("lisbon", 0.8),)}
Lists = dict[str, list[tuple[int, float]]]


@st.composite
def stores(draw: st.DrawFn) -> tuple[list[Candidate], Lists]:
    """Rows as the list of variants tells them, and whole lists over them with many equal scores."""
    places = draw(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 40)), min_size=1, max_size=50, unique=True))
    rows = [
        Candidate(
            RowKey(chat, f"{position // 2}", position % 2),
            draw(st.sampled_from(["user", "assistant"])),
            NOW - timedelta(days=draw(st.integers(0, 3))),
            position,
            draw(st.integers(1, 9)),
            None,
            draw(st.booleans()),
            draw(st.integers(0, 7)),
        )
        for chat, position in places
    ]
    lists = {}
    for name in ("lexical", "trigram", "semantic"):
        of = draw(st.permutations(range(len(rows))))[: draw(st.integers(0, len(rows)))]
        values = sorted(draw(st.lists(st.integers(1, 6), min_size=len(of), max_size=len(of))), reverse=True)
        lists[name] = [(number, value / 6) for number, value in zip(of, values, strict=True)]
    return rows, lists


def answer(rows: Sequence[Candidate], lists: Lists, depth: int) -> Candidates:
    """What a store would say when asked for lists of this depth: rows numbered as they come."""
    cut = {name: hits[:depth] for name, hits in lists.items()}
    numbers: dict[int, int] = {}
    told: dict[int, int] = {}
    for name, hits in cut.items():
        for number, _ in hits:
            numbers.setdefault(number, len(numbers))
            tells = {"lexical": PLAIN, "trigram": 0b111}.get(name, 0)
            told[number] = told.get(number, 0) | rows[number].having & tells
    found: Any = {name: [(numbers[n], score) for n, score in hits] for name, hits in cut.items()}
    of = [rows[number]._replace(having=told[number]) for number in numbers]
    return Candidates.of(of, found, (1.0, 2.0, 3.0), CORRECTED)


def named(placing: Placing, groups: Sequence[Group]) -> list[tuple[float, RowKey]]:
    return [(score, placing.rows[turns[0][0]].key) for score, turns in groups]


@given(store=stores(), learned=st.booleans(), recency=st.sampled_from([0.0, 0.25, 5.0]))
def test_longer_lists_only_add_to_the_end(store: tuple[list[Candidate], Lists], learned: bool, recency: float) -> None:
    rows, lists = store
    ranking = Ranking(depth=DEPTH, learned=learned, recency=recency)
    seen: dict[RowKey, list[float]] = {}
    shorter: list[list[tuple[float, RowKey]]] = [[], [], []]
    for doubled in range(DOUBLED):
        placing = rank(answer(rows, lists, DEPTH << doubled), QUERY, ranking)
        turns = by_turn(placing)
        each = [(placing.score[number], placing.rows[number].key) for number in placing.order]
        orders = [each, named(placing, turns), named(placing, by_conversation(placing, turns))]
        if placing.seen is not None:
            looked_at = {placing.rows[n].key: row for n, row in zip(placing.head, placing.seen.tolist(), strict=True)}
            assert seen in ({}, looked_at)
            seen = looked_at
        for before, now in zip(shorter, orders, strict=True):
            assert now[: len(before)] == before
            scores = [score for score, _ in now]
            assert scores == sorted(scores, reverse=True)
            assert not learned or all(0 <= score <= 1 for score in scores)
        shorter = orders


@given(store=stores(), data=st.data())
def test_how_a_store_numbers_its_rows_does_not_matter(
    store: tuple[list[Candidate], Lists], data: st.DataObject
) -> None:
    rows, lists = store
    order = data.draw(st.permutations(range(len(rows))))
    moved = [rows[number] for number in order]
    there: Lists = {
        name: sorted(((order.index(n), score) for n, score in hits), key=lambda hit: (-hit[1], hit[0]))
        for name, hits in lists.items()
    }
    ranking = Ranking(depth=100)
    one, other = (rank(answer(of, each, 100), QUERY, ranking) for of, each in ((rows, lists), (moved, there)))
    assert [(one.rows[n].key, one.score[n]) for n in one.order] == [
        (other.rows[n].key, other.score[n]) for n in other.order
    ]


@given(rows=st.integers(1, 10**6), depth=st.integers(1, 10_000))
def test_lists_are_deep_enough_and_their_depth_is_doubled(rows: int, depth: int) -> None:
    chosen = depth_for(rows, Ranking(depth=depth))
    assert chosen >= rows
    assert chosen % depth == 0
    assert (chosen // depth).bit_count() == 1
    assert chosen == depth or chosen < 2 * rows

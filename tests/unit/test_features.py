"""What the learned ranker looks at, against the same said in plain Python row by row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from threefold.model.candidates import Candidate, CandidateRows
from threefold.model.query import TOLD, Filter, Query
from threefold.model.rows import RowKey
from threefold.model.scope import Scope
from threefold.search.bm25 import K1
from threefold.search.features import FEATURES, REACH, UNDATED, Listed, features
from threefold.text.asking import ENDING, asks
from threefold.text.dates import Period, nearness, periods
from threefold.text.terms import query_terms

NOW = datetime(2026, 11, 29, tzinfo=UTC)
AUTHORS = [None, "Anna Weber", "张伟", "Дмитрий", "فاطمة", "Merrivale"]
Lists = Mapping[str, Sequence[tuple[int, float]]]


def asked(text: str) -> Query:
    return Query(Scope("a"), Filter(NOW), query_terms(text))


def listing(hits: Sequence[tuple[int, float]], rows: int, cut: bool = False) -> Listed:
    scores, ranks = np.zeros(rows), np.zeros(rows, dtype=np.int64)
    for rank, (number, score) in enumerate(hits, 1):
        scores[number], ranks[number] = score, rank
    return Listed(scores, ranks, cut)


def seen(
    rows: Sequence[Candidate],
    lists: Lists,
    rarity: Sequence[float] = (),
    text: str = "",
    named: Sequence[Period] = (),
    cut: bool = False,
) -> list[dict[str, float]]:
    listed: Any = {name: listing(hits, len(rows), cut) for name, hits in lists.items()}
    found = features(CandidateRows.of(rows), listed, rarity, asked(text), named)
    assert found.shape == (len(rows), len(FEATURES))
    assert found.dtype == np.float64
    assert np.isfinite(found).all()
    return [dict(zip(FEATURES, row, strict=True)) for row in found.tolist()]


@st.composite
def candidates(draw: st.DrawFn) -> list[Candidate]:
    """Rows of several conversations with gaps between their positions, in their order."""
    places = draw(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 70)), min_size=1, max_size=40, unique=True))
    return [
        Candidate(
            RowKey(chat, f"{position // 2}", position % 2),
            draw(st.sampled_from(["user", "assistant", "note"])),
            NOW - timedelta(days=draw(st.integers(-400, 4000))),
            position,
            draw(st.integers(0, 5000)),
            draw(st.sampled_from(AUTHORS)),
            draw(st.booleans()),
            draw(st.integers(0, 2**TOLD - 1) | st.integers(0, 63)),
        )
        for chat, position in sorted(places)
    ]


@st.composite
def lists_over(draw: st.DrawFn, rows: int) -> Lists:
    """Any of the three lists, each with some of the rows and falling scores, alike or nothing at times."""
    scores = st.floats(0, 50) | st.sampled_from([0.0, 1.0, 1e-300])
    numbers = st.lists(st.integers(0, rows - 1), unique=True, max_size=rows)
    found = {}
    for name in draw(st.sets(st.sampled_from(["lexical", "trigram", "semantic"]))):
        of = draw(numbers)
        values = draw(st.lists(scores, min_size=len(of), max_size=len(of)))
        found[name] = list(zip(of, sorted(values, reverse=True), strict=True))
    return found


def plainly_scaled(hits: Sequence[tuple[int, float]], rows: int, cut: bool) -> list[float]:
    best = max((score for _, score in hits), default=0.0)
    if best <= 0:
        return [0.0] * rows
    floor = min(score for _, score in hits) if cut else 0.0
    return [(dict(hits)[n] - floor) / best if n in dict(hits) else 0.0 for n in range(rows)]


def plainly_beside(rows: Sequence[Candidate], values: Sequence[float], distance: int, missing: float) -> list[float]:
    there = {(row.key.conversation, row.position): value for row, value in zip(rows, values, strict=True)}
    return [there.get((row.key.conversation, row.position + distance), missing) for row in rows]


def near(rows: Sequence[Candidate], row: Candidate, reach: int) -> list[int]:
    return [
        i
        for i, other in enumerate(rows)
        if other.key.conversation == row.key.conversation and abs(other.position - row.position) <= reach
    ]


@given(data=st.data(), rows=candidates(), cut=st.booleans())
def test_scores_are_scaled_and_read_with_those_around(data: st.DataObject, rows: list[Candidate], cut: bool) -> None:
    lists = data.draw(lists_over(len(rows)))
    rarity = data.draw(st.lists(st.floats(0, 12), max_size=TOLD))
    found = seen(rows, lists, rarity, cut=cut)
    # The list of corrected words holds what the lexical one does.
    used = {"lexical": lists.get("trigram") or lists.get("lexical", []), "semantic": lists.get("semantic", [])}
    scaled = {name: plainly_scaled(hits, len(rows), cut) for name, hits in used.items()}
    for name, values in scaled.items():
        assert [row[name] for row in found] == pytest.approx(values)
    for name in ("lexical", "semantic"):
        for distance in (-2, -1, 1, 2):
            beside = plainly_beside(rows, scaled[name], distance, 0.0)
            assert [row[f"{name}{distance:+d}"] for row in found] == pytest.approx(beside)
        around = [sorted((scaled[name][i] for i in near(rows, row, REACH)), reverse=True) for row in rows]
        assert [row[f"{name}_around"] for row in found] == pytest.approx([sum(each[:3]) / 3 for each in around])
        assert [row[f"{name}_best_around"] for row in found] == pytest.approx([each[0] for each in around])
        ranks = {number: 1 / (5 + rank) for rank, (number, _) in enumerate(used[name], 1)}
        assert [row[f"{name}_rank"] for row in found] == [ranks.get(i, 0.0) for i in range(len(rows))]
    highest = (K1 + 1) * sum(rarity)
    lexical = dict(used["lexical"])
    strength = [min(lexical.get(i, 0.0), highest) / highest if highest else 0.0 for i in range(len(rows))]
    assert [row["strength"] for row in found] == pytest.approx(strength)


@given(rows=candidates(), rarity=st.lists(st.floats(0, 12) | st.just(0.0), max_size=TOLD))
def test_shares_are_of_the_rarity_that_a_row_has_alone_and_with_what_is_around(
    rows: list[Candidate], rarity: list[float]
) -> None:
    found = seen(rows, {}, rarity)
    total = sum(rarity)

    def share(numbers: Sequence[int]) -> float:
        told = 0
        for number in numbers:
            told |= rows[number].having
        return sum(r for i, r in enumerate(rarity) if told >> i & 1) / total if total else 0.0

    for number, row in enumerate(rows):
        before = [i for i in near(rows, row, 1) if rows[i].position <= row.position]
        wanted = {
            "share": share([number]),
            "share_beside": share(near(rows, row, 1)),
            "share_near": share(near(rows, row, 2)),
            "share_since_before": share(before),
            "share_in_conversation": share(near(rows, row, 10**9)),
        }
        assert {name: found[number][name] for name in wanted} == pytest.approx(wanted)
        has = [r for i, r in enumerate(rarity) if row.having >> i & 1]
        assert found[number]["rarest"] == pytest.approx(max(has, default=0.0) / max(rarity) if total else 0.0)
        assert found[number]["words_found"] == pytest.approx(len(has) / len(rarity) if total else 0.0)


@given(rows=candidates())
def test_what_a_row_is_and_what_stands_beside_it(rows: list[Candidate]) -> None:
    found = seen(rows, {}, text="What did Merrivale say?")
    called = {"Merrivale": 1.0, None: 0.0} if any(row.author == "Merrivale" for row in rows) else {}
    named = [called.get(row.author, -1.0) if called else 0.0 for row in rows]
    length = [math.log1p(row.words) for row in rows]
    asking = [float(row.asks) for row in rows]
    for name, values, missing in (("named", named, 0.0), ("length", length, -1.0), ("asks", asking, -1.0)):
        assert [row[name] for row in found] == pytest.approx(values)
        for distance in (-1, 1):
            beside = plainly_beside(rows, values, distance, missing)
            assert [row[f"{name}{distance:+d}"] for row in found] == pytest.approx(beside)
    assert [row["usual_length"] for row in found] == pytest.approx([sum(length) / len(rows)] * len(rows))
    assert [(row["user"], row["assistant"]) for row in found] == [
        (float(row.role == "user"), float(row.role == "assistant")) for row in rows
    ]


@pytest.mark.parametrize(
    ("question", "called"),
    [
        ("what did Anna tell us", "Anna Weber"),
        ("Was hat WEBER gesagt?", "Anna Weber"),
        ("张伟说了什么", "张伟"),
        ("что сказал Дмитрий", "Дмитрий"),
        ("ماذا قالت فاطمة", "فاطمة"),
    ],
)
def test_an_author_that_the_question_names_is_told_from_the_others(question: str, called: str) -> None:
    rows = [Candidate(RowKey("c", f"{i}", 0), "user", NOW, i, 9, author) for i, author in enumerate(AUTHORS)]
    found = seen(rows, {}, text=question)
    assert {row.author: each["named"] for row, each in zip(rows, found, strict=True)} == {
        author: 0.0 if author is None else 1.0 if author == called else -1.0 for author in AUTHORS
    }
    assert {each["named"] for each in seen(rows, {}, text="what of the ferry")} == {0.0}


def test_a_time_that_the_question_names_is_near_or_far_and_else_between() -> None:
    rows = [Candidate(RowKey("c", f"{i}", 0), "user", NOW - timedelta(days=30 * i), i, 9) for i in range(12)]
    assert {row["when"] for row in seen(rows, {})} == {UNDATED}
    named = periods("what did we say in March 2026", NOW)
    assert named
    found = seen(rows, {}, named=named)
    assert [row["when"] for row in found] == pytest.approx([nearness(named, row.at) for row in rows])
    assert {round(row["when"]) for row in found} == {0, 1}


def test_all_is_finite_whatever_the_lists_hold() -> None:
    one = [Candidate(RowKey("c", "1", 0), "user", NOW, 0, 0)]
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    full = 2**TOLD - 1
    extreme = [
        Candidate(RowKey("c", f"{i}", 0), "user", at, 2**62 + i, 2**40, "猫", True, full)
        for i, at in enumerate((first, last))
    ]
    assert seen([], {"lexical": [], "semantic": []}, [1.0]) == []
    for rows in (one, extreme):
        for lists in ({}, {"lexical": []}, {"lexical": [(0, 0.0)]}, {"semantic": [(0, 1e-300)], "trigram": [(0, 1e9)]}):
            for rarity in ((), (0.0,), (0.0,) * 62, (3.0,) * 62, (3.0,) * 70):
                for cut in (False, True):
                    seen(rows, lists, rarity, "猫 2026", periods("2026", NOW), cut)
    assert seen(extreme, {}, (3.0,) * 70)[0]["share"] == pytest.approx(1.0)


def test_a_cut_list_of_scores_that_are_all_alike_decides_nothing() -> None:
    rows = [Candidate(RowKey("c", f"{i}", 0), "user", NOW, 3 * i, 9) for i in range(5)]
    alike = {"semantic": [(i, 0.7) for i in range(5)]}
    assert {row["semantic"] for row in seen(rows, alike, cut=True)} == {0.0}
    assert {row["semantic"] for row in seen(rows, alike)} == {1.0}


ASKING = (
    "Where?", "where ?", "Really?!", 'he said "why?"', "どこ？", "「どこ？」", "（どこ？）", "أين؟", "أين؟\u200f",
    "Որտե՞ղ է՞", "ስም፧", "⸮", "what⁇", "is it?…", "(when?)", "*when?*", "πού είναι\u037e", "πού είναι;", "τι ακούς;»",
)  # fmt: skip
TELLING = ("", "   ", "...", "Here.", "why? because", "今天。", "? no", "100 %", "!", "x = 1;", "a;")


@pytest.mark.parametrize("text", ASKING)
def test_a_text_that_ends_with_a_question_mark_asks(text: str) -> None:
    assert asks(text[-ENDING:])


@pytest.mark.parametrize("text", TELLING)
def test_a_text_that_ends_otherwise_does_not_ask(text: str) -> None:
    assert not asks(text[-ENDING:])

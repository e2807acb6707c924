"""Ranking, spelling, excerpts, times: the pure rooms of search."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import threefold
from threefold.errors import InvalidInput
from threefold.model.candidates import Candidate, CandidateRows, Candidates
from threefold.model.query import Filter, Query
from threefold.model.rows import RowKey
from threefold.model.scope import Scope
from threefold.model.times import from_micros, iso, now, parse_moment, retry_after, to_micros
from threefold.search.bm25 import bm25
from threefold.search.rank import Placing, Ranking, by_conversation, by_turn, rank, recency_lifts
from threefold.search.spelling import corrections
from threefold.text.excerpt import excerpt
from threefold.text.terms import index_terms, query_terms

NOW = datetime(2026, 11, 29, tzinfo=UTC)
PLAIN = Ranking(learned=False, recency=0)


def row(conversation: str = "c", turn: str = "t", seq: int = 0, age: float = 0, words: int = 50) -> Candidate:
    return Candidate(RowKey(conversation, turn, seq), "user", NOW - timedelta(days=age), seq, words)


def ranked(rows: list[Candidate], lists: dict[str, list[tuple[int, float]]], ranking: Ranking = PLAIN):
    placing = placed(rows, lists, ranking)
    return [placing.entry(number) for number in placing.order]


def placed(rows: list[Candidate], lists: dict[str, list[tuple[int, float]]], ranking: Ranking = PLAIN):
    found = Candidates.of(rows, lists)  # type: ignore[arg-type]
    return rank(found, Query(Scope("a"), Filter(NOW), ()), ranking)


def test_a_fused_score_is_the_sum_over_lists_of_weight_by_k_and_rank() -> None:
    rows = [row(turn="a"), row(turn="b")]
    ranking = Ranking(k=60, weights={"lexical": 2.0, "semantic": 1.0, "trigram": 0.0}, learned=False, recency=0)
    first, second = ranked(rows, {"lexical": [(0, 5.0), (1, 4.0)], "semantic": [(1, 0.9)]}, ranking)
    assert (first.row.key.turn, second.row.key.turn) == ("b", "a")
    assert first.fused == pytest.approx(2 / 62 + 1 / 61)
    assert second.fused == pytest.approx(2 / 61)
    assert first.explain()["lists"] == {"lexical": {"rank": 2, "score": 4.0}, "semantic": {"rank": 1, "score": 0.9}}


def test_the_recency_lift_halves_with_each_half_life() -> None:
    ranking = Ranking(recency=0.5, half_life=timedelta(days=7))
    lifts = recency_lifts(
        np.array([to_micros(NOW - timedelta(days=d)) for d in (0, 7, 14, 700_000, -30)]), to_micros(NOW), ranking
    )
    assert list(lifts) == pytest.approx([1.5, 1.25, 1.125, 1.0, 1.5])
    rows = [row(turn="old", age=365), row(turn="new", age=0)]
    for recency, first in ((0.0, "old"), (0.5, "new")):
        best = ranked(rows, {"lexical": [(0, 5.0), (1, 4.9)]}, Ranking(learned=False, recency=recency))[0]
        assert best.row.key.turn == first


def test_equal_scores_always_come_in_the_same_order() -> None:
    places = (("b", "1", 0), ("a", "2", 0), ("a", "1", 1), ("a", "1", 0), ("a", "0", 0))
    rows = [row(c, t, s)._replace(position=2 * int(t) + s, at=NOW - timedelta(days=t == "0")) for c, t, s in places]
    orders = set()
    for shift in range(len(rows)):
        turned = rows[shift:] + rows[:shift]
        each = {f"l{i}": [(i, 1.0)] for i in range(len(rows))}
        orders.add(tuple((r.row.key.conversation, r.row.key.turn, r.row.key.seq) for r in ranked(turned, each)))
    assert orders == {(("a", "1", 0), ("a", "1", 1), ("a", "2", 0), ("b", "1", 0), ("a", "0", 0))}


def test_a_turn_is_ranked_by_its_best_row_and_a_conversation_by_its_best_turns() -> None:
    rows = [row("c", "1", 0), row("c", "1", 1), row("c", "2", 2), row("d", "1", 0)]
    placing = placed(rows, {"lexical": [(1, 9.0), (3, 8.0), (0, 7.0), (2, 6.0)]})
    turns = by_turn(placing)
    assert [members for _, members in turns] == [[[1, 0]], [[3]], [[2]]]
    groups = by_conversation(placing, turns)
    assert [rows[members[0][0]].key.conversation for _, members in groups] == ["c", "d"]
    assert groups[0][0] > turns[0][0]


def test_many_likely_turns_outweigh_a_likelier_one_and_a_deeper_tier_does_not_count() -> None:
    rows = [row("c", "1"), row("d", "1"), row("d", "2"), row("d", "3"), row("d", "4"), row("c", "2")]
    score, tier = np.array([0.5, 0.4, 0.4, 0.01, 0.001, 0.0001]), np.array([0, 0, 0, 0, 1, 1])
    six, lift = np.arange(6), np.ones(6)
    placing = Placing(CandidateRows.of(rows), six, tier, score, score, lift, {}, six, likely=score)
    groups = by_conversation(placing, by_turn(placing))
    assert [(round(told, 4), [rows[turn[0]].key for turn in turns]) for told, turns in groups] == [
        (0.6436, [rows[n].key for n in (1, 2, 3, 4)]),
        (0.5, [rows[n].key for n in (0, 5)]),
    ]


def test_nothing_found_is_nothing_ranked() -> None:
    for ranking in (PLAIN, Ranking()):
        placing = placed([], {"lexical": [], "semantic": []}, ranking)
        assert list(placing.order) == by_turn(placing) == by_conversation(placing, []) == []


def test_rows_that_no_list_has_come_in_the_order_of_their_time() -> None:
    for ranking in (PLAIN, Ranking()):
        placing = placed([row(turn="old", age=3), row(turn="new")], {"lexical": []}, ranking)
        assert [placing.rows[number].key.turn for number in placing.order] == ["new", "old"]


def test_the_second_stage_gives_finite_scores_whatever_the_lists_hold() -> None:
    rows = [row(turn=str(i), seq=i, words=i) for i in range(4)]
    for lists in ({"lexical": [(0, 0.0)]}, {"semantic": [(1, 1e-12)]}, {"lexical": [(2, 1e9)], "trigram": [(3, 1.0)]}):
        scores = [r.score for r in ranked(rows, lists, Ranking())]
        assert all(0 <= s < 1 for s in scores)


@pytest.mark.parametrize("bad", [{"k": -1}, {"recency": -0.1}, {"depth": 0}, {"half_life": timedelta(0)},
                                 {"weights": {"lexical": -1.0}}, {"k": float("nan")}, {"recency": float("inf")},
                                 {"weights": {"lexical": float("inf")}}, {"weights": {"other": 1.0}}, {"depth": 2.5},
                                 {"depth": 2**70}])  # fmt: skip
def test_rankings_that_make_no_sense_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(bad))):
        Ranking(**bad)


def test_bm25_counts_rare_words_more_and_long_texts_less() -> None:
    documents = {1: ["a", "b"], 2: ["a", "c"], 3: ["a", "b"] + ["x"] * 20, 4: ["d"], 5: ["e"]}
    scores = bm25(["b"], documents).scores
    assert set(scores) == {1, 3}
    assert scores[1] > scores[3]
    assert bm25(["d"], documents).scores[4] > bm25(["a"], documents).scores[2] > 0
    assert bm25(["猫*"], {1: ["猫咪"], 2: ["狗"]}).scores.keys() == {1}
    assert bm25([], documents).scores == bm25(["a"], {}).scores == {}


def test_bm25_tells_which_terms_a_text_has_and_how_rare_they_are() -> None:
    found = bm25(["a", "none", "b"], {1: ["a", "b"], 2: ["a"], 3: ["c"]})
    assert found.having == {1: 0b101, 2: 0b001}
    assert set(found.rarity) == {0, 2}
    assert found.rarity[2] > found.rarity[0] > 0


@pytest.mark.parametrize(
    ("word", "vocabulary", "first"),
    [
        ("lisbom", ["lisbon", "london"], "lisbon"),
        ("lisbno", ["lisbon", "london"], "lisbon"),
        ("alfma", ["alfama", "lima"], "alfama"),
        ("casinoroyal", ["supercasinoroyal"], "supercasinoroyal"),
        ("москвы", ["москва", "париж"], "москва"),
    ],
)
def test_a_misspelt_word_is_corrected(word: str, vocabulary: list[str], first: str) -> None:
    found = corrections(word, vocabulary)
    assert found[0][0] == first
    assert all(0 < similarity <= 1 for _, similarity in found)


@pytest.mark.parametrize(("word", "vocabulary"), [("ab", ["abc"]), ("xyz", ["lisbon"]), ("a", ["a b"]), ("word", [])])
def test_what_is_not_alike_is_not_corrected(word: str, vocabulary: list[str]) -> None:
    assert corrections(word, vocabulary) == ()


def test_corrections_are_few_and_in_a_fixed_order() -> None:
    vocabulary = [f"wor{c}d" for c in "abcdefghij"]
    assert corrections("world", vocabulary) == corrections("world", vocabulary)
    assert len(corrections("world", vocabulary)) == 5


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Forecast-Q2-2026.xlsx", {"forecast", "q2", "2026", "xlsx", "forecast-q2-2026.xlsx"}),
        ("getUserName", {"getusernam", "get", "user", "name"}),
        ("snake_case_name", {"snake_case_name", "snake", "case", "name"}),
        ("C++ and C#", {"c++", "and", "c#"}),
        ("it's l'amour", {"it", "amour"}),
        ("naïve Café", {"naiv", "cafe"}),
        ("Ωmega ΑΘΉΝΑ", {"ωmega", "αθην"}),
        ("成语", {"成语", "语"}),
        ("🎉🎉", {"🎉"}),
        ("", set()),
        ("--- ... !!!", set()),
    ],
)
def test_terms_of_a_text(text: str, terms: set[str]) -> None:
    assert set(index_terms(text)) == terms


def test_questions_drop_stop_words_unless_there_is_nothing_else() -> None:
    assert query_terms("what is the river") == ("river",)
    assert query_terms("what is the") == ("what", "is", "the")
    assert query_terms("river river RIVER rivers") == ("river",)
    assert query_terms("猫") == ("猫*",)
    assert query_terms("成语接龙") == ("成语", "语接", "接龙")


def test_an_excerpt_shows_the_part_with_most_of_the_words() -> None:
    text = "boat " * 100 + "the needle and the thread " + "boat " * 100
    part = excerpt(text, query_terms("needle thread boat"), 80)
    assert "needle and the thread" in part.text
    assert part.text.startswith("…")
    assert part.text.endswith("…")
    assert {part.text[s:e] for s, e in part.matches} == {"needle", "thread", "boat"}
    assert excerpt("short", (), 80).text == "short"
    assert excerpt("x" * 500, (), 80).text == "x" * 80 + "…"
    runs = excerpt("今天玩成语接龙游戏", query_terms("成语接龙"))
    assert [runs.text[s:e] for s, e in runs.matches] == ["成语接龙"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-11-29", "2026-11-29T00:00:00Z"),
        ("2026-11-29T08:30:00+02:00", "2026-11-29T06:30:00Z"),
        (" 2026-11-29T08:30:00.000001Z ", "2026-11-29T08:30:00.000001Z"),
        ("2028-02-29", "2028-02-29T00:00:00Z"),
        (0, "1970-01-01T00:00:00Z"),
        (1_764_374_400, "2025-11-29T00:00:00Z"),
        (1_764_374_400_000, "2025-11-29T00:00:00Z"),
        (1.5, "1970-01-01T00:00:01.500000Z"),
        ("0001-01-01", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59.999999", "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_moments_in_every_spelling(value: Any, expected: str) -> None:
    moment = parse_moment(value, "at")
    assert iso(moment) == expected
    assert from_micros(to_micros(moment)) == moment


@pytest.mark.parametrize(
    "bad",
    [
        "0000-01-01",
        "2027-02-29",
        "2026-13-01",
        "x",
        "",
        None,
        True,
        [],
        1e20,
        float("nan"),
        "0001-01-01T00:00:00+02:00",
    ],
)
def test_what_is_no_moment_names_its_argument(bad: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^since "):
        parse_moment(bad, "since")


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("reservation", "reservaton"),
        ("reservation", "reservatoin"),
        ("restaurant", "restaurnat"),
        ("received", "recieved"),
        ("accommodation", "acommodation"),
        ("definitely", "definately"),
        ("openpyxl", "opnepyxl"),
        ("Anniversary", "aniversary"),
    ],
)
def test_a_misspelt_word_is_found_though_its_ending_was_stripped(written: str, asked: str) -> None:
    with threefold.open(":memory:", embedder=None, background=False) as db:
        alice = db.user("alice")
        with alice.turn("a") as turn:
            turn.prompt(f"about the {written} of yesterday")
        with alice.turn("b") as turn:
            turn.prompt("an entirely different matter of preservation and international understanding")
        found = alice.conv.search(asked)
        assert found[0].conversation == "a"
        assert found[0].matched == (written,)


@pytest.mark.parametrize("store", [":memory:", "folder"])
def test_the_limit_is_honoured_though_few_turns_or_conversations_hold_most_matches(store: str, tmp_path: Path) -> None:
    place = store if store == ":memory:" else tmp_path / "store"
    with threefold.open(place, embedder=None, background=False, durable=False) as db:
        alice = db.user("alice")
        for i in range(40):
            with alice.turn("busy", turn=f"{i}") as turn:
                for n in range(12):
                    turn.note(f"needle note {n} of turn {i}")
        for name in "abcd":
            with alice.turn(name) as turn:
                turn.prompt("a needle in a much longer message about entirely different matters of every kind " * 3)
        assert len(alice.conv.search("needle", limit=44)) == 44
        found = alice.conv.search("needle", limit=5, group="conversation")
        assert {hit.conversation for hit in found} == {"busy", "a", "b", "c", "d"}


def test_a_long_question_is_cut_and_the_result_says_so() -> None:
    with threefold.open(":memory:", embedder=None, background=False) as db:
        with db.user("alice").turn("a") as turn:
            turn.prompt("needle")
        long = db.user("alice").conv.search("needle " + " ".join(f"word{i}" for i in range(3000)))
        assert len(long) == 1
        assert any("long" in warning for warning in long.warnings)
        assert db.user("alice").conv.search("needle", lists=["semantic"]).mode == "none"


def test_what_is_no_embedder_is_refused_at_once() -> None:
    with pytest.raises(InvalidInput, match="dimensions"):
        threefold.open(":memory:", embedder=object())


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None), ("3", 3.0), ("0.5", 0.5), ("-1", 0.0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0), ("soon", None),
        ("", None), ("nan", 0.0),
    ],
)  # fmt: skip
def test_what_a_server_says_of_when_to_ask_again(value: str | None, seconds: float | None) -> None:
    assert retry_after(value) == seconds


def test_a_moment_to_ask_again_is_seconds_from_now() -> None:
    told = retry_after(format_datetime(now() + timedelta(minutes=1)))
    assert told is not None
    assert 0 < told <= 61

"""What a question asks a store for, and which of its words each phrase stands for."""

from __future__ import annotations

from functools import reduce
from operator import or_

from hypothesis import given
from hypothesis import strategies as st

from threefold.model.query import TOLD
from threefold.search.spelling import MAX_PHRASES, phrases_of, rarity_of
from threefold.text.terms import WILDCARD


def test_a_variant_of_two_words_stands_for_both() -> None:
    asked = phrases_of(["lisobn", "river", "lisbom"], {"lisobn": [("lisbon", 0.8)], "lisbom": [("lisbon", 0.9)]})
    assert asked.phrases == ("lisbon", "river")
    assert [asked.having(told) for told in range(4)] == [0, 0b101, 0b010, 0b111]
    assert asked.rarity({0: 2.0, 1: 3.0}) == {0: 2.0, 1: 3.0, 2: 2.0}


def test_a_variant_may_be_another_word_of_the_question() -> None:
    asked = phrases_of(["lisbon", "lisobn"], {"lisobn": [("lisbon", 0.8), ("lison", 0.7)]})
    assert asked.phrases == ("lisbon", "lison")
    assert (asked.having(0b01), asked.having(0b10)) == (0b11, 0b10)


def test_the_commonest_variant_tells_the_rarity() -> None:
    asked = phrases_of(["a", "b"], {"a": [("x", 0.9), ("y", 0.8)]})
    assert asked.phrases == ("x", "b", "y")  # the best variants first: more words are told of
    assert asked.rarity({0: 5.0, 1: 7.0, 2: 2.0}) == {0: 2.0, 1: 7.0}
    assert asked.rarity({0: 5.0}) == {0: 5.0}
    assert asked.rarity({}) == {}


def test_a_word_without_variants_is_not_asked_for() -> None:
    assert phrases_of(["known", "gone"], {"gone": []}).phrases == ("known",)
    assert phrases_of([]).phrases == ()


def test_beginnings_of_words_come_last_and_keep_their_words() -> None:
    asked = phrases_of(["猫*", "river", "狗*", "boat"])
    assert asked.phrases == ("river", "boat", "猫*", "狗*")
    assert [asked.having(1 << i) for i in range(4)] == [0b0010, 0b1000, 0b0001, 0b0100]


def test_of_more_words_than_fit_the_first_are_told() -> None:
    words = [f"w{i}" for i in range(200)]
    asked = phrases_of(words)
    assert asked.phrases == tuple(words)
    assert asked.having(2**TOLD - 1) == 2**TOLD - 1
    assert asked.stands_for[TOLD:] == (0,) * (200 - TOLD)
    assert asked.rarity(dict.fromkeys(range(TOLD), 1.0)).keys() == set(range(TOLD))


def test_a_question_of_misspelt_words_only_asks_for_the_best_variants_of_all() -> None:
    words = [f"w{i}" for i in range(256)]
    asked = phrases_of(words, {word: [(f"{word}-{n}", 0.9) for n in range(5)] for word in words})
    assert len(asked.phrases) == MAX_PHRASES
    assert asked.phrases[:256] == tuple(f"{word}-0" for word in words)
    assert asked.having(2**TOLD - 1) == 2**TOLD - 1


words = st.lists(st.sampled_from([f"{c}{w}" for c in "abcdef" for w in ("", "x", WILDCARD)]), unique=True, max_size=12)
variants = st.dictionaries(
    st.sampled_from("abcdef"), st.lists(st.sampled_from(["a", "b", "p", "q", "r"]), unique=True, max_size=5)
)


@given(terms=words, corrected=variants, told=st.integers(0, 2**40))
def test_phrases_say_what_each_word_says_of_itself(
    terms: list[str], corrected: dict[str, list[str]], told: int
) -> None:
    asked = phrases_of(terms, {word: [(v, 0.9) for v in of] for word, of in corrected.items()})
    assert len(set(asked.phrases)) == len(asked.phrases) == len(asked.stands_for)
    ends = [phrase.endswith(WILDCARD) for phrase in asked.phrases]
    assert ends == sorted(ends)
    told &= 2 ** len(asked.phrases) - 1
    has = {phrase for i, phrase in enumerate(asked.phrases) if told >> i & 1}
    wanted = [1 << i for i, term in enumerate(terms) if has & set(corrected.get(term, [term]))]
    assert asked.having(told) == reduce(or_, wanted, 0)


def test_the_first_list_that_knows_a_word_tells_its_rarity() -> None:
    assert rarity_of(3, {0: 1.0}, {0: 2.0, 1: 3.0}) == (1.0, 3.0, 0.0)
    assert rarity_of(0) == ()
    assert len(rarity_of(500, {100: 1.0})) == TOLD

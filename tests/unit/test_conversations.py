"""The score of a conversation."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threefold.search.conversations import blended, either

likelihoods = st.lists(st.floats(0, 1), max_size=50)


def test_one_of_several_is_likelier_than_the_best_alone() -> None:
    assert either([]) == 0
    assert either([0.8]) == 0.8
    assert either([0.5, 0.5, 0.5]) == 0.875
    assert either([1.0, 0.3]) == 1
    assert either([0.2] * 4) > either([0.5])


def test_the_least_likelihoods_are_told_apart() -> None:
    assert either([1e-20, 1e-20]) == 2e-20 > either([1e-20])


@given(likelihoods)
def test_it_is_the_complement_of_none_and_a_likelihood_itself(likely: list[float]) -> None:
    assert either(likely) == pytest.approx(1 - math.prod(1 - each for each in likely), abs=1e-12)
    assert 0 <= either(likely) <= 1


@given(likelihoods, st.floats(0, 1))
def test_another_turn_never_makes_it_less(likely: list[float], more: float) -> None:
    assert either([*likely, more]) >= either(likely)


def test_a_blend_counts_three_each_half_of_the_one_before() -> None:
    assert blended([]) == 0
    assert blended([0.8]) == 0.8
    assert blended([0.8, 0.4, 0.4, 0.4]) == pytest.approx(0.8 + 0.2 + 0.1)

"""Decay: leaving out cycles that make no difference changes no memory's relevance."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from threefold.realms.mem.decaying import needed
from threefold.realms.mem.scores import Decay, relevance

START = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = st.integers(0, 40).map(timedelta)
CYCLES = st.lists(
    st.builds(lambda *given: given, st.sampled_from([0.0, 0.5, 0.9, 1.0]), st.sampled_from([0.0, 0.1, 0.3]), DAYS),
    min_size=1,
    max_size=30,
)


@given(CYCLES, DAYS)
def test_what_is_left_out_changes_no_relevance(given: list[tuple[float, float, timedelta]], age: timedelta) -> None:
    cycles = [Decay(START + timedelta(days=day), *each) for day, each in enumerate(given)]
    now = cycles[-1].at
    left = cycles[-needed(cycles) :]
    for touched in (now - age, *(cycle.at - cycle.older_than for cycle in cycles)):
        assert relevance(touched, now, left) == relevance(touched, now, cycles)


def test_daily_cycles_of_years_come_down_to_few() -> None:
    kept: list[Decay] = []
    for day in range(1_000):
        kept.append(Decay(START + timedelta(days=day), 0.95, 0.1, timedelta(days=1)))
        kept = kept[-needed(kept) :]
    assert len(kept) == 45
    assert relevance(START - timedelta(days=3), kept[-1].at, kept) == 0.1

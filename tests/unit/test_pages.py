"""Pages of results: how far a page reaches changes nothing about the pages before it."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

import threefold
from threefold.model.turn import Completion, Submission, Turn

NOW = datetime(2026, 11, 10, tzinfo=UTC)
WORDS = [f"word{first}{second}" for first in "abcdefgh" for second in "abcdefgh"]


def made(seed: int) -> list[Turn]:
    chosen, turns = random.Random(seed), []
    for i in range(200):
        at = NOW - timedelta(days=90) + timedelta(minutes=i)
        said = [" ".join(chosen.choices(WORDS, k=chosen.randint(4, 16))) for _ in range(2)]
        asked, answered = (Submission("prompt", said[0], at),), Completion(said[1], at)
        turns.append(
            Turn(conversation=f"c{i // 10}", id=f"{i:03}", started=at, ended=at, submissions=asked, completion=answered)
        )
    return turns


@pytest.mark.parametrize("question", ["wordab wordcd wordef", "wordab wordzcd wordxef wordgh", "wordzab wordab"])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_first_hits_do_not_depend_on_how_many_are_asked_for(question: str, seed: int) -> None:
    ranking = threefold.Ranking(depth=40)
    with threefold.open(":memory:", background=False, embedder=None, clock=lambda: NOW, ranking=ranking) as db:
        alice = db.user("alice")
        alice.conv.record_all(made(seed))
        few = alice.conv.search(question, limit=20)
        many = alice.conv.search(question, limit=200)
        assert [(hit.turn, hit.score) for hit in many[:20]] == [(hit.turn, hit.score) for hit in few]
        second = alice.conv.search(question, limit=10, offset=10)
        assert [hit.turn for hit in second] == [hit.turn for hit in few][10:]

"""What became of a memory that is deleted, expired or forgotten is in no file of the store, its history included."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from conftest import FAST_FOLDER
from test_purge_leaves_nothing import left, unique

import threefold
from threefold.testing.fakes import Clock, HashEmbedder


def remember(mem, word: str, layer: str, rng: random.Random) -> tuple[str, set[str]]:
    """A memory that has words of its own in every place, and in places that it has no more."""
    words = {f"{word}{part}" for part in "abcdefgh"}
    note, context, tag, owner, source, data, later, why = sorted(words)
    filler = " ".join(rng.choices(["river", "boat", "lisbon"], k=rng.choice([0, 5, 300])))
    made = mem.remember(
        f"noted {note} {filler}", context=f"because {context}", tags=[tag], owner=owner, source=source, layer=layer,
        metadata={data: data},
    )  # fmt: skip
    mem.update(made.id, memory=f"later {later}", why=why)
    mem.contradict(made.id, why=why)
    return made.id, words


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_left_of_what_went(seed: int) -> None:
    rng, clock = random.Random(seed), Clock()
    settings = {"embedder": HashEmbedder(), "clock": clock, "background": False, "durable": False}
    with TemporaryDirectory(dir=FAST_FOLDER) as place, threefold.open(Path(place) / "s", **settings) as db:
        gone, kept = set[str](), set[str]()
        alice = db.user("alice")
        for i in range(30):
            user, layer = ("alice", "bob")[i % 2], ("longterm", "session")[i % 3 == 0]
            id_, words = remember(db.user(user).mem, unique(rng, i % 2) + f"{i:02}", layer, rng)
            if i % 2 or i % 3 == 0:
                gone |= words  # bob's, who is forgotten, and what expires
            elif i % 4 == 0:
                alice.mem.delete(id_)
                gone |= words
            else:
                kept |= words
            if i % 5 == 0:
                db.embed_pending()
        db.user("alice", agent="planner").mem.propose("a proposal")
        db.user("bob").forget()
        clock.advance(timedelta(hours=2))
        db.expire()
        assert db.scrub() == ()
        assert left(Path(place) / "s", gone) == []
        assert len(left(Path(place) / "s", kept)) >= len(kept)
        assert db.state(check=True).problems == ()

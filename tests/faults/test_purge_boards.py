"""What was written on a board that is deleted or forgotten is in no file of the store, its old revisions included; and
what was of a card that was removed is in none either, while the board stays."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from conftest import FAST_FOLDER
from test_purge_leaves_nothing import left, unique

import threefold
from threefold.realms.cnv import BoardHandle, Cnv
from threefold.testing.fakes import Clock, HashEmbedder, ShownObjects


def boards(db: threefold.Threefold, user: str, agent: str | None = None) -> Cnv:
    return Cnv(db.user(user, agent=agent).scope, db._ports, ShownObjects())


def fill(board: BoardHandle, bot: BoardHandle, word: str, rng: random.Random) -> tuple[set[str], set[str]]:
    """Words that a board has in every place, and in places that it has no more; and those of one of its cards."""
    words = {f"{word}{part}" for part in "abcdefgh"}
    title, later, note, said, kept, conversation, why, other = sorted(words)
    filler = " ".join(rng.choices(["river", "boat", "lisbon"], k=rng.choice([0, 5, 300])))
    board.rename(f"titled {title}")
    board.rename(f"later {later}")
    card = board.pin(f"task:issue:{note}", note=f"noted {note} {filler}", source=f"doc:{note}")
    board.annotate(card, f"noted later {said}")
    bot.comment(card, f"said {said}")
    board.annotate(card, "")
    board.pin(f"task:issue:{kept}", note=f"kept {kept}")
    board.attach(conversation)
    board.detach(conversation)
    bot.suggest(f"task:issue:{other}", note=f"suggested {other}", why=f"because {why}")
    board.decline(f"task:issue:{other}")
    return words, {note, said}


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_left_of_what_went(seed: int) -> None:
    rng = random.Random(seed)
    settings = {"embedder": HashEmbedder(), "clock": Clock(), "background": False, "durable": False}
    with TemporaryDirectory(dir=FAST_FOLDER) as place, threefold.open(Path(place) / "s", **settings) as db:
        gone, kept = set[str](), set[str]()
        for i in range(24):
            user = ("alice", "bob")[i % 2]
            word = unique(rng, i % 2) + f"{i:02}"
            board, bot = (boards(db, user, agent).board(f"board {i}") for agent in (None, "planner"))
            words, of_card = fill(board, bot, word, rng)
            if i % 5 == 0:
                db.embed_pending()
            if i % 2:
                gone |= words  # bob's, who is forgotten
            elif i % 3 == 0:
                board.delete()
                gone |= words
            elif i % 4 == 0:
                board.remove(f"task:issue:{min(of_card)}")
                gone |= of_card
                kept |= words - of_card
            else:
                kept |= words
        db.user("bob").forget()
        assert db.scrub() == ()
        assert left(Path(place) / "s", gone) == []
        assert len(left(Path(place) / "s", kept)) >= len(kept)
        assert db.state(check=True).problems == ()

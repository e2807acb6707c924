"""What was in a document that is removed, replaced, expired or forgotten is in no file of the store."""

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


def ingest(doc, name: str, word: str, rng: random.Random, ttl: timedelta | None = None) -> set[str]:
    """A document that has words of its own in every place."""
    words = {f"{word}{part}" for part in "abcdef"}
    body, heading, title, data, key, page = sorted(words)
    filler = " ".join(rng.choices(["river", "boat", "lisbon"], k=rng.choice([0, 5, 2_000])))
    doc.ingest(f"# {heading}\n\n{filler}\n\n{body} {body}\n", source=name, title=title, metadata={key: data}, ttl=ttl)
    doc.ingest(f"<html><body><p>{page}</p><!-- {page} --></body></html>".encode(), source=f"{name}.html", ttl=ttl)
    return words


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_left_of_what_went(seed: int) -> None:
    rng, clock = random.Random(seed), Clock()
    settings = {"embedder": HashEmbedder(), "clock": clock, "background": False, "durable": False}
    with TemporaryDirectory(dir=FAST_FOLDER) as place, threefold.open(Path(place) / "s", **settings) as db:
        gone, kept = set[str](), set[str]()
        alice, bob = db.user("alice").doc, db.user("bob").doc
        for i in range(20):
            word = unique(rng, i % 2) + f"{i:02}"
            if i % 4 == 0:
                gone |= ingest(bob, f"s{i}", word, rng)  # who is forgotten
            elif i % 4 == 1:
                gone |= ingest(alice, f"s{i}", word, rng, timedelta(hours=1))
            elif i % 4 == 2:
                gone |= ingest(alice, f"s{i}", word, rng)
                alice.remove(f"s{i}")
                alice.remove(f"s{i}.html")
            else:
                gone |= ingest(alice, f"s{i}", word, rng)
                kept |= ingest(alice, f"s{i}", unique(rng, 0) + f"k{i:02}", rng)
            if i % 5 == 0:
                db.embed_pending()
        gone |= ingest(db.organization().doc, "shared", unique(rng, 0) + "zz", rng)
        db.organization().doc.clear()
        db.user("bob").forget()
        clock.advance(timedelta(hours=2))
        db.expire()
        db.collect_blobs(timedelta(0))
        assert db.scrub() == ()
        assert left(Path(place) / "s", gone) == []
        assert len(left(Path(place) / "s", kept)) >= len(kept)
        assert db.state(check=True).problems == ()
        assert db.missing_blobs() == ()

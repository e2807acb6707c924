"""A purge on PostgreSQL leaves nothing of what it removed in any file of the tables and their indexes."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from postgres_server import Server, server
from test_purge_leaves_nothing import editions, record, unique

import threefold
from threefold.backends.opening import open_backend
from threefold.testing.contract.desk import Desk
from threefold.testing.fakes import Clock, HashEmbedder


def files(pg: Server, database: str) -> list[tuple[str, bytes]]:
    """Every file of the database; the write-ahead log is the server's and not among them."""
    with pg.admin(database) as db:
        db.execute("CHECKPOINT")
        ((number,),) = db.execute("SELECT oid FROM pg_database WHERE datname = current_database()").fetchall()
    found = []
    for path in (pg.folder / "data" / "base" / str(number)).iterdir():
        # The server drops its cache of catalogs (`pg_internal.init`) whenever these change.
        with suppress(FileNotFoundError):
            found.append((path.name, path.read_bytes()))
    return found


def left(pg: Server, database: str, words: set[str]) -> list[str]:
    seen = files(pg, database)
    return [f"{word} in {place}" for place, data in seen for word in words if word.encode() in data]


@pytest.fixture
def filled(tmp_path: Path):
    """A store of one user with another beside it, and the words of each turn."""
    rng, pg = random.Random(7), server()
    url = pg.take()
    words = {(user, f"c{i % 3}", f"{i}"): unique(rng, 0) for user in ("alice", "bob") for i in range(12)}
    with threefold.open(url, embedder=HashEmbedder(16), background=False, clock=Clock(), ttl=None) as db:
        for (user, conversation, name), word in words.items():
            record(db.user(user), conversation, name, word, rng)
        db.embed_pending()
        database = url.partition("@/")[2].partition("?")[0]
        with pg.admin(database) as admin:
            admin.execute("ANALYZE")
        yield db, pg, database, words
    pg.give_back(url)


def test_a_purged_turn_is_in_no_file(filled) -> None:
    db, pg, database, words = filled
    gone = words["alice", "c1", "4"]
    assert left(pg, database, {gone})
    found = db.user("alice").conv.search(gone, lists=["lexical"])
    place = threefold_place(found)
    receipt = db.user("alice").forget(*place)
    assert receipt.leftovers == ()
    assert left(pg, database, {gone}) == []
    assert all(left(pg, database, {word}) for word in set(words.values()) - {gone})


def threefold_place(found) -> tuple[str, str]:
    """Conversation and turn of the one hit."""
    (hit,) = found
    return hit.conversation, hit.turn


def test_what_an_edition_does_not_say_is_in_no_file_once_it_is_scrubbed() -> None:
    pg = server()
    url = pg.take()
    desk = Desk(*open_backend(url, durable=False))
    for gone, words in editions(desk, random.Random(1), 0):
        assert desk.backend.scrub() == ()
        assert left(pg, url.partition("@/")[2].partition("?")[0], gone) == []
        for seq, word in enumerate(words):
            assert desk.find(word) == [("doc", "1", seq)]
        assert desk.backend.state(desk.now, check=True).problems == ()
    desk.close()
    pg.give_back(url)


def test_a_purged_user_is_in_no_file(filled) -> None:
    db, pg, database, words = filled
    mine = {word for (user, *_), word in words.items() if user == "alice"}
    assert left(pg, database, mine)
    assert db.user("alice").forget().leftovers == ()
    assert left(pg, database, {*mine, "alice"}) == []
    assert len(db.user("bob").conv.turns(limit=99)) == 12
    assert db.state(check=True).problems == ()


def test_what_an_open_transaction_still_sees_is_said_to_be_left(filled) -> None:
    db, pg, database, words = filled
    gone = words["alice", "c2", "5"]
    place = threefold_place(db.user("alice").conv.search(gone, lists=["lexical"]))
    with psycopg.connect(pg.url(database)) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute("SELECT count(*) FROM pg_class")
        (sentence,) = db.user("alice").forget(*place).leftovers
        assert "scrub" in sentence
    assert left(pg, database, {gone})
    assert db.scrub() == ()
    assert left(pg, database, {gone}) == []

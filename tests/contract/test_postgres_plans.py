"""How PostgreSQL goes about the program's statements, as it reports while they run: the plans are part of the promise.

One owner has most of a partition, others share it, so that what is right for one is wrong for another.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from postgres_plans import MODEL, PARTITIONS, Plan, Telling, load
from postgres_server import Server, server

from threefold.backends.postgres.connection import Db
from threefold.backends.postgres.keys import owner_key, vector_text
from threefold.backends.postgres.search import semantic_statement
from threefold.model.scope import Scope
from threefold.testing.contract.desk import NOW, Desk, make_turn

STORE = "plans"
LARGE_TURNS, SMALL_TURNS, SMALL_OWNERS = 2000, 50, 10


@dataclass
class Loaded:
    """The store, and the owners: one large, one small one in the same partition."""

    server: Server
    database: Telling
    desk: Desk
    large: Scope
    small: Scope


def neighbours(place: Server, count: int) -> list[Scope]:
    """Users whose rows share a partition."""
    found: list[Scope] = []
    with place.admin(STORE) as db:
        for n in range(100 * count):
            asked = "SELECT satisfies_hash_partition('threefold.owners'::regclass, %s, 0, %s::uuid)"
            (inside,) = db.execute(asked, (PARTITIONS, owner_key(scope := Scope(f"user{n}")))).fetchone() or ()
            found += [scope] if inside else []
            if len(found) == count:
                break
    return found


# Thousands of owners with little each: no table is so small that reading all of it would be right.
CROWD = """
INSERT INTO threefold.owners (owner, tenant, name)
    SELECT gen_random_uuid(), 'crowd', n::text FROM generate_series(1, 8000) AS n;
INSERT INTO threefold.conversations (owner, number, name, title, started, last_activity)
    SELECT owner, 1, 'c', '', 0, 0 FROM threefold.owners WHERE tenant = 'crowd';
INSERT INTO threefold.turns (owner, number, conversation, name, state, status, started, ended, digest, head, log)
    SELECT owner, 2, 1, 't', 'rich', 'complete', 0, 0, '', '', repeat('log', 60)::bytea
    FROM threefold.owners WHERE tenant = 'crowd';
INSERT INTO threefold.rows (owner, number, conversation, turn, seq, position, role, event_type, path, at, word_count,
                            text)
    SELECT owner, 3, 1, 2, 0, 1, 'user', 'prompt', '', 0, 0, repeat('said ', 30)
    FROM threefold.owners WHERE tenant = 'crowd';
INSERT INTO threefold.files (owner, turn, seq, path, digest, size)
    SELECT owner, 2, 0, 'a', repeat('f', 64), 1 FROM threefold.owners WHERE tenant = 'crowd';
INSERT INTO threefold.feedback (owner, turn, number, origin, reaction, at)
    SELECT owner, 2, 4, 'user', 'ok', 0 FROM threefold.owners WHERE tenant = 'crowd';
INSERT INTO threefold.labels SELECT owner, 'label', 2 FROM threefold.owners WHERE tenant = 'crowd';
INSERT INTO threefold.tombstones SELECT owner, 'hash', 'purged' FROM threefold.owners WHERE tenant = 'crowd';
INSERT INTO threefold.waiting (owner, row, due) SELECT owner, 3, 1::bigint << 60 FROM threefold.owners
    WHERE tenant = 'crowd';
"""


@pytest.fixture(scope="module")
def loaded() -> Iterator[Loaded]:
    place = server()
    database, desk = Telling.make(place, STORE)
    large, *small = neighbours(place, SMALL_OWNERS + 1)
    load(desk, large, LARGE_TURNS)
    for scope in small:
        load(desk, scope, SMALL_TURNS)
    while desk.embed(MODEL, 1000):
        pass
    load(desk, Scope("waiting"), 300)
    with place.admin(STORE) as db:
        db.execute(CROWD)
        db.execute("VACUUM ANALYZE")
    yield Loaded(place, database, desk, large, small[3])
    desk.close()


CALLS: dict[str, Callable[[Desk, Scope], object]] = {
    "words": lambda desk, scope: desk.ask("common rare77", scope=scope),
    "words, filtered": lambda desk, scope: desk.ask("common rare7*", scope=scope, conversation="c3", roles=("user",)),
    "words since": lambda desk, scope: desk.ask("common rare77", scope=scope, since=NOW - timedelta(minutes=30)),
    "misspelled": lambda desk, scope: desk.ask("comon", "trigram", scope=scope),
    "vectors": lambda desk, scope: desk.ask("common rare77", "semantic", scope=scope, embedder=MODEL),
    "vectors, filtered": lambda desk, scope: desk.ask(
        "common", "semantic", scope=scope, embedder=MODEL, conversation="c3"
    ),
    "rows": lambda desk, scope: desk.rows(("c5", "5", 0), ("c3", "10", 1), scope=scope),
    "rows alone": lambda desk, scope: desk.rows(("c5", "5", 0), ("c3", "10", 1), scope=scope, whole=False),
    "rows around": lambda desk, scope: desk.rows(("c5", "5", 0), ("c3", "10", 1), scope=scope, around=2),
    "turn": lambda desk, scope: desk.stored("c5", "5", scope),
    "catalog": lambda desk, scope: desk.catalog(scope=scope, limit=5),
    "catalog of a conversation": lambda desk, scope: desk.catalog("c5", scope, limit=5, newest_first=True),
    "catalog by label": lambda desk, scope: desk.catalog(scope=scope, labels=(("label",), ("other", "label"))),
    "words, labelled": lambda desk, scope: desk.ask("common rare77", scope=scope, labels=(("label",),)),
    "records": lambda desk, scope: desk.backend.records(scope, [("c5", "5"), ("c3", "10")], desk.now),
    "records without rows": lambda desk, scope: desk.backend.records(
        scope, [("c5", "5"), ("c3", "10")], desk.now, rows=False
    ),
    "catalog by ordinal": lambda desk, scope: desk.catalog("c5", scope, ordinal=-2),
    "conversations": lambda desk, scope: desk.conversations(scope, limit=3),
    "record": lambda desk, scope: desk.say("c5", "new", "new common", scope=scope),
    "record again": lambda desk, scope: desk.record(make_turn("c5", "new", "new common", "more"), scope, rich=True),
    "feedback": lambda desk, scope: desk.react("c5", "5", "ok", scope=scope),
    "purge": lambda desk, scope: desk.purge("c5", "new", scope=scope),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_small_owner_is_read_through_indexes_that_begin_with_it(loaded: Loaded, name: str) -> None:
    with loaded.database.telling() as report:
        CALLS[name](loaded.desk, loaded.small)
    assert report.scans() == set(), report.plans
    assert {len(parts) for parts in report.touched().values()} <= {1}, report.touched()
    for index, condition in report.indexes().items():
        # A list of words_by_term belongs to one owner, by the keys that it is made of.
        begins = "terms" if "terms" in index else "owner"
        assert condition.lstrip("(").startswith(begins) or "meta" in index, (index, condition)


@pytest.mark.parametrize("name", [name for name in CALLS if not name.startswith("vectors")])
def test_a_large_owner_touches_its_own_partitions(loaded: Loaded, name: str) -> None:
    with loaded.database.telling() as report:
        CALLS[name](loaded.desk, loaded.large)
    assert {len(parts) for parts in report.touched().values()} <= {1}, report.touched()


def test_rows_that_are_asked_for_alone_are_all_that_is_read(loaded: Loaded) -> None:
    keys = [(f"c{n % 7}", f"{n}", 0) for n in range(0, LARGE_TURNS, 50)]
    with loaded.database.telling() as report:
        assert len(loaded.desk.rows(*keys, scope=loaded.large, whole=False)) == len(keys)
    assert report.looked_at() < 6 * len(keys), report.plans
    with loaded.database.telling() as report:
        assert loaded.desk.backend.records(loaded.large, [key[:2] for key in keys], NOW, rows=False)
    assert "rows" not in report.touched()


@pytest.mark.parametrize("where", [{}, {"conversation": "c3"}, {"since": NOW - timedelta(minutes=600)}])
def test_the_words_of_a_large_owner_are_found_through_the_inverted_index(loaded: Loaded, where: Plan) -> None:
    with loaded.database.telling() as report:
        assert loaded.desk.ask("rare77", scope=loaded.large, **where).rows
    assert any("terms" in index for index in report.indexes()), report.indexes()
    assert not any(scan.startswith("words") for scan in report.scans())


def test_the_queue_is_read_in_the_order_of_what_is_due(loaded: Loaded) -> None:
    with loaded.server.admin(STORE) as db:  # a backlog so long that reading it whole would not pay
        db.execute(
            "INSERT INTO threefold.waiting (owner, row, due) "
            "SELECT gen_random_uuid(), n, 9e15 FROM generate_series(1, 60000) AS n"
        )
        db.execute("ANALYZE threefold.waiting")
    with loaded.database.telling() as report:
        claimed = loaded.desk.backend.claim(32, NOW, 60)
        loaded.desk.backend.put_vectors(MODEL.name, [(row, MODEL.embed([row.text])[0]) for row in claimed])
    assert len(claimed) == 32
    assert report.scans() == set()


def exact(loaded: Loaded, scope: Scope, question: str, depth: int) -> list[tuple[str, str, int]]:
    with loaded.server.admin(STORE) as db:
        found = db.execute(
            """SELECT c.name, t.name, r.seq, v.embedding::text FROM threefold.vectors AS v
               JOIN threefold.rows AS r ON r.owner = v.owner AND r.number = v.row
               JOIN threefold.turns AS t ON t.owner = r.owner AND t.number = r.turn
               JOIN threefold.conversations AS c ON c.owner = r.owner AND c.number = r.conversation
               WHERE v.owner = %s ORDER BY v.row""",
            (owner_key(scope),),
        ).fetchall()
    asked = MODEL.embed([question])[0]
    scores = [(-sum(a * b for a, b in zip(json.loads(v), asked, strict=True)), n) for n, (*_, v) in enumerate(found)]
    return [tuple(found[n][:3]) for score, n in sorted(scores)[:depth] if score < 0]


def test_an_index_on_vectors_neither_shortens_nor_changes_the_list(loaded: Loaded) -> None:
    depth, question = 50, "answered common"
    with loaded.server.admin(STORE) as db:
        db.execute("ALTER TABLE threefold.vectors ALTER COLUMN embedding TYPE halfvec(16)")
        db.execute("CREATE INDEX near ON threefold.vectors USING hnsw (embedding halfvec_ip_ops)")
        db.execute("ANALYZE threefold.vectors")
    with loaded.database.telling() as report:
        found = loaded.desk.find(question, "semantic", scope=loaded.small, embedder=MODEL, depth=depth)
    assert not any("embedding" in index for index in report.indexes())
    assert len(found) == depth
    assert set(found) == set(exact(loaded, loaded.small, question, depth))
    naive = semantic_statement("", depth).replace(") + 0, v.row", ")")
    values = {
        "now": 0, "owner": owner_key(loaded.small), "vector": vector_text(MODEL.embed([question])[0]),
        "model": MODEL.name, "dimensions": "16",
    }  # fmt: skip

    def without_the_guard(db: Db) -> list[Any]:
        db.execute("SET LOCAL enable_sort = off")  # so that the small table is read as a large one would be
        return db.execute(naive, values).fetchall()

    with loaded.database.telling() as report:
        short = loaded.database.read(owner_key(loaded.small), without_the_guard)
    assert any("embedding" in index for index in report.indexes()), report.indexes()
    assert len(short) < depth

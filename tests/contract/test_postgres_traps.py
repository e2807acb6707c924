"""Where PostgreSQL would be led astray: before it has statistics, and by numbers whose type follows their size."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from postgres_plans import MODEL, Telling, load, steps
from postgres_server import server

from threefold.model.scope import Scope
from threefold.testing.contract.desk import NOW, Desk

STORE, TURNS = "traps", 600


@pytest.fixture(scope="module")
def fresh() -> Iterator[tuple[Telling, Desk]]:
    """A store that was filled at once, of which the planner knows nothing yet."""
    place = server()
    database, desk = Telling.make(place, STORE)
    with place.admin(STORE) as db:
        for (table,) in db.execute("SELECT oid::regclass::text FROM pg_class WHERE relispartition AND relkind = 'r'"):
            db.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    load(desk, Scope("alice"), TURNS)
    yield database, desk
    desk.close()


def test_embedding_a_new_store_looks_at_each_row_a_few_times_only(fresh: tuple[Telling, Desk]) -> None:
    database, desk = fresh
    with database.telling() as report:
        assert desk.embed(MODEL, TURNS) == TURNS
    assert report.looked_at() < 20 * TURNS


def test_a_failure_to_embed_is_noted_without_reading_the_record(fresh: tuple[Telling, Desk]) -> None:
    database, desk = fresh
    claimed = desk.backend.claim(100, NOW, 60)
    with database.telling() as report:
        desk.backend.embedding_failed(claimed, "the model is down", NOW)
    assert report.looked_at() < 20 * len(claimed)


def test_a_number_is_sent_as_one_type_whatever_its_size(fresh: tuple[Telling, Desk]) -> None:
    database, _ = fresh
    asked = "SELECT pg_typeof(%s)::text, pg_typeof(%s)::text, pg_typeof(%s)::text"
    values = (1, 2**40, [1, 2])
    with psycopg.connect(database._url) as db:
        assert db.execute(asked, values).fetchone() == ("smallint", "bigint", "smallint[]")
    with database.alone() as db:
        assert db.execute(asked, values).fetchone() == ("bigint", "bigint", "bigint[]")
        for n in (1, 2**20, 2**40):
            db.execute("SELECT 1 FROM threefold.waiting WHERE due <= %s", (n,), prepare=True)
        counted = db.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%%waiting%%'", ())
        assert counted.fetchone() == (1,)


def test_small_numbers_find_the_inverted_index(fresh: tuple[Telling, Desk]) -> None:
    database, _ = fresh
    asked = "EXPLAIN (FORMAT JSON) SELECT 1 FROM threefold.words_0 WHERE terms && %s"
    with psycopg.connect(database._url) as db, pytest.raises(psycopg.errors.UndefinedFunction):
        db.execute(asked, ([1, 2],))
    with database.alone() as db:
        (((plan,),),) = db.execute(asked, ([1, 2],)).fetchall()
        assert any("terms" in step.get("Index Name", "") for step in steps(plan["Plan"]))

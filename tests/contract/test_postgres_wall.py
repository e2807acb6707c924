"""Row-level security: the second wall under the scope predicate, tried by a login that wants to get round it.

`alice` and `bob` have something in every table. The intruder may read and write every table but owns none of them;
and the program itself is tried with statements that forget whose rows they want.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from postgres_server import ROLE, Server, server
from psycopg import errors

import threefold
from threefold.backends.postgres.connection import Database
from threefold.backends.postgres.keys import owner_key
from threefold.model.scope import Scope
from threefold.testing.fakes import Clock, HashEmbedder

STORE, INTRUDER = "wall", "intruder"
ALICE, BOB = (str(owner_key(Scope(user))) for user in ("alice", "bob"))
Db = psycopg.Connection[tuple[Any, ...]]
TABLES = """SELECT relname FROM pg_class WHERE relnamespace = 'threefold'::regnamespace AND relkind IN ('r', 'p')
            AND relname NOT IN ('meta', 'migrations') ORDER BY relname"""


def fill(db: threefold.Threefold, user: str) -> None:
    """Something in every table: turns, a file, a reaction, vectors, rows that wait, a tombstone, bytes to delete."""
    handle = db.user(user)
    for n in range(4):
        with handle.turn("trip", turn=f"{n}", title=f"title of {user}") as turn:
            turn.prompt(f"secret of {user} number {n}")
            turn.attach(("in.txt", f"bytes of {user} {n}".encode()), text=f"attached by {user}")
            turn.answer(f"answered {user}")
        handle.conv.feedback(turn.ref, "ok", f"liked by {user}")
    handle.forget(conversation="trip", turn="0")


@pytest.fixture(scope="module")
def place() -> Server:
    there = server()
    url = there.make_database(STORE) + "&partitions=3"
    with threefold.open(url, embedder=HashEmbedder(8), background=False, clock=Clock(), ttl=timedelta(days=9)) as db:
        for user in ("alice", "bob"):
            fill(db, user)
            db.embed_pending()
        for user in ("alice", "bob"):
            with db.user(user).turn("later") as turn:
                turn.prompt(f"{user} waits for a vector")
    with there.admin(STORE) as db:
        db.execute(
            "INSERT INTO threefold.doomed SELECT owner, 'digest of ' || name, tenant, name FROM threefold.owners"
        )
        db.execute("INSERT INTO threefold.labels SELECT owner, 'label of the turn', number FROM threefold.turns")
        if not db.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (INTRUDER,)).fetchone():
            db.execute(f"CREATE ROLE {INTRUDER} LOGIN")
        db.execute(f"GRANT USAGE ON SCHEMA threefold TO {INTRUDER}")
        db.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA threefold TO {INTRUDER}")
        db.execute("ANALYZE")
    return there


@pytest.fixture
def admin(place: Server) -> Iterator[Db]:
    with place.admin(STORE) as db:
        yield db


@pytest.fixture
def nobody(place: Server) -> Iterator[Db]:
    """The intruder before it has said for whom it speaks; what it does is undone after the test."""
    with psycopg.connect(place.url(STORE, INTRUDER)) as db:
        yield db
        db.rollback()


@pytest.fixture
def intruder(nobody: Db) -> Db:
    """The intruder while it speaks for alice."""
    speak_for(nobody, ALICE)
    return nobody


def speak_for(db: Db, owner: str) -> None:
    db.execute("SELECT set_config('threefold.owner', %s, false)", (owner,))


def owners(db: Db, statement: str) -> set[str]:
    return {str(owner) for (owner,) in db.execute(statement).fetchall()}


def tables(db: Db) -> list[str]:
    found = [name for (name,) in db.execute(TABLES).fetchall()]
    assert {"turns", "turns_0", "rows_2", "blobs_1", "words"} <= set(found)
    return found


def test_every_table_and_every_partition_is_behind_the_wall(admin: Db) -> None:
    found = admin.execute(
        """SELECT relname, relrowsecurity, relforcerowsecurity FROM pg_class WHERE relkind IN ('r', 'p')
           AND relnamespace = 'threefold'::regnamespace AND relname NOT IN ('meta', 'migrations')"""
    ).fetchall()
    assert [name for name, enabled, _ in found if not enabled] == []
    assert {name.partition("_")[0] for name, _, forced in found if not forced} == {"words"}
    for table in tables(admin):
        if "_" not in table:
            assert owners(admin, f"SELECT owner FROM threefold.{table}") == {ALICE, BOB}, table


def test_who_speaks_for_nobody_sees_nothing(nobody: Db) -> None:
    for table in tables(nobody):
        assert owners(nobody, f"SELECT owner FROM threefold.{table}") == set(), table


def test_who_speaks_for_alice_sees_alice_in_every_table(intruder: Db) -> None:
    whole, parts = set[str](), set[str]()
    for table in tables(intruder):
        seen = owners(intruder, f"SELECT owner FROM threefold.{table}")
        assert seen <= {ALICE}, table
        (parts if "_" in table else whole).update(seen and {table.partition("_")[0]})
    assert whole == parts  # partitions by their own names show what the tables show
    assert len(whole) == 14


READS = (
    "SELECT owner FROM threefold.turns",
    "SELECT owner FROM threefold.turns WHERE owner IS NOT NULL OR true",
    f"SELECT owner FROM threefold.turns WHERE owner = '{ALICE}' OR owner = '{BOB}'",
    f"SELECT owner FROM threefold.turns WHERE owner <> '{ALICE}' UNION ALL SELECT owner FROM threefold.owners",
    "SELECT b.owner FROM threefold.turns AS a JOIN threefold.rows AS b ON true",
    "SELECT coalesce(a.owner, b.owner) FROM threefold.turns AS a FULL JOIN threefold.rows AS b ON a.number = b.turn",
    "SELECT (SELECT max(owner::text)::uuid FROM threefold.words) FROM threefold.owners",
    "SELECT owner FROM threefold.turns WHERE EXISTS (SELECT 1 FROM threefold.turns AS t WHERE t.owner <> turns.owner)",
    "WITH everything AS MATERIALIZED (SELECT * FROM threefold.rows) SELECT owner FROM everything",
    "WITH RECURSIVE e AS (SELECT owner FROM threefold.rows UNION SELECT owner FROM threefold.blobs) TABLE e",
    "SELECT owner FROM threefold.vectors TABLESAMPLE BERNOULLI (100)",
    "SELECT owner FROM threefold.turns FOR UPDATE",
)


@pytest.mark.parametrize("statement", READS)
def test_no_form_of_a_question_shows_another_owner(intruder: Db, statement: str) -> None:
    assert owners(intruder, statement) <= {ALICE}


def test_copies_views_and_counts_show_one_owner_only(intruder: Db, admin: Db) -> None:
    for source in ("(SELECT owner FROM threefold.rows)", *(f"threefold.rows_{n} (owner)" for n in range(3))):
        with intruder.cursor().copy(f"COPY {source} TO STDOUT") as copy:
            assert {bytes(line).decode().strip() for line in copy} <= {ALICE}, source
    intruder.execute("CREATE TEMP VIEW mine AS SELECT * FROM threefold.rows")
    assert owners(intruder, "SELECT owner FROM mine") == {ALICE}
    (seen,) = intruder.execute("SELECT count(*) FROM threefold.rows").fetchone() or ()
    (all_,) = admin.execute("SELECT count(*) FROM threefold.rows").fetchone() or ()
    assert 2 * seen == all_


@pytest.mark.parametrize("hold", ["WITH HOLD", "WITHOUT HOLD"])
def test_a_cursor_stays_with_the_owner_for_whom_it_was_read(intruder: Db, hold: str) -> None:
    intruder.execute(f"DECLARE c CURSOR {hold} FOR SELECT owner FROM threefold.rows")
    assert owners(intruder, "FETCH 1 FROM c") == {ALICE}
    if hold == "WITH HOLD":
        intruder.commit()
    speak_for(intruder, BOB)
    assert owners(intruder, "FETCH ALL FROM c") == {ALICE}
    intruder.execute("CLOSE c")


@pytest.mark.parametrize("mode", ["force_generic_plan", "force_custom_plan"])
def test_a_prepared_statement_follows_the_setting(intruder: Db, mode: str) -> None:
    intruder.execute(f"SET plan_cache_mode = {mode}")
    intruder.execute("PREPARE all_rows AS SELECT owner FROM threefold.rows")
    for owner in (ALICE, BOB, "", ALICE):
        speak_for(intruder, owner)
        assert owners(intruder, "EXECUTE all_rows") == ({owner} if owner else set())


def test_the_wall_cannot_be_switched_off(intruder: Db) -> None:
    intruder.execute("SET threefold.operator = 'on'")
    for table in tables(intruder):
        assert owners(intruder, f"SELECT owner FROM threefold.{table}") <= {ALICE}, table
    intruder.commit()
    intruder.execute("SET row_security = off")
    for table in tables(intruder):
        with pytest.raises(errors.InsufficientPrivilege, match="row-level security"), intruder.transaction():
            intruder.execute(f"SELECT owner FROM threefold.{table}")


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE threefold.turns",
        "ALTER TABLE threefold.turns DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE threefold.turns_0 NO FORCE ROW LEVEL SECURITY",
        "ALTER TABLE threefold.turns DETACH PARTITION threefold.turns_0",
        "CREATE POLICY all_of_it ON threefold.turns USING (true)",
        "CREATE TRIGGER t BEFORE UPDATE ON threefold.turns EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        f"SET ROLE {ROLE}",
        "SET SESSION AUTHORIZATION postgres",
    ],
)
def test_the_intruder_has_no_right_to_change_the_wall(intruder: Db, statement: str) -> None:
    with pytest.raises(errors.InsufficientPrivilege), intruder.transaction():
        intruder.execute(statement)
    assert owners(intruder, "SELECT owner FROM threefold.turns") == {ALICE}


def test_a_function_that_tells_is_never_called_with_the_text_of_another(intruder: Db) -> None:
    told: list[str] = []
    intruder.add_notice_handler(lambda notice: told.append(str(notice.message_primary)))
    intruder.execute(
        """CREATE FUNCTION pg_temp.tell(said text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001
           AS $$ BEGIN RAISE NOTICE 'told %', said; RETURN true; END $$"""
    )
    for statement in (
        "SELECT 1 FROM threefold.rows WHERE pg_temp.tell(text)",
        "SELECT 1 FROM threefold.vocabulary WHERE pg_temp.tell(term) AND term LIKE 's%'",
        "SELECT 1 FROM threefold.rows AS r JOIN threefold.turns AS t ON pg_temp.tell(r.text) AND pg_temp.tell(t.name)",
    ):
        intruder.execute(statement)
    assert any("alice" in line for line in told)
    assert not any("bob" in line for line in told)
    with pytest.raises(errors.InvalidTextRepresentation) as failed:
        intruder.execute("SELECT 1 FROM threefold.rows WHERE text::integer > 0")
    assert "bob" not in str(failed.value)


def test_neither_plans_nor_statistics_tell_of_another(intruder: Db) -> None:
    explained = intruder.execute("EXPLAIN (ANALYZE, VERBOSE) SELECT * FROM threefold.rows WHERE text LIKE '%o%'")
    assert "bob" not in repr(explained.fetchall())
    known = "SELECT 1 FROM pg_stats WHERE schemaname = 'threefold' AND tablename NOT IN ('meta', 'migrations')"
    assert intruder.execute(known).fetchall() == []
    with pytest.raises(errors.InsufficientPrivilege):
        intruder.execute("SELECT stavalues1 FROM pg_statistic")


@pytest.mark.parametrize(
    "statement",
    [
        f"INSERT INTO threefold.vocabulary VALUES ('{BOB}', 1, 'planted')",
        f"INSERT INTO threefold.owners VALUES ('{BOB}', 'default', 'bob') ON CONFLICT (owner) DO UPDATE SET rows = 0",
        f"INSERT INTO threefold.owners VALUES ('{BOB}', 'default', 'bob') ON CONFLICT DO NOTHING",
        f"UPDATE threefold.turns SET owner = '{BOB}'",
        f"UPDATE threefold.rows SET owner = '{BOB}', text = 'planted'",
        f"WITH moved AS (DELETE FROM threefold.vectors RETURNING row, embedding) "
        f"INSERT INTO threefold.vectors SELECT '{BOB}', row, embedding FROM moved",
    ],
)
def test_nothing_can_be_written_to_another_owner(intruder: Db, statement: str) -> None:
    with pytest.raises(errors.InsufficientPrivilege, match="row-level security"), intruder.transaction():
        intruder.execute(statement)


def test_what_is_changed_or_deleted_without_a_predicate_is_ones_own(intruder: Db, admin: Db) -> None:
    counted = "SELECT count(*) FROM threefold.{} WHERE owner = '{}'"
    for table in tables(intruder):
        intruder.execute(f"UPDATE threefold.{table} SET owner = owner")
        intruder.execute(f"DELETE FROM threefold.{table}")
    kept = {table: admin.execute(counted.format(table, BOB)).fetchone() for table in tables(admin)}
    speak_for(intruder, BOB)
    assert {t: intruder.execute(counted.format(t, BOB)).fetchone() for t in kept} == kept
    speak_for(intruder, ALICE)
    assert all(intruder.execute(counted.format(t, ALICE)).fetchone() == (0,) for t in kept)


def test_a_statement_of_the_program_that_forgets_the_owner_sees_the_one_spoken_for(place: Server) -> None:
    database = Database(place.url(STORE))
    for user, key in (("alice", ALICE), ("bob", BOB)):

        def forgetful(db: Db) -> dict[str, set[str]]:
            asked = [table for table in tables(db) if table.partition("_")[0] != "words"]
            seen = {table: owners(db, f"SELECT owner FROM threefold.{table}") for table in asked}
            # `words` is not forced; search sees of it what it can join to `rows`.
            joined = "threefold.words AS w JOIN threefold.rows AS r ON r.owner = w.owner AND r.number = w.row"
            return seen | {"words": owners(db, f"SELECT w.owner FROM {joined}")}

        seen = database.read(owner_key(Scope(user)), forgetful)
        assert {table for table, found in seen.items() if found - {key}} == set()
        assert all(seen[table] == {key} for table in seen if "_" not in table)
    assert database.read(owner_key(Scope("carol")), lambda db: owners(db, "SELECT owner FROM threefold.rows")) == set()
    database.close()


def test_what_one_transaction_spoke_for_the_next_does_not(place: Server) -> None:
    database = Database(place.url(STORE), connections=1)
    setting = "SELECT current_setting('threefold.owner', true), current_setting('threefold.operator', true)"
    assert database.read(owner_key(Scope("alice")), lambda db: db.execute(setting).fetchone()) == (ALICE, "")
    assert database.read(None, lambda db: db.execute(setting).fetchone()) == ("", "on")
    with database._pool.connection() as db:
        assert owners(db, "SELECT owner FROM threefold.turns") == set()
    database.close()


def test_a_login_that_no_wall_binds_is_warned_of(place: Server) -> None:
    for role, warned in ((ROLE, False), ("postgres", True)):
        with threefold.open(place.url(STORE, role), embedder=None, background=False, clock=Clock()) as db:
            assert any("row-level security" in problem for problem in db.state().problems) is warned

"""What a transaction finds when it has waited for another: the rows as they are then, none passed over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from postgres_server import server
from waiting import wait_until

import threefold
from threefold.backends.postgres.blobs import PostgresBlobs
from threefold.backends.postgres.connection import Database
from threefold.backends.postgres.keys import owner_key
from threefold.errors import NotFound
from threefold.model.scope import Scope
from threefold.testing.contract.desk import NOW
from threefold.testing.fakes import Clock, HashEmbedder

MODEL = HashEmbedder(8)


@pytest.fixture
def url() -> Iterator[str]:
    address = server().take()
    yield address
    server().give_back(address)


@pytest.fixture
def db(url: str) -> Iterator[threefold.Threefold]:
    with threefold.open(url, embedder=MODEL, background=False, clock=Clock(), durable=False, ttl=None) as db:
        yield db


@pytest.fixture(params=[0, 1])
def user(request: pytest.FixtureRequest, url: str, db: threefold.Threefold) -> str:
    """A user in each of the partitions."""
    asked = "SELECT satisfies_hash_partition('threefold.owners'::regclass, 2, %s, %s)"
    with server().admin(url.partition("@/")[2].partition("?")[0]) as admin:
        names = (f"user{n}" for n in range(50))
        return next(
            n for n in names if admin.execute(asked, (request.param, owner_key(Scope(n)))).fetchone() == (True,)
        )


def record(db: threefold.Threefold, user: str, name: str) -> str:
    with db.user(user).turn("trip", turn=name) as turn:
        turn.prompt(f"text {name}")
    return turn.ref


def wait_for(url: str, user: str, change: str, job: Callable[[], Any]) -> Any:
    """Run `job` while another transaction holds what it wants and then commits `change`."""
    other, answers = Database(url.partition("&")[0]), list[Any]()
    waiting = threading.Thread(target=lambda: answers.append(job()))

    def hold(held: Any) -> None:
        held.execute(change, (owner_key(Scope(user)),)).fetchall()
        waiting.start()
        with server().admin() as admin:
            blocked = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            assert wait_until(lambda: admin.execute(blocked).fetchone())

    other.write(None, hold)
    waiting.join()
    other.close()
    assert answers
    return answers[0]


OWNER = "UPDATE threefold.owners SET last_number = last_number + 1 WHERE owner = %s RETURNING 1"
QUEUE = "UPDATE threefold.waiting SET due = due + 1 WHERE owner = %s RETURNING 1"


def warm(db: threefold.Threefold, user: str) -> None:
    """Do everything several times, so that every connection has its plans."""
    for n in range(8):
        ref = record(db, user, f"{n}")
        db.user(user).conv.feedback(ref, "ok")
        db.embed_pending()
        db.user(user).forget(conversation="trip", turn=f"{n}")


def test_a_purge_that_waited_for_a_writer_removes_its_turn(url: str, db: threefold.Threefold, user: str) -> None:
    warm(db, user)
    record(db, user, "gone")
    receipt = wait_for(url, user, OWNER, lambda: db.user(user).forget(conversation="trip", turn="gone"))
    assert receipt.stores["turns"] == 1
    assert db.user(user).conv.turns() == ()


def test_feedback_that_waited_for_a_writer_finds_its_turn(url: str, db: threefold.Threefold, user: str) -> None:
    warm(db, user)
    ref = record(db, user, "liked")
    wait_for(url, user, OWNER, lambda: db.user(user).conv.feedback(ref, "ok") or "done")
    assert db.state().counts["feedback"] == 1
    with pytest.raises(NotFound):
        db.user(user).conv.feedback(ref.replace("liked", "never"), "ok")


def test_expiry_that_waited_for_a_writer_removes_what_is_over(url: str, user: str) -> None:
    with threefold.open(url, embedder=MODEL, background=False, clock=Clock(), ttl=timedelta(days=1)) as db:
        warm(db, user)
        for n in range(4):
            record(db, user, f"over {n}")
            assert db._backend.expire(NOW + timedelta(days=2)) == 1
        record(db, user, "over")
        assert wait_for(url, user, OWNER, lambda: db._backend.expire(NOW + timedelta(days=2))) == 1


@pytest.mark.parametrize("turn", ["gone", None])
def test_a_purge_that_waited_for_a_claim_leaves_nothing_in_the_queue(
    url: str, db: threefold.Threefold, user: str, turn: str | None
) -> None:
    warm(db, user)
    record(db, user, "gone")
    wait_for(url, user, QUEUE, lambda: db.user(user).forget(conversation=turn and "trip", turn=turn))
    assert db.state().pending == 0
    assert db.state(check=True).problems == ()


def test_vectors_that_waited_for_another_claim_leave_the_queue(url: str, db: threefold.Threefold, user: str) -> None:
    warm(db, user)
    record(db, user, "embedded")
    claimed = db._backend.claim(10, NOW, 60)
    done = [(row, MODEL.embed([row.text])[0]) for row in claimed]
    assert wait_for(url, user, QUEUE, lambda: db._backend.put_vectors(MODEL.name, done)) == 1
    assert db.state().pending == 0


@pytest.mark.parametrize("known", [False, True])
def test_bytes_are_not_swept_while_their_commit_is_on_its_way(
    url: str, db: threefold.Threefold, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """Also not of a user whose very first commit it is: forgetting waits, and then removes the turn with its bytes."""
    if known:
        record(db, "alice", "before")
    receipts: list[Any] = []
    forgetting = threading.Thread(target=lambda: receipts.append(other.user("alice").forget()))
    has = PostgresBlobs.has

    def has_and_then_is_slow(self: PostgresBlobs, scope: Scope, digest: str) -> bool:
        there = has(self, scope, digest)
        if not forgetting.ident:
            forgetting.start()
            time.sleep(0.5)
        return there

    monkeypatch.setattr(PostgresBlobs, "has", has_and_then_is_slow)
    with threefold.open(url, embedder=MODEL, background=False, durable=False) as other:
        with db.user("alice").turn("trip", turn="1") as turn:
            turn.attach(("a.txt", b"bytes"))
        forgetting.join()
    assert receipts[0].stores["turns"] == 1 + known
    assert db.state().counts["turns"] == 0
    assert list(db._blobs.digests(Scope("alice"))) == []


def test_writers_of_one_user_who_wait_leave_the_others_their_connections(url: str, db: threefold.Threefold) -> None:
    record(db, "busy", "0")
    held, waiting = Database(url.partition("&")[0]), list[threading.Thread]()

    def hold(locked: Any) -> None:
        locked.execute(OWNER, (owner_key(Scope("busy")),)).fetchall()
        for n in range(1, 25):
            waiting.append(threading.Thread(target=record, args=(db, "busy", f"{n}")))
            waiting[-1].start()
        assert record(db, "other", "1")
        assert db.user("busy").conv.search("text")

    held.write(None, hold)
    for thread in waiting:
        thread.join()
    held.close()
    assert [c.turns for c in db.user("busy").conv.conversations()] == [25]

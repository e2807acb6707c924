"""Bytes under stress: killed writers, collectors that run at once, an object store that dies and comes back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import apsw
import pytest
from s3_server import BUCKET, SECRET, S3Server

import threefold
from threefold.backends.blobs.keys import is_digest
from threefold.backends.opening import open_backend
from threefold.backends.sqlite import removal
from threefold.errors import InvalidInput, NotFound, Unavailable
from threefold.model.retention import Target
from threefold.model.times import now
from threefold.testing.contract import Desk, full_turn
from threefold.testing.contract.desk import ALICE

HOUR = timedelta(hours=1)
posix = pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
WRITERS, TURNS = 3, 80

KILLED = """
import os, signal, sys, threefold
folder, blobs, user, moment = sys.argv[1:]
db = threefold.open(folder, blobs=blobs, embedder=None, background=False)
die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
if moment == "commit":
    db._backend.commit = die
else:
    os.fsync = die
with db.user(user).turn("trip") as turn:
    turn.attach(("in.txt", f"bytes of {user} at {moment}".encode()))
"""

WRITER = """
import sys, threefold
from threefold.errors import BytesGone
folder, blobs, n, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
db = threefold.open(folder, blobs=blobs, embedder=None, background=False, durable=False)
user = db.user(f"user{n % 2}")
for i in range(count):
    turn = user.conv.open_turn(f"c{n}", f"{i}")
    turn.attach(("same.txt", f"same {i % 5}".encode()))
    turn.attach(("own.txt", f"own {n} {i}".encode()))
    while True:
        try:
            turn.record()
            break
        except BytesGone:
            print("again")
    if i % 10 == 9:
        user.forget(f"c{n}", f"{i - 5}")
"""


def spawn(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ahead(by: timedelta) -> threefold.Config:
    """A program whose clock is fast: what others have just put looks old to it."""

    def clock() -> datetime:
        return now() + by

    return threefold.Config(embedder=None, background=False, durable=False, clock=clock, ttl=None)


@pytest.fixture(params=["folder", "s3"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return request.getfixturevalue("s3") if request.param == "s3" else str(tmp_path / "bytes")


@posix
def test_what_killed_writers_left_is_collected_after_a_day(blobs: str, tmp_path: Path) -> None:
    local = "://" not in blobs
    with threefold.open(tmp_path / "store", blobs=blobs, config=ahead(timedelta(0))) as db:
        with db.user("alice").turn("trip", turn="kept") as turn:
            turn.attach(("in.txt", b"kept"))
        moments = ["commit", "write"] if local else ["commit"]
        for user in ("alice", "new"):
            for moment in moments:
                done = spawn(KILLED, tmp_path / "store", blobs, user, moment)
                assert done.communicate()[1] == ""
                assert done.returncode == -signal.SIGKILL
        assert db.collect_blobs() == db.unreferenced_blobs() == 0
    with threefold.open(tmp_path / "store", blobs=blobs, config=ahead(timedelta(hours=25))) as db:
        left = 2 * len(moments)
        found = [name for _, name in db._blobs.stale(now() + HOUR)]
        assert len(found) == left + 1
        assert sum(not is_digest(name) for name in found) == (2 if local else 0)
        assert [scope.user for scope in db.scopes()] == ["alice"]
        assert (db.unreferenced_blobs(), db.collect_blobs(), db.unreferenced_blobs()) == (left, left, 0)
        card = db.user("alice").conv.turn(turn.ref).attachments[0]
        assert db.user("alice").read(card.ref) == b"kept"
        assert db.missing_blobs() == ()


def test_no_turn_lacks_its_bytes_while_collectors_run(blobs: str, tmp_path: Path) -> None:
    """Several processes record and forget, with equal and different bytes; a collector that waits for nothing runs."""
    with threefold.open(tmp_path / "store", blobs=blobs, config=ahead(HOUR)) as db:
        writers = [spawn(WRITER, tmp_path / "store", blobs, n, TURNS) for n in range(WRITERS)]
        collected = 0
        while any(writer.poll() is None for writer in writers):
            collected += db.collect_blobs(grace=timedelta(0))
        assert [writer.communicate()[1] for writer in writers] == [""] * WRITERS
        assert db.state(check=True).counts["turns"] == WRITERS * (TURNS - TURNS // 10)
        assert db.missing_blobs() == ()
        db.collect_blobs(grace=timedelta(0))
        assert db.missing_blobs() == ()
        held = {(db._blobs.key(scope), digest) for scope, digest in db._backend.blob_refs()}
        assert set(db._blobs.stale(now() + HOUR)) == held


@pytest.fixture
def own_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    server = S3Server(tmp_path / "server")
    server.start()
    server.lead_to(monkeypatch)
    yield server
    server.stop()


def test_an_object_store_that_dies_and_comes_back(own_server: S3Server, tmp_path: Path) -> None:
    def record(name: str) -> str:
        with alice.turn("trip", turn=name) as turn:
            turn.attach(("in.txt", name.encode()))
        return turn.ref

    with threefold.open(tmp_path / "store", blobs=f"s3://{BUCKET}/x", config=ahead(timedelta(0))) as db:
        alice = db.user("alice")
        first = record("first")
        card = alice.conv.turn(first).attachments[0]
        record("doomed")
        own_server.stop()
        for use in (lambda: record("second"), lambda: alice.read(card.ref), db.collect_blobs, db.missing_blobs,
                    lambda: alice.link(card.ref), alice.forget):  # fmt: skip
            with pytest.raises(Unavailable, match=f"s3://{BUCKET}/x.*check bucket") as failed:
                use()
            assert "\n" not in str(failed.value)
            assert SECRET not in str(failed.value)
        assert [entry.turn for entry in alice.conv.turns()] == ["first", "doomed"]
        receipt = alice.forget("trip", "doomed")
        assert (receipt.stores["turns"], receipt.stores["blobs"], len(receipt.leftovers)) == (1, 0, 1)
        assert "next sweep" in receipt.leftovers[0]
        own_server.start()
        assert alice.read(card.ref) == b"first"
        assert db.expire() == 0
        record("second")
        assert [entry.turn for entry in alice.conv.turns()] == ["first", "second"]
        assert len(list(db._blobs.digests(alice.scope))) == 2
        assert db.missing_blobs() == ()


def test_credentials_that_are_refused(s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-one")
    with threefold.open(tmp_path / "store", blobs=s3, embedder=None, background=False) as db:
        turn = db.user("alice").turn("trip")
        turn.attach(("in.txt", b"data"))
        with pytest.raises(Unavailable, match=r"SignatureDoesNotMatch; check the credentials") as failed:
            turn.record()
        assert "wrong-one" not in str(failed.value)
        assert db.user("alice").conv.turns() == ()


def test_a_link_is_good_for_its_bytes_and_nothing_else(s3: str, tmp_path: Path) -> None:
    data = bytes(range(256)) * 1000
    with threefold.open(tmp_path / "store", blobs=s3, embedder=None, background=False) as db:
        alice = db.user("alice")
        with alice.turn("trip") as turn:
            turn.attach(("in.bin", data))
        card = alice.conv.turn(turn.ref).attachments[0]
        url = alice.link(card.ref, expires=timedelta(minutes=1))
        assert fetch(url) == (200, data)
        assert fetch(url, Range="bytes=100-355") == (206, data[100:356])
        signature = url.rpartition("=")[2]
        for other in (
            url.replace(signature, signature[::-1]),
            url.replace("X-Amz-Expires=60", "X-Amz-Expires=99999"),
            url.partition("?")[0],
            url.replace(card.digest, "0" * 64),
        ):
            assert fetch(other)[0] == 403
        with pytest.raises(NotFound):
            db.user("bob").link(card.ref)
        with pytest.raises(InvalidInput):
            alice.link(turn.ref)
        document = alice.doc.ingest(b"# Fares", source="fares.md")
        assert fetch(alice.link(document.ref)) == (200, b"# Fares")
        alice.forget("trip")
        assert fetch(url)[0] == 404


def fetch(url: str, **headers: str) -> tuple[int, bytes]:
    assert url.startswith("http://127.0.0.1:")
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_bytes_put_again_are_written_again_where_they_are_old(
    s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from threefold.backends.blobs import objects
    from threefold.backends.opening import open_blobs

    blobs = open_blobs(s3)
    digest = blobs.put(ALICE, b"data")
    ((_, first),) = blobs.digests(ALICE)
    while now() < first + timedelta(seconds=1):  # its times are whole seconds
        pass
    blobs.put(ALICE, b"data")
    assert list(blobs.digests(ALICE)) == [(digest, first)]
    monkeypatch.setattr(objects, "REFRESH_AFTER", timedelta(0))
    blobs.put(ALICE, b"data")
    ((_, again),) = blobs.digests(ALICE)
    assert again > first
    assert blobs.get(ALICE, digest) == b"data"


def test_bytes_outlive_a_removal_that_is_not_committed_yet(tmp_path: Path) -> None:
    """Writers share a transaction: what a neighbour in it removed may still be undone, by a full disk or a kill."""
    store, blobs = open_backend(str(tmp_path), durable=False)
    desk = Desk(store, blobs)
    desk.record(full_turn("trip", "1", "x"))
    digests = [file.digest for file in desk.stored("trip", "1").record.files]
    with store._readers.snapshot() as db:
        committed = removal.doomed_blobs(db)

    def both(db: apsw.Connection) -> int:
        removal.purge(db, ALICE, Target("trip"), blobs)
        return removal.delete_doomed_blobs(db, blobs, committed)

    assert store._writer.run(both) == 0
    assert all(blobs.has(ALICE, digest) for digest in digests)
    store.expire(now())
    assert not any(blobs.has(ALICE, digest) for digest in digests)
    store.close()

"""Several processes and threads at one PostgreSQL; workers that share the queue; forks; what is left after closing."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from postgres_server import server

import threefold
from threefold.backends.postgres import upkeep
from threefold.backends.postgres.connection import Database
from threefold.errors import Unavailable
from threefold.model.times import now
from threefold.testing.contract.desk import NOW
from threefold.testing.fakes import Clock, HashEmbedder

WRITES, PROCESSES = 200, 8
DAY = timedelta(days=1)
posix = pytest.mark.skipif(os.name != "posix", reason="needs fork and SIGKILL")

WORKER = f"""
import sys, threefold
from threefold.testing.fakes import HashEmbedder
url, role, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
db = threefold.open(url, embedder=HashEmbedder(16), background=(role == "writer" and n < 2))
user = db.user("alice")
for i in range({WRITES}):
    if role == "writer":
        with user.turn(f"c{{n}}", turn=f"{{n}}-{{i}}") as turn:
            turn.prompt(f"prompt of process number {{n}} turn {{i}}")
            turn.answer("an answer that is common to all")
        if i % 50 == 49:
            db.expire()
    elif i % 4 == 0:
        for hit in user.conv.search("common answer", limit=3):
            assert user.conv.turn(hit.ref).messages[1].text == "an answer that is common to all"
        user.conv.conversations(limit=3)
        user.conv.turns(limit=3, order="newest")
        db.state(check=i == {WRITES} - 4)
db.close()
"""
EMBEDDING = """
import os, sys, time, threefold
from threefold.testing.fakes import HashEmbedder

class Noting(HashEmbedder):
    def embed(self, texts):
        out = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND)
        os.write(out, "".join(f"{text}\\n" for text in texts).encode())
        os.close(out)
        return super().embed(texts)

with threefold.open(sys.argv[1], embedder=Noting(16)) as db:
    while db.state().pending:
        time.sleep(0.02)
"""
CLAIMING = """
import os, signal, sys
from threefold.backends.opening import open_backend
from threefold.testing.contract.desk import NOW
backend, _ = open_backend(sys.argv[1])
print(len(backend.claim(100, NOW, 60)), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
EXPIRING = """
import sys, threefold
from datetime import timedelta
from threefold.testing.contract.desk import NOW
with threefold.open(sys.argv[1], embedder=None, background=False, clock=lambda: NOW + timedelta(days=2)) as db:
    print("ready", flush=True)
    sys.stdin.readline()
    print(sum(db._backend.expire(db.config.clock(), 7) for _ in range(40)), flush=True)
"""


@pytest.fixture
def url() -> Iterator[str]:
    address = server().take()
    yield address
    server().give_back(address)


def spawn(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def open_store(url: str, **settings: Any) -> threefold.Threefold:
    return threefold.open(url, **{"embedder": HashEmbedder(16), "background": False, "durable": False} | settings)


def fill(db: threefold.Threefold, turns: int) -> None:
    for n in range(turns):
        with db.user(f"user{n % 5}").turn("trip", turn=f"{n}") as turn:
            turn.prompt(f"text number {n}")


def test_eight_processes_write_while_others_read() -> None:
    # All open the store at once, while it is new.
    url = server().make_database("shared") + "&partitions=4"
    running = [spawn(WORKER, url, "writer", n) for n in range(PROCESSES)]
    running += [spawn(WORKER, url, "reader", n) for n in range(2)]
    said = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0] * len(running), said
    assert "".join(said) == ""
    with open_store(url) as db:
        while db.state().pending:  # the claims of workers that were closed have an end
            db.embed_pending()
            db._backend._database.write(None, lambda c: c.execute("UPDATE threefold.waiting SET due = 0"))
        state = db.state(check=True)
        assert (state.counts["turns"], state.counts["rows"]) == (PROCESSES * WRITES, 2 * PROCESSES * WRITES)
        assert state.problems == ()
        assert [c.turns for c in db.user("alice").conv.conversations()] == [WRITES] * PROCESSES
        assert len(db.user("alice").conv.search("common answer", limit=10_000)) == PROCESSES * WRITES


def test_two_workers_embed_every_row_once(url: str, tmp_path: Path) -> None:
    notes, turns = tmp_path / "embedded", 700
    notes.touch()
    with open_store(url) as db:
        fill(db, turns)
        running = [spawn(EMBEDDING, url, notes) for _ in range(2)]
        said = [process.communicate(timeout=60)[0] for process in running]
        assert said == ["", ""]
        embedded = Counter(notes.read_text().splitlines())
        assert embedded == Counter(f"text number {n}" for n in range(turns))
        assert db.state(check=True).problems == ()
        assert db.state().counts["vectors"] == turns


def test_claims_at_the_same_time_neither_meet_nor_wait(url: str) -> None:
    with open_store(url) as db:
        fill(db, 20)
        one, other = Database(url.partition("&")[0]), Database(url.partition("&")[0])

        def claim_twice(held: Any) -> tuple[Any, Any]:
            mine = upkeep.claim(held, 8, now(), 60)
            # Were this to wait for the first, it would wait until it is refused.
            return mine, other.write(None, lambda c: upkeep.claim(c, 50, now(), 60))

        first, second = one.write(None, claim_twice)
        keys = [(row.scope, row.key) for row in (*first, *second)]
        assert (len(first), len(second), len(set(keys))) == (8, 12, 20)
        for database in (one, other):
            database.close()


@posix
def test_the_claim_of_a_killed_worker_is_taken_over_when_it_ends(url: str) -> None:
    with open_store(url) as db:
        fill(db, 20)
        worker = spawn(CLAIMING, url)
        assert worker.communicate()[0] == "20\n"
        assert worker.returncode == -signal.SIGKILL
        assert db._backend.claim(100, NOW + timedelta(seconds=59), 60) == ()
        assert len(db._backend.claim(100, NOW + timedelta(seconds=60), 60)) == 20


def test_two_processes_that_expire_at_once_remove_each_turn_once(url: str) -> None:
    with open_store(url, ttl=DAY, clock=Clock(NOW)) as db:
        fill(db, 120)
        running = [spawn(EXPIRING, url) for _ in range(2)]
        assert [process.stdout and process.stdout.readline() for process in running] == ["ready\n"] * 2
        for process in running:
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()
        counts = [int(process.communicate()[0]) for process in running]
        assert sum(counts) == 120, counts
        assert db.state().counts["turns"] == 0
        assert db.state(check=True).problems == ()


@posix
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_is_told_to_open_the_store_again(url: str) -> None:
    db = open_store(url, background=True)
    with db.user("alice").turn("trip", turn="1") as turn:
        turn.prompt("before the fork")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        said = []
        for use in (
            lambda: db.user("alice").conv.search("fork"),
            lambda: db.user("alice").conv.open_turn("trip").record(),
            db.state,
            db.expire,
        ):
            try:
                use()
                said.append("nothing")
            except Unavailable as error:
                said.append("fork" in str(error))
        db.close()
        again = threefold.open(url, embedder=None, background=False)
        said.append(len(again.user("alice").conv.search("fork")))
        os.write(write, repr(said).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read) as pipe:
        assert pipe.read() == "[True, True, True, True, 1]"
    with db.user("alice").turn("trip", turn="2") as turn:
        turn.prompt("after the fork")
    assert db.state(check=True).problems == ()
    db.close()


def descriptors() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


@pytest.mark.parametrize("forgotten", [False, True])
def test_fifty_stores_leave_no_thread_no_descriptor_and_no_connection(url: str, forgotten: bool) -> None:
    def use(n: int) -> None:
        db = open_store(url, background=True)
        with db.user("alice").turn("trip") as turn:
            turn.prompt(f"number {n}")
            turn.attach(("a.txt", b"bytes"))
        assert db.user("alice").conv.search("number")
        if not forgotten:
            db.close()
            db.close()

    use(0)
    gc.collect()
    threads, open_files = threading.active_count(), descriptors()
    for n in range(50):
        use(n)
        gc.collect()
    assert threading.active_count() == threads
    assert descriptors() == open_files


def test_many_threads_do_everything_at_once(url: str) -> None:
    failures: list[BaseException] = []
    with open_store(url, ttl=DAY, clock=Clock(NOW)) as db:
        name = url.partition("@/")[2].partition("?")[0]

        def record(n: int) -> None:
            user = db.user(f"user{n % 3}")
            for i in range(15):
                with user.turn(f"c{n}", turn=f"{i}") as turn:
                    turn.prompt(f"thread says common {i}")
                    turn.attach(("a.txt", f"bytes {i % 4}".encode()))
                user.conv.feedback(turn.ref, "ok")
                user.conv.search("common")
                if i % 5 == 4:
                    user.forget(conversation=f"c{n}", turn=f"{i}")

        def embed(n: int) -> None:
            for _ in range(15):
                db.embed_pending(limit=20)

        def upkeep_(n: int) -> None:
            later = NOW + 2 * DAY
            for i in range(6):
                with db.user("guest").turn(f"g{n}", turn=f"{i}") as turn:
                    turn.prompt("soon over")
                db.user("guest").forget() if i % 2 else db._backend.reset_vectors()
                db._backend.expire(NOW)
                db._backend.claim(5, later, 0)
                db.state(check=True)

        def guarded(work: Callable[[int], None], n: int) -> None:
            try:
                work(n)
            except BaseException as error:  # noqa: BLE001 - shown below
                failures.append(error)

        work = [(record, n) for n in range(6)] + [(embed, n) for n in range(2)] + [(upkeep_, n) for n in range(2)]
        threads = [threading.Thread(target=guarded, args=each) for each in work]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        db.user("guest").forget()
        assert db.state().counts["turns"] == 6 * 12
        assert db.state(check=True).problems == ()
        assert db.missing_blobs() == ()
        db._backend._database._pool.close()
    with server().admin(name) as c:
        assert c.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = %s", (name,)).fetchone() == (0,)

"""Several processes and threads at one store; forks; what is left open after closing or forgetting to."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import threefold
from threefold.errors import Unavailable
from threefold.testing.fakes import HashEmbedder

WRITES, PROCESSES = 200, 8
posix = pytest.mark.skipif(os.name != "posix", reason="needs fork")

WORKER = """
import sys, threefold
from threefold.testing.fakes import HashEmbedder
folder, role, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
db = threefold.open(folder, embedder=HashEmbedder(16), background=(role == "writer" and n == 0))
user = db.user("alice")
for i in range(WRITES):
    if role == "writer":
        with user.turn(f"c{n}", turn=f"{n}-{i}") as turn:
            turn.prompt(f"prompt of process number {n} turn {i}")
            turn.answer("an answer that is common to all")
        if i % 50 == 49:
            db.expire()
    else:
        for hit in user.conv.search("common answer", limit=3):
            assert user.conv.turn(hit.ref).messages[1].text == "an answer that is common to all"
        user.conv.conversations(limit=3)
        user.conv.turns(limit=3, order="newest")
        db.state(check=i == WRITES - 1)
db.close()
""".replace("WRITES", str(WRITES))


def spawn(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORKER, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_eight_processes_write_while_others_read(tmp_path: Path) -> None:
    # All open the store at once, while it is new.
    running = [spawn(tmp_path / "store", "writer", n) for n in range(PROCESSES)]
    running += [spawn(tmp_path / "store", "reader", n) for n in range(2)]
    said = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0] * len(running), said
    assert "".join(said) == ""
    with threefold.open(tmp_path / "store", embedder=HashEmbedder(16), background=False) as db:
        db.embed_pending()
        state = db.state(check=True)
        assert (state.counts["turns"], state.counts["rows"]) == (PROCESSES * WRITES, 2 * PROCESSES * WRITES)
        assert state.problems == ()
        assert [c.turns for c in db.user("alice").conv.conversations()] == [WRITES] * PROCESSES
        assert len(db.user("alice").conv.search("common answer", limit=10_000)) == PROCESSES * WRITES


def test_what_one_process_writes_or_removes_another_sees_at_once(tmp_path: Path) -> None:
    settings = {"embedder": HashEmbedder(16), "background": False, "durable": False}
    with threefold.open(tmp_path, **settings) as one, threefold.open(tmp_path, **settings) as other:
        with one.user("alice").turn("trip") as turn:
            turn.prompt("river boat")
        one.embed_pending()
        assert other.user("alice").conv.search("river boat").mode == "hybrid"
        assert len(other.user("alice").conv.search("river boat", lists=["semantic"])) == 1
        one.user("alice").forget(conversation="trip")
        for lists in (["semantic"], ["lexical"], ["trigram"]):
            assert len(other.user("alice").conv.search("river boat", lists=lists)) == 0
        other.reembed()
        with other.user("alice").turn("trip") as turn:
            turn.prompt("mountain hut")
        other.embed_pending()
        assert len(one.user("alice").conv.search("mountain hut", lists=["semantic"])) == 1


CREATOR = """
import sys, time, threefold
from threefold.testing.fakes import HashEmbedder
folder, moment = sys.argv[1], float(sys.argv[2])
for n in range(40):
    time.sleep(max(0, moment + 0.05 * n - time.time()))
    with threefold.open(f"{folder}/{n}", embedder=HashEmbedder(16), background=False) as db:
        with db.user("alice").turn("trip") as turn:
            turn.prompt("river boat")
"""


def test_processes_that_make_a_store_at_the_same_moment_wait_for_each_other(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CREATOR, str(tmp_path), str(time.time() + 1.5)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    said = [process.communicate()[1] for process in running]
    assert said == [""] * 4
    for n in range(40):
        with threefold.open(tmp_path / str(n), embedder=HashEmbedder(16), background=False) as db:
            assert db.state(check=True).problems == ()
            assert len(db.user("alice").conv.turns()) == 4


@posix
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_is_told_to_open_the_store_again(tmp_path: Path) -> None:
    db = threefold.open(tmp_path, embedder=HashEmbedder(16))
    with db.user("alice").turn("trip", turn="1") as turn:
        turn.prompt("before the fork")
    while db.state().pending:  # a lock that the thread holds at this moment would be held for ever in the child
        time.sleep(0.01)
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
        again = threefold.open(tmp_path, embedder=None, background=False)
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


def use(db: threefold.Threefold, n: int) -> None:
    with db.user("alice").turn("trip") as turn:
        turn.prompt(f"number {n}")
        turn.attach(("a.txt", b"bytes"))
    assert db.user("alice").conv.search("number")
    db.user("alice").conv.search("number", lists=["semantic"])


@pytest.mark.parametrize("forgotten", [False, True])
def test_fifty_stores_leave_no_thread_and_no_descriptor(tmp_path: Path, forgotten: bool) -> None:
    with threefold.open(tmp_path / "warm", embedder=HashEmbedder(16)) as db:
        use(db, 0)
    gc.collect()
    threads, open_files = threading.active_count(), descriptors()
    for n in range(50):
        db = threefold.open(tmp_path / f"{n % 5}", embedder=HashEmbedder(16), durable=False)
        use(db, n)
        if not forgotten:
            db.close()
            db.close()
        del db
        gc.collect()
    assert threading.active_count() == threads
    assert descriptors() == open_files


def test_a_process_that_forgets_to_close_ends_and_loses_nothing(tmp_path: Path) -> None:
    script = (
        "import sys, threefold\nfrom threefold.testing.fakes import HashEmbedder\n"
        "db = threefold.open(sys.argv[1], embedder=HashEmbedder(16))\n"
        "with db.user('alice').turn('trip') as turn:\n    turn.prompt('kept all the same')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with threefold.open(tmp_path, embedder=None, background=False) as db:
        assert len(db.user("alice").conv.search("kept")) == 1


def test_many_threads_record_search_and_forget_at_once(tmp_path: Path) -> None:
    errors: list[BaseException] = []
    with threefold.open(tmp_path, embedder=HashEmbedder(16), durable=False) as db:

        def work(n: int) -> None:
            try:
                user = db.user(f"user{n % 3}")
                for i in range(15):
                    with user.turn(f"c{n}", turn=f"{i}") as turn:
                        turn.prompt(f"thread says common {i}")
                    user.conv.search("common")
                    if i % 5 == 4:
                        user.forget(conversation=f"c{n}", turn=f"{i}")
                        db.expire()
            except BaseException as error:  # noqa: BLE001 - shown below
                errors.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert db.state().counts["turns"] == 8 * 12
        assert db.state(check=True).problems == ()

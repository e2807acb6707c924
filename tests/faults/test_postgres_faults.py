"""PostgreSQL that is killed, cut off, not there or not as it should be: nothing lost or doubled, one clear line."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from postgres_server import ROLE, Server, server

import threefold
from threefold.backends.opening import open_backend
from threefold.backends.postgres import connection
from threefold.errors import InvalidInput, Unavailable
from threefold.testing.fakes import Clock, HashEmbedder

KILLER = Path(__file__).with_name("kill_postgres.py")
DEAD = "postgresql://someone:secret@127.0.0.1:1/nothing"
posix = pytest.mark.skipif(os.name != "posix", reason="needs fork and SIGKILL")


@pytest.fixture
def url() -> Iterator[str]:
    address = server().take()
    yield address
    server().give_back(address)


@pytest.fixture(scope="module")
def own() -> Iterator[Server]:
    """A server beside the one of the other tests, to be stopped and started."""
    made = Server()
    yield made
    made.close()


def open_store(url: str) -> threefold.Threefold:
    return threefold.open(url, embedder=HashEmbedder(8), background=False, clock=Clock())


def record(db: threefold.Threefold, name: str, data: bytes | None = None) -> str:
    with db.user("alice").turn("trip", turn=name) as turn:
        turn.prompt(f"prompt {name}")
        if data is not None:
            turn.attach(("data.bin", data))
    return turn.ref


def one_line(error: BaseException) -> str:
    text = str(error)
    assert text
    assert "\n" not in text
    assert "Traceback" not in text
    assert "secret" not in text
    return text


@posix
def test_nothing_is_lost_or_doubled_when_writers_connections_and_the_server_are_killed() -> None:
    command = [sys.executable, str(KILLER), "--kills", "50", "--seconds", "8"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.stdout, done.stderr
    result = json.loads(done.stdout)
    assert result["problems"] == [], result
    assert min(result[what] for what in ("writers", "connections", "server", "recorded")) > 0, result


def test_a_store_outlives_its_server(own: Server) -> None:
    with open_store(own.make_database("outlived") + "&partitions=2") as db:
        ref = record(db, "before", b"bytes")
        own.kill()
        back = threading.Timer(1.0, own.start)
        back.start()
        assert record(db, "meanwhile", b"more bytes")
        back.join()
        assert db.user("alice").conv.turn(ref).messages[0].text == "prompt before"
        own.restart()
        assert len(db.user("alice").conv.search("prompt")) == 2
        assert db.state(check=True).problems == ()
        assert db.missing_blobs() == ()


def test_a_server_that_stays_away_is_told_of_in_one_line(own: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    url = own.make_database("away") + "&partitions=2"
    with open_store(url) as db:
        record(db, "before")
        own.stop()
        patience = monkeypatch.context()
        impatient = patience.__enter__()
        impatient.setattr(connection, "RETRY_SECONDS", 0.3)
        impatient.setattr(db._backend._database._pool, "timeout", 0.3)
        impatient.setattr(db._backend._beside._pool, "timeout", 0.3)
        for use in (lambda: record(db, "never"), lambda: db.user("alice").conv.search("before"), db.state, db.expire):
            with pytest.raises(Unavailable) as failed:
                use()
            assert "is the server up?" in one_line(failed.value)
        with pytest.raises(Unavailable) as failed:
            open_store(url)
        assert "is the server up?" in one_line(failed.value)
        patience.__exit__(None, None, None)
        own.start()
        record(db, "after")
        assert {entry.turn for entry in db.user("alice").conv.turns()} == {"before", "after"}


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (DEAD, "refused"),
        ("postgresql://someone:secret@no-such-host.invalid/nothing", "no-such-host"),
        ("postgresql://nobody:secret@/postgres?host=SOCKET", "nobody"),
        (f"postgresql://{ROLE}:secret@/no_such_database?host=SOCKET", "no_such_database"),
        (f"postgresql://{ROLE}:secret@/postgres?host=/no/such/folder", "No such file"),
    ],
)
def test_a_store_that_cannot_be_opened_says_why(url: str, said: str) -> None:
    with pytest.raises(Unavailable) as failed:
        open_store(url.replace("SOCKET", str(server().folder / "data")))
    assert said in one_line(failed.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://someone:secret@[::1/nothing",
        "postgresql://someone:sec%zzret@127.0.0.1/nothing",
        "postgresql://someone:secret@127.0.0.1:port/nothing",
        "postgresql://someone:secret@127.0.0.1/nothing?nonsense=1",
        "mysql://someone:secret@127.0.0.1/nothing",
    ],
)
def test_a_url_that_is_wrong_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(InvalidInput) as failed:
        open_backend(url)
    assert "sec%zzret" not in one_line(failed.value)


def test_a_missing_driver_is_named_without_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(Unavailable) as failed:
        open_backend(DEAD)
    assert "threefold[postgres]" in one_line(failed.value)


def test_a_database_without_vectors_says_what_to_install() -> None:
    place = server()
    with place.admin() as db:
        db.execute("DROP DATABASE IF EXISTS plain WITH (FORCE)")
        db.execute(f"CREATE DATABASE plain OWNER {ROLE}")
    with place.admin("plain") as db:
        # As where it is not installed at all: the ordinary role could otherwise make it.
        db.execute(f"REVOKE CREATE ON DATABASE plain FROM {ROLE}")
        db.execute("CREATE SCHEMA threefold")
        db.execute(f"GRANT ALL ON SCHEMA threefold TO {ROLE}")
    with pytest.raises(Unavailable) as failed:
        open_store(place.url("plain"))
    assert "vector" in one_line(failed.value)
    with place.admin("plain") as db:
        assert db.execute("SELECT to_regclass('threefold.turns')").fetchone() == (None,)


def test_a_right_that_is_lacking_is_named(url: str) -> None:
    name = url.partition("@/")[2].partition("?")[0]
    with open_store(url) as db, server().admin(name) as admin:
        record(db, "before")
        admin.execute(f"REVOKE INSERT ON threefold.feedback, threefold.turns FROM {ROLE}")
        try:
            with pytest.raises(Unavailable) as failed:
                record(db, "refused", b"bytes")
            assert "turns" in one_line(failed.value)
        finally:
            admin.execute(f"GRANT INSERT ON threefold.feedback, threefold.turns TO {ROLE}")
        assert [entry.turn for entry in db.user("alice").conv.turns()] == ["before"]
        record(db, "after")
        assert db.state(check=True).problems == ()


@pytest.mark.parametrize("command", [["log"], ["search", "prompt"], ["forget", "--conversation", "trip", "--yes"]])
def test_the_command_line_says_in_one_line_that_the_server_is_away(command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "threefold", "--db", DEAD, *command], check=False, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("threefold: ")
    assert done.stderr.count("\n") == 1, done.stderr
    assert "secret" not in done.stderr


class Proxy:
    """Stands before the server on a port of this machine; when armed, it cuts each transaction once, at its COMMIT."""

    def __init__(self, target: str) -> None:
        self.target, self.armed, self.deaf, self.commits = target, "", False, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    def _accept(self) -> None:
        try:
            while True:
                client, _ = self.listener.accept()
                there = socket.socket(socket.AF_UNIX)
                there.connect(self.target)
                threading.Thread(target=self._forward, args=(client, there, True), daemon=True).start()
                threading.Thread(target=self._forward, args=(there, client, False), daemon=True).start()
        except OSError:
            return

    def _forward(self, source: socket.socket, target: socket.socket, asks: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 20):
                if not self._cut(data, asks):
                    target.sendall(data)
                elif not self.deaf:
                    break
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)  # wakes the other thread, which closing would not
        source.close()

    def _cut(self, data: bytes, asks: bool) -> bool:
        """Whether these bytes go no further: the COMMIT itself, or the answer that it was done."""
        if asks and self.armed and b"COMMIT\0" in data:
            self.commits += 1
            first_try = self.commits in (1, 3, 5)
            self.deaf = first_try and self.armed == "after"
            return first_try and not self.deaf
        if not asks and self.deaf:
            self.deaf = b"COMMIT\0" not in data
            return True
        return False

    def close(self) -> None:
        self.listener.close()


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    made = Proxy(str(server().folder / "data" / ".s.PGSQL.5432"))
    yield made
    made.close()


JOBS: dict[str, Callable[[threefold.Threefold, str], Any]] = {
    "a turn": lambda db, ref: record(db, "new", b"bytes"),
    "a reaction": lambda db, ref: db.user("alice").conv.feedback(ref, "ok", "good"),
    "a machine's reaction": lambda db, ref: db.user("alice").conv.feedback(ref, "ok", "good", origin="machine"),
    "a purge": lambda db, ref: db.user("alice").forget(conversation="trip", turn="second"),
    "vectors": lambda db, ref: db.embed_pending(),
}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("what", JOBS)
def test_a_connection_cut_at_the_commit_does_the_work_once(url: str, proxy: Proxy, what: str, when: str) -> None:
    name = url.partition("@/")[2].partition("?")[0]
    through = f"postgresql://{ROLE}@127.0.0.1:{proxy.port}/{name}?sslmode=disable"
    with open_store(url) as plain, open_store(through) as db:
        ref, _ = record(plain, "first"), record(plain, "second")
        proxy.armed = when
        JOBS[what](db, ref)
        proxy.armed = ""
        assert proxy.commits >= 2
        state = plain.state(check=True)
        assert state.problems == ()
        turns = {"a turn": 3, "a purge": 1}.get(what, 2)
        assert (state.counts["turns"], state.counts["rows"]) == (turns, turns)
        assert state.counts["feedback"] == ("reaction" in what)
        assert plain.missing_blobs() == ()

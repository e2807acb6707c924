"""Callers that write at once share a commit; each gets its own result, whatever becomes of the others."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from threefold.backends.sqlite.writer import Writer
from threefold.errors import Conflict, Unavailable


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    made = Writer(tmp_path / "w.db", durable=False)
    made.run(lambda db: db.execute("CREATE TABLE t (x INTEGER)"))
    yield made
    made.close()


def put(number: int) -> Callable[[apsw.Connection], int]:
    def job(db: apsw.Connection) -> int:
        db.execute("INSERT INTO t VALUES (?)", (number,))
        if number < 0:
            raise Conflict("a negative number")
        return number

    return job


def stored(writer: Writer) -> list[int]:
    return writer.outside(lambda db: [x for (x,) in db.execute("SELECT x FROM t ORDER BY x").fetchall()])


@contextmanager
def held_up(writer: Writer) -> Iterator[None]:
    """As long as the block runs, everyone who writes has to wait."""
    began, end = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: writer.outside(lambda _: (began.set(), end.wait(10))))
    thread.start()
    began.wait(10)
    try:
        yield
    finally:
        end.set()
        thread.join()


class Caller(threading.Thread):
    def __init__(self, writer: Writer, number: int) -> None:
        super().__init__(daemon=True)
        self.writer, self.number = writer, number
        self.result: int | None = None
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self.result = self.writer.run(put(self.number))
        except (Conflict, Unavailable) as error:
            self.error = error


def queued(writer: Writer, numbers: list[int]) -> list[Caller]:
    """Callers that wait in this order."""
    callers = []
    for count, number in enumerate(numbers, 1):
        callers.append(Caller(writer, number))
        while len(writer._waiting) < count:
            time.sleep(0.001)
    return callers


def test_who_waits_at_the_same_time_shares_a_commit_and_fails_alone(writer: Writer) -> None:
    commits = []
    writer.outside(lambda db: db.set_commit_hook(lambda: bool(commits.append(1))))
    with held_up(writer):
        callers = queued(writer, [1, 2, -3, 4, 5])
    for caller in callers:
        caller.join(10)
    assert [caller.result for caller in callers] == [1, 2, None, 4, 5]
    assert isinstance(callers[2].error, Conflict)
    assert stored(writer) == [1, 2, 4, 5]
    assert commits == [1]
    assert writer._leader is None
    assert not writer._waiting


def test_many_callers_are_all_served(writer: Writer) -> None:
    def work(start: int) -> None:
        done.extend(writer.run(put(start + i)) for i in range(50))

    done: list[int] = []
    threads = [threading.Thread(target=work, args=(50 * n,)) for n in range(16)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(before)
    assert sorted(done) == list(range(800)) == stored(writer)


def test_after_closing_everyone_who_waits_is_told(writer: Writer) -> None:
    with held_up(writer):
        callers = queued(writer, [1, 2, 3])
        writer._db, db = None, writer._db
    for caller in callers:
        caller.join(10)
    writer._db = db
    assert [type(caller.error) for caller in callers] == [Unavailable] * 3
    assert stored(writer) == []


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer that interrupts")
@pytest.mark.parametrize("leads", [True, False])
def test_an_interrupted_caller_leaves_nothing_and_holds_up_nobody(writer: Writer, leads: bool) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    callers: list[Caller] = []
    later = threading.Thread(target=lambda: callers.extend(queued_behind(writer, [2, 3])))
    try:
        with held_up(writer):
            if not leads:
                callers += queued(writer, [1])
            later.start()
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            with pytest.raises(KeyboardInterrupt):
                writer.run(put(99))
            later.join(10)
    finally:
        signal.signal(signal.SIGALRM, before)
    for caller in callers:
        caller.join(10)
    assert stored(writer) == sorted(caller.number for caller in callers)
    assert writer._leader is None
    assert not writer._waiting


def queued_behind(writer: Writer, numbers: list[int]) -> list[Caller]:
    """Callers that come once the main thread waits."""
    time.sleep(0.2)
    return [Caller(writer, number) for number in numbers]

"""Several processes that answer on one socket, and the one that looks after them."""

from __future__ import annotations

import logging
import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, Final

from threefold.errors import Unavailable

logger = logging.getLogger("threefold.http")
# Seconds between looks whether all are alive, and before one that could not begin is begun anew.
_LOOK: Final = 1.0


class Worker:
    """One process, and the line to it: it sends something when it begins to answer, and ends when the line does."""

    def __init__(self, target: Callable[..., None], arguments: Sequence[Any]) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.line, its = spawn.Pipe()
        self.process: SpawnProcess = spawn.Process(target=target, args=(*arguments, its))
        self.process.start()
        its.close()
        self.answers = False

    def heard(self) -> None:
        """Take in what it sends."""
        try:
            while self.line.poll():
                self.line.recv()
                self.answers = True
        except (EOFError, OSError):
            self.process.join(_LOOK)  # it is gone, or about to be


class Workers:
    """So many processes of one kind, until a signal says to stop; one that ends before is replaced."""

    def __init__(self, target: Callable[..., None], arguments: Sequence[Any], count: int) -> None:
        self._target, self._arguments = target, arguments
        self._count = count
        self._workers = list[Worker]()

    def run(self, started: Callable[[], object]) -> None:
        """Let them work; `started` is called once all answer.

        Raises:
            Unavailable: one ended before all did.
        """
        with _signals() as told:
            try:
                self._workers = [Worker(self._target, self._arguments) for _ in range(self._count)]
                if self._all_answer(told):
                    started()
                    self._look_after(told)
            finally:
                self._end(told)

    def _all_answer(self, told: Connection) -> bool:
        """Wait until all answer; False where a signal comes first."""
        while not all(worker.answers for worker in self._workers):
            if self._heard(told):
                return False
            if self._gone():
                raise Unavailable("a worker ended before it answered; its lines above say why")
        return True

    def _look_after(self, told: Connection) -> None:
        while not self._heard(told):
            for worker in self._gone():
                logger.warning("a worker ended (exit status %s); another begins", worker.process.exitcode)
                if not worker.answers and wait([told], _LOOK):
                    return
                worker.line.close()
                self._workers[self._workers.index(worker)] = Worker(self._target, self._arguments)

    def _heard(self, told: Connection) -> bool:
        """Wait a while for something to happen; whether it was a signal."""
        ready = wait([told, *(worker.line for worker in self._workers)], _LOOK)
        for worker in self._workers:
            if worker.line in ready:
                worker.heard()
        return told in ready

    def _gone(self) -> list[Worker]:
        return [worker for worker in self._workers if not worker.process.is_alive()]

    def _end(self, told: Connection) -> None:
        """Have all of them end what they are at; a second signal ends them at once."""
        for worker in self._workers:
            worker.line.close()
        while told.poll():
            told.recv_bytes()
        while alive := [worker.process for worker in self._workers if worker.process.is_alive()]:
            if told in wait([told, *(process.sentinel for process in alive)], _LOOK):
                for process in alive:
                    process.kill()
                told.recv_bytes()


@contextmanager
def _signals() -> Iterator[Connection]:
    """Where it is heard that a signal says to stop."""
    heard, tell = multiprocessing.Pipe(duplex=False)
    before = {}
    if threading.current_thread() is threading.main_thread():
        for sign in (signal.SIGINT, signal.SIGTERM):
            before[sign] = signal.signal(sign, lambda *_: tell.send_bytes(b"!"))
    try:
        yield heard
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)
        heard.close()
        tell.close()

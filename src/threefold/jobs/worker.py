"""The background thread of a process: embeds what was recorded, sweeps what expired and what was left over."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from datetime import datetime

from threefold.errors import ThreefoldError
from threefold.jobs.collect import collect_blobs
from threefold.jobs.embed import Pace
from threefold.ports import Blobs, Embedder, Upkeep
from threefold.search.embedding import embed

SWEEP_SECONDS = 600.0
COLLECT_SECONDS = 86400.0
IDLE_SECONDS = 5.0
# What is recorded in quick succession is embedded together: each batch costs two commits, which the writers wait for.
GATHER_SECONDS = 0.1


class Worker:
    """One thread, started with the first `wake`, ended by `stop`. Several processes may each have one.

    `daily` is called once a day in each; what it does must bear being done by several.
    """

    def __init__(
        self,
        upkeep: Upkeep,
        blobs: Blobs,
        embedder: Embedder | None,
        clock: Callable[[], datetime],
        daily: Callable[[], object] = lambda: None,
    ) -> None:
        self._upkeep, self._blobs, self._embedder, self._clock, self._daily = upkeep, blobs, embedder, clock, daily
        self._work = threading.Event()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._swept = float("-inf")
        # Going through all blobs costs: a process that lives shortly leaves it to the others.
        self._collect_at = time.monotonic() + SWEEP_SECONDS
        self._pid = os.getpid()

    def wake(self) -> None:
        """There is something to do; returns at once."""
        with self._lock:
            if self._thread is None and not self._stopping.is_set():
                self._thread = threading.Thread(target=self._run, name="threefold-worker", daemon=True)
                self._thread.start()
        self._work.set()

    def stop(self) -> None:
        """End after the batch at hand; what is left waits in the store. A forked child has no thread to stop."""
        if os.getpid() != self._pid:
            return
        self._stopping.set()
        self._work.set()
        with self._lock:
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._work.wait(IDLE_SECONDS)
            try:
                self._load()
                self._sweep()
                self._stopping.wait(GATHER_SECONDS)
                self._work.clear()
                self._embed()
            except ThreefoldError as error:
                # Noted in the store by the job; the rows wait there, and `doctor` shows why.
                import logging  # seldom needed, and slow to load

                logging.getLogger("threefold").warning("background work: %s", error)
                self._stopping.wait(IDLE_SECONDS)

    def _load(self) -> None:
        """Load a model that takes time, so that searches need not wait for it."""
        if self._embedder is not None and not self._embedder.ready:
            embed(self._embedder, ["."])

    def _sweep(self) -> None:
        if time.monotonic() - self._swept >= SWEEP_SECONDS:
            self._swept = time.monotonic()
            while not self._stopping.is_set() and self._upkeep.expire(self._clock()):
                pass
        if time.monotonic() >= self._collect_at and not self._stopping.is_set():
            self._collect_at = time.monotonic() + COLLECT_SECONDS
            self._daily()
            collect_blobs(self._upkeep, self._blobs, self._clock(), stopping=self._stopping.is_set)

    def _embed(self) -> None:
        pace = Pace()
        while self._embedder is not None and not self._stopping.is_set():
            asked = pace.limit
            done = pace.embed_some(self._upkeep, self._embedder, self._clock)
            if done is None or done.embedded + done.failed < asked:
                return

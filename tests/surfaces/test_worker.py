"""`threefold worker`, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import threefold

ROOT = Path(__file__).parent.parent.parent


def start(store: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("THREEFOLD")}
    environment |= {"PYTHONPATH": str(ROOT / "src"), "THREEFOLD_DB": store, "THREEFOLD_USER": "ann"}
    return subprocess.Popen(
        [sys.executable, "-m", "threefold", "worker", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def record(store: str, text: str, **settings: object) -> None:
    with (
        threefold.open(store, background=False, **settings) as db,
        db.user("ann").turn("trip", started="2026-05-01") as turn,
    ):
        turn.prompt(text, at="2026-05-01T10:00:00Z")


def pending(store: str) -> int:
    with threefold.open(store, background=False) as db:
        return db.state().pending


def test_once_does_what_is_due_and_ends(store: str) -> None:
    record(store, "the ferry to Cacilhas")
    long_ago = datetime.now(UTC) - timedelta(days=3)
    record(store, "over by now", ttl=timedelta(days=1), clock=lambda: long_ago)
    out, err = start(store, "--once", "--json").communicate(timeout=60)
    assert json.loads(out) == {"expired": 1, "collected": 0, "pending": 0, "failed": 0}, err
    with threefold.open(store, background=False) as db:
        assert db.state().counts["turns"] == 1
        assert db.user("ann").conv.search("ferry").mode == "hybrid"
    out, err = start(store, "--once").communicate(timeout=60)
    done = ["0 turns expired, 0 unreferenced files removed", "0 rows wait for a vector, 0 failed"]
    assert out.splitlines() == done, err


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent to the process")
@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_it_embeds_what_others_record_until_it_is_told_to_stop(store: str, sign: signal.Signals) -> None:
    worker = start(store)
    try:
        assert worker.stderr is not None
        line = worker.stderr.readline()
        assert line.startswith("threefold worker: at work with threefold-static"), line + worker.stderr.read()
        record(store, "the ferry to Cacilhas")
        deadline = time.monotonic() + 60
        while pending(store) and time.monotonic() < deadline:
            time.sleep(0.2)
        assert pending(store) == 0
        worker.send_signal(sign)
        out, err = worker.communicate(timeout=60)
    finally:
        worker.kill()
        worker.wait()
    assert (worker.returncode, out) == (0, "")
    assert err == "threefold worker: stopped; what is left waits in the store\n"


def test_without_a_server_it_says_so_and_ends(tmp_path: Path) -> None:
    out, err = start(f"postgresql://ann@/nowhere?host={tmp_path}", "--once").communicate(timeout=60)
    assert out == ""
    assert err.startswith("threefold: store ")
    assert err.count("\n") == 1

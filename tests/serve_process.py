"""`threefold serve` as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

ROOT = Path(__file__).parent.parent
Serving = tuple[subprocess.Popen[str], httpx2.Client]


PROGRAM = ("-m", "threefold")


def start(store: str, *arguments: str, program: tuple[str, ...] = PROGRAM, folder: Path | None = None) -> Any:
    """Start the program on a store, as ann, in a folder."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("THREEFOLD", "OTEL"))}
    environment |= {"PYTHONPATH": str(ROOT / "src"), "THREEFOLD_DB": store, "THREEFOLD_USER": "ann"}
    return subprocess.Popen(
        [sys.executable, *program, "--embedder", "none", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        cwd=folder,
    )


@contextmanager
def serving(store: str, *arguments: str, **more: Any) -> Iterator[Serving]:
    """A server on a free port, and a client of it; the server is killed at the end, if it did not end before."""
    process = start(store, "serve", "--json", "--port", "0", *arguments, **more)
    try:
        line = process.stdout.readline()
        if not line:
            raise AssertionError(process.communicate()[1])
        with httpx2.Client(base_url=json.loads(line)["url"], timeout=60) as http:
            yield process, http
    finally:
        for each in children(process.pid):
            os.kill(each, signal.SIGKILL)
        process.kill()
        process.communicate()


def children(process: int) -> list[int]:
    """The processes that a process began, where the system tells of them (Linux)."""
    found = []
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            after = each.read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        if int(after[1]) == process:
            found.append(int(each.parent.name))
    return found


def workers(process: int) -> list[int]:
    """Those of them that answer requests."""
    return [each for each in children(process) if "spawn_main" in command_of(each)]


def command_of(process: int) -> str:
    """What a process was begun with."""
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""

"""Work in the background as a process of its own: embed what was recorded, remove what expired."""

from __future__ import annotations

import argparse
import sys
import threading
from typing import Any

from threefold.surfaces.cli.context import Context, counted, visible
from threefold.surfaces.cli.histories import embed_with_bar

# A wait without an end cannot be interrupted on every system.
_LOOK_SECONDS = 1.0


def add_commands(commands: Any) -> None:
    """Add this file's commands."""
    command = commands.add_parser("worker", help="embed what is recorded and sweep what expires, until it is stopped")
    command.add_argument("--once", action="store_true", help="do what is due and end")
    command.set_defaults(run=worker)


def worker(context: Context, options: argparse.Namespace) -> int:
    """Do what is due, once or until a signal says to stop. Several workers may share a store."""
    if options.once:
        return _once(context)
    import signal  # the other commands need not wait for it

    stop = threading.Event()
    before = {sign: signal.signal(sign, lambda *_: stop.set()) for sign in (signal.SIGINT, signal.SIGTERM)}
    try:
        with context.open(make=True, background=True) as db:
            model = "no embedder" if db.embedder is None else db.embedder.name
            print(
                f"threefold worker: at work with {visible(model)}; SIGTERM or SIGINT stops it",
                file=sys.stderr,
                flush=True,
            )
            while not stop.wait(_LOOK_SECONDS):
                pass
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)
    print("threefold worker: stopped; what is left waits in the store", file=sys.stderr)
    return 0


def _once(context: Context) -> int:
    with context.open(make=True) as db:
        expired, collected = db.expire(), db.collect_blobs()
        embed_with_bar(db)
        state = db.state()
    if context.json:
        context.emit({"expired": expired, "collected": collected, "pending": state.pending, "failed": state.failed})
    else:
        print(f"{counted(expired, 'turns')} expired, {counted(collected, 'unreferenced files')} removed")
        print(f"{counted(state.pending, 'rows wait', 'row waits')} for a vector, {state.failed} failed")
        if state.last_failure:
            print(f"last failure: {visible(state.last_failure)}")
    return 1 if state.failed else 0

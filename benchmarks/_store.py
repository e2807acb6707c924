"""What every benchmark does with a store: open it with an embedder by name, record histories, embed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any

from tqdm import tqdm

import threefold
from threefold.model.turn import Turn
from threefold.ports import Embedder

_GROUP = 100


def embedder(name: str) -> Embedder | str | None:
    """`bundled`, `none`, or `module:factory` for one of your own."""
    if name == "none":
        return None
    module, colon, factory = name.partition(":")
    if not colon:
        return name
    made: Embedder = getattr(importlib.import_module(module), factory)()
    return made


def open_store(path: str, model: str, durable: bool = False) -> threefold.Threefold:
    """A store for measuring: nothing expires, no thread runs beside; not durable unless that is what is measured."""
    return threefold.open(path, embedder=embedder(model), ttl=None, durable=durable, background=False)


def progress(*values: Any, **options: Any) -> tqdm[Any]:
    """A progress bar on standard error; where that is no terminal, a line now and then."""
    return tqdm(*values, mininterval=0.1 if sys.stderr.isatty() else 10.0, **options)


def record(db: threefold.Threefold, user: str, turns: Sequence[Turn], bar: tqdm[Any]) -> None:
    """Record a user's history, some turns to a transaction, unless all of it is there already."""
    handle = db.user(user)
    if _recorded(handle) == len(turns):
        bar.update(len(turns))
        return
    for start in range(0, len(turns), _GROUP):
        group = turns[start : start + _GROUP]
        handle.conv.record_all(group)
        bar.update(len(group))


def _recorded(handle: threefold.Handle) -> int:
    """How many turns the user has."""
    turns, page = 0, handle.conv.conversations(limit=1000)
    while page:
        turns += sum(conversation.turns for conversation in page)
        page = handle.conv.conversations(limit=1000, after=page[-1])
    return turns


def embed(db: threefold.Threefold) -> None:
    """Embed what waits, with a progress bar."""
    waiting = db.state().pending if db.embedder is not None else 0
    if waiting:
        with progress(total=waiting, desc="embedding", unit="row") as bar:
            done = db.embed_pending(on_progress=bar.update)
        if done.failed:
            raise SystemExit(f"{done.failed} rows could not be embedded: {done.why}")

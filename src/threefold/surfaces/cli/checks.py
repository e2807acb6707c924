"""What `doctor` looks at: the program, the machine, the store."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import threefold
from threefold.backends.opening import migrate_store
from threefold.errors import ThreefoldError
from threefold.search.embedding import embed
from threefold.surfaces.cli.context import Context, counted, one_line

_LIBRARIES = ("apsw", "numpy", "PyStemmer", "rapidfuzz", "tqdm")
_LOW_SPACE = 200 * 2**20


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report."""

    what: str
    says: str
    problem: bool = False


def examine(context: Context) -> list[Finding]:
    """Everything there is to say about the program and the store; never makes a store."""
    return [*_program(), *_embedder(context), *_chat(context), *_folder(context), *_store(context)]


def _program() -> Iterator[Finding]:
    python = f"Python {platform.python_version()}, {platform.platform()}"
    yield Finding("program", f"threefold {threefold.__version__} on {python}")
    versions = []
    for name in _LIBRARIES:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            yield Finding("library", f"{name} is not installed: pip install {name}", problem=True)
    yield Finding("libraries", ", ".join(versions))


def _embedder(context: Context) -> Iterator[Finding]:
    """Its name, and whether it answers now; the time says whether a search can wait for it."""
    try:
        with threefold.open(":memory:", background=False, **context.embedder) as db:
            if db.embedder is None:
                yield Finding("embedder", "none: search goes by words alone")
                return
            embed(db.embedder, ["load"])
            began = time.perf_counter()
            embed(db.embedder, ["a small test"])
            took = 1000 * (time.perf_counter() - began)
            place = getattr(db.embedder, "place", None)
            where = "works offline" if place is None else f"at {place}"
            says = f"{db.embedder.name}, {db.embedder.dimensions} dimensions, {where}, {took:.1f} ms a question"
            yield Finding("embedder", says)
    except (ThreefoldError, OSError) as error:
        yield Finding("embedder", f"does not work, search goes by words alone: {error}", problem=True)


def _chat(context: Context) -> Iterator[Finding]:
    """Whether the chat model can be reached, where there is one; it is looked for, not talked to, which may cost."""
    if "chat" not in context.chat:
        return
    import asyncio  # takes a while to load, as the models do

    from threefold.models.talking import HttpModel

    try:
        with threefold.open(":memory:", background=False, embedder=None, **context.chat) as db:
            if isinstance(db.chat, HttpModel):
                has = asyncio.run(db.chat.models())
                yield Finding("chat model", f"{db.chat.name} at {db.chat.place}, {_listed(db.chat.name, has)}")
    except (ThreefoldError, OSError) as error:
        yield Finding("chat model", f"does not work, what needs none goes on: {error}", problem=True)


def _listed(name: str, has: tuple[str, ...] | None) -> str:
    # A tag or a date may follow the name; and some servers answer with what they have, whatever name is asked for.
    if has is None:
        return "which answers"
    if any(each.startswith(name) for each in has):
        return "which answers and has it"
    return f"which answers and does not list it, but {one_line(', '.join(has) or 'none', 200)}"


def _folder(context: Context) -> Iterator[Finding]:
    if "://" in context.store:
        return
    folder = Path(context.store).expanduser()
    if not context.store_exists():
        yield Finding("store", f"none at {folder} yet; `threefold import PATH` makes one, --db STORE names another")
        return
    if not os.access(folder, os.W_OK):
        says = f"{folder} is read-only for you: change its rights, or name another with --db"
        yield Finding("store", says, problem=True)
    free = shutil.disk_usage(folder).free
    low = free < _LOW_SPACE
    yield Finding("disk", f"{free / 2**30:.1f} GiB free at {folder}" + ("; make room" if low else ""), problem=low)


def _store(context: Context) -> Iterator[Finding]:
    if not context.store_exists():
        return
    try:
        schema = migrate_store(context.store, dry_run=True)
        waiting = ", ".join(map(str, schema.migrations))
        yield Finding(
            "schema", f"{schema.number}" + (f", {waiting} to be applied: `threefold migrate`" if waiting else "")
        )
        with context.open() as db:
            yield from _contents(db)
            yield from _languages(db)
    except ThreefoldError as error:
        yield Finding("store", str(error), problem=True)


def _contents(db: threefold.Threefold) -> Iterator[Finding]:
    state = db.state(check=True)
    yield Finding("record", ", ".join(counted(count, name) for name, count in state.counts.items()))
    named = db.embedder.name if db.embedder else None
    if state.embedder is not None and state.embedder != named:
        yield Finding(
            "vectors",
            f"made by {state.embedder!r}, this program has {named!r}: name that one with --embedder, or run "
            f"`threefold reembed --embedder` with the new one",
            problem=True,
        )
    elif state.failed:
        says = f"{counted(state.failed, 'rows')} failed, last: {state.last_failure}; run `threefold reembed`"
        yield Finding("vectors", says, problem=True)
    elif state.pending:
        waiting = counted(state.pending, "rows wait", "row waits")
        yield Finding("vectors", f"{waiting} (lexical search finds what waits); run `threefold reembed`")
    else:
        yield Finding("vectors", "every row has one")
    for problem in state.problems:
        yield Finding("store", problem, problem=True)
    yield Finding("files", f"kept in {db.blobs_place}")
    loose = db.unreferenced_blobs()
    if loose:
        yield Finding(
            "files", f"{loose} that no turn refers to, of killed writers; remove with `threefold doctor --repair`"
        )
    missing = db.missing_blobs()
    if missing:
        says = (
            f"{counted(len(missing), 'files are', 'file is')} missing or damaged, first {missing[0]}; restore an export"
        )
        yield Finding("blobs", says, problem=True)
    else:
        yield Finding("blobs", "every file that a turn refers to is there and whole")


def _languages(db: threefold.Threefold) -> Iterator[Finding]:
    """Whether the embedder knows the scripts of what was recorded; a server's does not tell, and may cost."""
    if db.embedder is None or hasattr(db.embedder, "place"):
        return
    known, looked = db.embedder_knows()
    if not looked:
        return
    texts = counted(looked, "texts")
    if 2 * known < looked:
        says = (
            f"{db.embedder.name!r} does not know the script of {looked - known} of {texts} looked at: search "
            "goes by their words alone; --embedder multilingual or a server's model may know it"
        )
        yield Finding("languages", says, problem=True)
    else:
        yield Finding("languages", f"the embedder knows {known} of {texts} looked at")

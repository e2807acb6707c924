"""Taking in files and folders as documents: ingest."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import threefold
from threefold.errors import Conflict, InvalidInput, NotFound, Unavailable
from threefold.model.document import STRATEGIES
from threefold.realms.doc import Doc
from threefold.realms.doc.folders import IngestedFolder, SkippedFile
from threefold.surfaces.cli.context import Context, visible, warn
from threefold.surfaces.cli.histories import bar, embed_with_bar

_SHOWN = 10


def add_commands(commands: Any) -> None:
    """Add this file's command."""
    command = commands.add_parser(
        "ingest",
        help="take in files and folders as documents; what did not change stays as it is",
        description="Text, Markdown, office files and books; HTML and PDF with pip install 'threefold[documents]'.",
    )
    command.add_argument("paths", nargs="+", metavar="PATH", help="a file or a folder; - is standard input")
    command.add_argument("--source", help="what they are called: of a folder what the files' names are put behind")
    command.add_argument("--title", help="of a single file (default: what it says)")
    command.add_argument(
        "--meta", action="append", default=[], metavar="KEY=VALUE", help="JSON or text; may be repeated"
    )
    command.add_argument("--strategy", choices=STRATEGIES, default="recursive", help="default: recursive")
    command.add_argument("--chunk-tokens", type=int, default=512, metavar="N", help="the longest chunk (default: 512)")
    command.add_argument("--overlap", type=int, default=50, metavar="N", help="tokens given twice (default: 50)")
    command.add_argument("--prune", action="store_true", help="remove documents whose files are gone from the folder")
    command.add_argument("--watch", action="store_true", help="take in what changes in a folder until it is stopped")
    add_shared(command)
    command.set_defaults(run=ingest)


def add_shared(command: argparse.ArgumentParser) -> None:
    """The option that says whose documents are meant."""
    command.add_argument(
        "--shared", choices=("organization", "everyone"), help="those of the whole tenant, or of everyone (operators)"
    )


def doc_of(context: Context, db: threefold.Threefold, options: argparse.Namespace) -> Doc:
    """The documents that are meant."""
    if options.shared == "organization":
        return db.organization(context.tenant).doc
    return db.everyone().doc if options.shared == "everyone" else context.handle(db).doc


def ingest(context: Context, options: argparse.Namespace) -> int:
    """Take in, then embed what is new."""
    settings = {
        "metadata": _metadata(options.meta), "strategy": options.strategy, "chunk_tokens": options.chunk_tokens,
        "overlap": options.overlap,
    }  # fmt: skip
    folders = [path for path in options.paths if path != "-" and Path(path).is_dir()]
    if options.watch and (len(folders) != 1 or len(options.paths) != 1):
        raise InvalidInput("--watch takes one folder")
    if len(options.paths) > 1 and (options.title or (options.source and not folders)):
        raise InvalidInput("--source and --title are of a single PATH")
    with context.open(make=True) as db:
        doc = doc_of(context, db, options)
        if options.watch:
            return _watch(context, db, doc, options, settings)
        done = [
            _folder(doc, path, options, settings) if path in folders else _file(doc, path, options, settings)
            for path in options.paths
        ]
        embed_with_bar(db)
    return _say(context, _together(done))


def _metadata(given: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in given:
        key, sign, value = each.partition("=")
        if not sign or not key:
            raise InvalidInput(f"--meta {each!r}: write KEY=VALUE")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found


def _folder(doc: Doc, path: str, options: argparse.Namespace, settings: dict[str, Any]) -> IngestedFolder:
    with bar(None, "ingesting", "files") as progress:

        def on_progress(done: int, total: int) -> None:
            progress.total = total
            progress.update(done - progress.n)

        return doc.ingest_folder(path, **settings, prune=options.prune, source=options.source, on_progress=on_progress)


def _file(doc: Doc, path: str, options: argparse.Namespace, settings: dict[str, Any]) -> IngestedFolder:
    content: bytes | Path = sys.stdin.buffer.read() if path == "-" else Path(path)
    try:
        done = doc.ingest(content, source=options.source, title=options.title, **settings)
    except (Conflict, InvalidInput, NotFound, Unavailable) as error:
        if len(options.paths) == 1:
            raise
        return IngestedFolder(skipped=(SkippedFile(path, str(error)),))
    warnings = tuple(f"{done.source}: {warning}" for warning in done.warnings)
    created, replaced, unchanged = (int(done.outcome == each) for each in ("created", "replaced", "unchanged"))
    return IngestedFolder(created, replaced, unchanged, warnings=warnings)


def _together(done: Sequence[IngestedFolder]) -> IngestedFolder:
    counts = Counter[str]()
    for each in done:
        counts.update(created=each.created, replaced=each.replaced, unchanged=each.unchanged, removed=each.removed)
    skipped = tuple(one for each in done for one in each.skipped)
    return IngestedFolder(**counts, skipped=skipped, warnings=tuple(one for each in done for one in each.warnings))


def _say(context: Context, done: IngestedFolder) -> int:
    if context.json:
        context.emit(done.as_json())
        return 0
    print(f"{done.created} new, {done.replaced} replaced, {done.unchanged} unchanged, {done.removed} removed, "
          f"{len(done.skipped)} skipped")  # fmt: skip
    told = [f"{each.where}: {each.why}" for each in done.skipped]
    for what in [*done.warnings, *told[:_SHOWN]]:
        print(f"  {visible(what)}")
    if len(told) > _SHOWN:
        print(f"  … and {len(told) - _SHOWN} more; --json lists them all")
    return 0


def _watch(
    context: Context, db: threefold.Threefold, doc: Doc, options: argparse.Namespace, settings: dict[str, Any]
) -> int:
    import signal  # the other commands need not wait for it

    stop = threading.Event()
    before = {sign: signal.signal(sign, lambda *_: stop.set()) for sign in (signal.SIGINT, signal.SIGTERM)}

    def on_change(done: IngestedFolder) -> None:
        embed_with_bar(db)
        _say(context, done)
        sys.stdout.flush()

    try:
        warn(f"watching {options.paths[0]}; SIGTERM or SIGINT stops it")
        doc.watch_folder(
            options.paths[0], **settings, prune=options.prune, source=options.source, stop=stop.is_set,
            on_change=on_change,
        )  # fmt: skip
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)
    return 0

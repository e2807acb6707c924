"""Documents: ingest, docs."""

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
from threefold.errors import InvalidInput, NotFound, Unavailable
from threefold.model.document import STRATEGIES, Document
from threefold.realms.doc import Doc
from threefold.realms.doc.folders import IngestedFolder, SkippedFile
from threefold.realms.doc.retrieving import Retrieved
from threefold.surfaces.cli.context import Context, bold, dim, one_line, visible
from threefold.surfaces.cli.histories import bar, embed_with_bar

_SHOWN = 10
_SIZE = 300


def add_commands(commands: Any) -> None:
    """Add this file's commands."""
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
    _add_shared(command)
    command.set_defaults(run=ingest)
    command = commands.add_parser("docs", help="documents that were taken in")
    _add_acts(command.add_subparsers(title="acts", metavar="ACT", required=True))


def _add_acts(acts: Any) -> None:
    act = acts.add_parser("list", help="documents, those last changed first")
    act.add_argument("--limit", type=int, default=20, help="how many (default: 20)")
    act.set_defaults(run=list_)
    act = acts.add_parser("search", help="chunks that answer a question")
    act.add_argument("query", nargs="+", help="a question or words, in any language")
    act.add_argument("--limit", type=int, default=5, help="how many (default: 5)")
    act.add_argument("--filter", metavar="JSON", help='such as {"year": {"gte": 2020}}')
    act.add_argument("--source", action="append", help="only this source; may be repeated")
    act.add_argument("--context", action="store_true", help="one quoted text for a prompt")
    act.add_argument("--max-tokens", type=int, metavar="N", help="with --context: at most so many tokens")
    act.add_argument("--explain", action="store_true", help="show how each score came about (with --json)")
    act.set_defaults(run=search)
    for name, about, run in (
        ("show", "a document with its chunks", show),
        ("remove", "remove it from every file of the store", remove),
    ):
        act = acts.add_parser(name, help=about)
        act.add_argument("document", help="its id or source")
        act.set_defaults(run=run)
        if name == "show":
            act.add_argument("--text", action="store_true", help="its text, whole")
        else:
            _add_shared(act)
    act = acts.add_parser("stats", help="how much there is")
    act.set_defaults(run=stats)
    _add_shared(act)
    act = acts.add_parser("clear", help="remove all documents, and nothing else")
    act.add_argument("--yes", action="store_true", help="do not ask")
    act.set_defaults(run=clear)
    _add_shared(act)


def _add_shared(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--shared", choices=("organization", "everyone"), help="those of the whole tenant, or of everyone (operators)"
    )


def _doc(context: Context, db: threefold.Threefold, options: argparse.Namespace) -> Doc:
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
        doc = _doc(context, db, options)
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
    except (InvalidInput, NotFound, Unavailable) as error:
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
        print(f"threefold: watching {options.paths[0]}; SIGTERM or SIGINT stops it", file=sys.stderr, flush=True)
        doc.watch_folder(
            options.paths[0], **settings, prune=options.prune, source=options.source, stop=stop.is_set,
            on_change=on_change,
        )  # fmt: skip
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)
    return 0


def list_(context: Context, options: argparse.Namespace) -> int:
    """Print documents."""
    with context.open() as db:
        found = context.handle(db).doc.list(options.limit, shared=True)
    if context.json:
        context.emit({"documents": [each.as_json() for each in found]})
        return 0
    for each in found:
        _print_document(each)
    if not found:
        print("no documents")
    elif len(found) == options.limit:
        print(dim(f"the first {options.limit}; --limit shows more"))
    return 0


def _print_document(each: Document) -> None:
    size = f"{each.chunks} chunks, {each.tokens:,} tokens"
    print(f"{each.updated:%Y-%m-%d %H:%M}  {bold(one_line(each.title, 60))}  {dim(size)}")
    print(f"  {one_line(each.source, 200)}\n  {dim(each.ref)}")


def show(context: Context, options: argparse.Namespace) -> int:
    """Print a document."""
    with context.open() as db:
        doc = context.handle(db).doc
        document = doc.get(options.document)
        if options.text:
            text = doc.text(document.id)
            if context.json:
                context.emit({**document.as_json(), "text": text})
            else:
                print(visible(text))
            return 0
        chunks = doc.chunks(document.id)
    if context.json:
        context.emit({**document.as_json(), "passages": [each.as_json() for each in chunks]})
        return 0
    _print_document(document)
    if document.metadata:
        print(f"  {one_line(json.dumps(document.metadata, ensure_ascii=False), 200)}")
    for each in chunks:
        where = " › ".join(each.headings) + (f" (page {each.page})" if each.page else "")
        print(f"{each.number + 1:>5}  {one_line(where, 60)}  {dim(each.ref)}\n       {one_line(each.text, 100)}")
    return 0


def search(context: Context, options: argparse.Namespace) -> int:
    """Print chunks, or one text for a prompt."""
    asked = {"limit": options.limit, "filter": _filter(options.filter), "source": options.source}
    query = " ".join(options.query)
    with context.open() as db:
        doc = context.handle(db).doc
        if options.context:
            said = doc.get_context(query, max_tokens=options.max_tokens, **asked)
            if context.json:
                context.emit({"context": said})
            else:
                print(visible(said))
            return 0
        found = doc.retrieve(query, explain=options.explain, **asked)
    if context.json:
        context.emit(found.as_json())
    else:
        _print_hits(found)
    return 0


def _filter(given: str | None) -> Any:
    if given is None:
        return None
    try:
        return json.loads(given)
    except ValueError as error:
        raise InvalidInput(f"--filter is no JSON: {error}") from None


def _print_hits(found: Retrieved) -> None:
    for warning in found.warnings:
        print(f"threefold: {warning}", file=sys.stderr)
    for number, hit in enumerate(found, 1):
        where = " › ".join(hit.headings) + (f" (page {hit.page})" if hit.page else "")
        score = dim(f"score {hit.score:.3f}")
        print(f"{number}. {bold(one_line(hit.title, 60))}  {one_line(where, 80)}  {score}")
        print(f"   {one_line(hit.text, _SIZE)}")
        if hit.matches:
            print(f"   {dim('matched: ' + ', '.join(dict.fromkeys(map(visible, hit.matched))))}")
        print(f"   {dim(hit.ref)}")
    if not found:
        print("nothing found")


def stats(context: Context, options: argparse.Namespace) -> int:
    """Print how much there is."""
    with context.open() as db:
        found = _doc(context, db, options).stats()
    if context.json:
        context.emit(found.as_json())
        return 0
    print(f"{found.documents} documents, {found.chunks} chunks, {found.tokens:,} tokens")
    for mime, count in found.mimes.items():
        print(f"  {visible(mime)}: {count}")
    return 0


def remove(context: Context, options: argparse.Namespace) -> int:
    """Remove a document."""
    with context.open() as db:
        return _receipt(context, _doc(context, db, options).remove(options.document))


def clear(context: Context, options: argparse.Namespace) -> int:
    """Remove all documents."""
    with context.open() as db:
        doc = _doc(context, db, options)
        if not options.yes:
            raise InvalidInput(f"this removes {doc.stats().documents} documents for good; add --yes")
        return _receipt(context, doc.clear())


def _receipt(context: Context, done: Any) -> int:
    if context.json:
        context.emit(done.as_json())
        return 0
    told = ", ".join(f"{count} {store}" for store, count in done.stores.items() if count)
    print(f"removed: {told or 'nothing'}")
    for left in done.leftovers:
        print(f"left over: {left}")
    return 0

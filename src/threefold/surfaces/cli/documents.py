"""Documents that were taken in: docs."""

from __future__ import annotations

import argparse
import json
from typing import Any

from threefold.errors import InvalidInput
from threefold.model.document import Document
from threefold.realms.doc.retrieving import Retrieved
from threefold.surfaces.cli.context import Context, bold, counted, dim, one_line, visible, warn
from threefold.surfaces.cli.ingesting import add_shared, doc_of

_SIZE = 300


def add_commands(commands: Any) -> None:
    """Add this file's command."""
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
            add_shared(act)
    act = acts.add_parser("stats", help="how much there is")
    act.set_defaults(run=stats)
    add_shared(act)
    act = acts.add_parser("clear", help="remove all documents, and nothing else")
    act.add_argument("--yes", action="store_true", help="do not ask")
    act.set_defaults(run=clear)
    add_shared(act)


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
    size = f"{counted(each.chunks, 'chunks')}, {each.tokens:,} tokens"
    print(f"{each.updated:%Y-%m-%d %H:%M}  {bold(one_line(each.title, 60))}  {dim(size)}")
    print(f"  {one_line(each.source, 200)}\n  {dim(visible(each.ref))}")


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
        print(f"{each.number + 1:>5}  {one_line(where, 60)}  {dim(visible(each.ref))}")
        print(f"       {one_line(each.text, 100)}")
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
        warn(warning)
    for number, hit in enumerate(found, 1):
        where = " › ".join(hit.headings) + (f" (page {hit.page})" if hit.page else "")
        score = dim(f"score {hit.score:.3f}")
        print(f"{number}. {bold(one_line(hit.title, 60))}  {one_line(where, 80)}  {score}")
        print(f"   {one_line(hit.text, _SIZE)}")
        if hit.matches:
            print(f"   {dim('matched: ' + ', '.join(dict.fromkeys(map(visible, hit.matched))))}")
        print(f"   {dim(visible(hit.ref))}")
    if not found:
        print("nothing found")


def stats(context: Context, options: argparse.Namespace) -> int:
    """Print how much there is."""
    with context.open() as db:
        found = doc_of(context, db, options).stats()
    if context.json:
        context.emit(found.as_json())
        return 0
    whole = f"{counted(found.documents, 'documents')}, {counted(found.chunks, 'chunks')}"
    print(f"{whole}, {found.tokens:,} tokens")
    for mime, count in found.mimes.items():
        print(f"  {visible(mime)}: {count}")
    return 0


def remove(context: Context, options: argparse.Namespace) -> int:
    """Remove a document."""
    with context.open() as db:
        return _receipt(context, doc_of(context, db, options).remove(options.document))


def clear(context: Context, options: argparse.Namespace) -> int:
    """Remove all documents."""
    with context.open() as db:
        doc = doc_of(context, db, options)
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
        print(f"left over: {visible(left)}")
    return 0

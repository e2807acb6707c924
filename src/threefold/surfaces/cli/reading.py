"""Reading: search, log, show."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from threefold.errors import NotFound
from threefold.model.kinds import ROLES
from threefold.model.times import iso
from threefold.realms.conv.hits import Hit, Results
from threefold.realms.conv.refs import turn_ref
from threefold.surfaces.cli.context import Context, bold, counted, dim, one_line, visible, warn

if TYPE_CHECKING:
    from threefold.model.record import CatalogEntry, Conversation
    from threefold.realms.conv.view import TurnView


def add_commands(commands: Any) -> None:
    """Add this file's commands."""
    command = commands.add_parser("search", help="find turns by what was said")
    command.add_argument("query", nargs="+", help="a question or words, in any language")
    command.add_argument("--role", action="append", choices=ROLES, help="only this role; may be repeated")
    command.add_argument("--conversation", help="only this conversation")
    command.add_argument("--agent", help="only what this agent recorded")
    command.add_argument("--since", metavar="TIME", help="not before, such as 2026-01-31 or 2026-01-31T08:00")
    command.add_argument("--until", metavar="TIME", help="before")
    command.add_argument("--limit", type=int, default=5, help="how many (default: 5)")
    command.add_argument("--offset", type=int, default=0, help="how many of the best to leave out: the next page")
    command.add_argument("--group", choices=("turn", "conversation"), default="turn", help="one hit for each")
    command.add_argument("--explain", action="store_true", help="show how each score came about")
    command.set_defaults(run=search)
    command = commands.add_parser("log", help="conversations, or the turns of one")
    command.add_argument("conversation", nargs="?", help="list the turns of this one")
    command.add_argument("--since", metavar="TIME", help="turns that started not before")
    command.add_argument("--until", metavar="TIME", help="turns that started before")
    command.add_argument("--ordinal", type=int, help="only the n-th turn; -1 is the last")
    command.add_argument("--limit", type=int, default=20, help="how many (default: 20)")
    command.set_defaults(run=log)
    command = commands.add_parser("show", help="any object by its reference: a turn, a message, a file's bytes")
    command.add_argument("ref", help="a reference, as search and log print them")
    command.add_argument("--conversation", help="the conversation, for short references")
    shape = command.add_mutually_exclusive_group()
    shape.add_argument("--raw", action="store_true", help="the exact bytes on standard output")
    shape.add_argument(
        "--link", action="store_true", help="a URL of the file's bytes, good for an hour (blobs in s3://)"
    )
    command.set_defaults(run=show)


def search(context: Context, options: argparse.Namespace) -> int:
    """Print hits with the words that matched."""
    with context.open() as db:
        began = time.perf_counter()
        found = context.handle(db).conv.search(
            " ".join(options.query),
            roles=options.role,
            conversation=options.conversation,
            agent=options.agent,
            since=options.since,
            until=options.until,
            limit=options.limit,
            offset=options.offset,
            group=options.group,
            explain=options.explain,
        )
        took = (time.perf_counter() - began) * 1000
    if context.json:
        hits = [hit.as_json() for hit in found]
        corrections = {word: [term for term, _ in variants] for word, variants in (found.corrections or {}).items()}
        said = {"warnings": list(found.warnings), "corrections": corrections}
        context.emit({"hits": hits, "mode": found.mode, "took_ms": round(took, 2), **said})
        return 0
    for warning in found.warnings:
        warn(warning)
    _print_corrections(found)
    for number, hit in enumerate(found, 1):
        print_hit(number, hit)
        if options.explain:
            print(dim(f"   {_explained(hit)}"))
    if not found:
        print("nothing found")
    return 0


def _print_corrections(found: Results) -> None:
    for word, variants in (found.corrections or {}).items():
        print(dim(f"never said: {word!r}; searched for {', '.join(visible(term) for term, _ in variants)}"))


def print_hit(number: int, hit: Hit) -> None:
    """A hit on three lines: when, where and who; the words; the reference."""
    who = f"{hit.role} ({hit.author})" if hit.author else hit.role
    where, score = bold(visible(hit.conversation)), dim(f"score {hit.score:.3f}")
    print(f"{number}. {hit.at:%Y-%m-%d %H:%M}  {where}  {visible(who)}  {score}")
    print(f"   {' '.join(_marked(hit).split())}")
    if hit.matches:
        print(f"   {dim('matched: ' + ', '.join(dict.fromkeys(map(visible, hit.matched))))}")
    print(f"   {dim(visible(hit.ref))}")


def _marked(hit: Hit) -> str:
    parts, end = [], 0
    for first, last in hit.matches:
        parts += [visible(hit.text[end:first]), bold(visible(hit.text[first:last]))]
        end = last
    return "".join([*parts, visible(hit.text[end:])])


def _explained(hit: Hit) -> str:
    steps = hit.explain or {}
    lists = [f"{name} rank {entry['rank']} ({entry['score']:.3f})" for name, entry in steps["lists"].items()]
    lists.append(f"fused {steps['fused']:.4f}")
    if steps["learned"] is not None:
        lists.append(f"learned {steps['learned']:.3f}")
    return ", ".join([*lists, f"recency ×{steps['recency_lift']:.3f}"])


def log(context: Context, options: argparse.Namespace) -> int:
    """Print conversations, or the turns of one."""
    with context.open() as db:
        conv = context.handle(db).conv
        if options.conversation is None and not (options.since or options.until or options.ordinal):
            return _log_conversations(context, conv.conversations(options.limit), options.limit)
        turns = conv.turns(options.conversation, options.ordinal, options.since, options.until, limit=options.limit)
    narrowed = options.since or options.until or options.ordinal
    if not turns and options.conversation is not None and not narrowed:
        raise NotFound(f"conversation {options.conversation!r} is not recorded for user {context.user!r}")
    if context.json:
        context.emit({"turns": [_turn_to_json(turn) for turn in turns]})
        return 0
    for turn in turns:
        print(f"{turn.ordinal:>4}  {turn.started:%Y-%m-%d %H:%M}  {turn.status:<9}  {one_line(turn.about, 80)}")
        print(f"      {dim(visible(turn_ref(turn.conversation, turn.turn)))}")
    if not turns:
        print("no turns")
    elif len(turns) == options.limit:
        print(dim(f"the first {options.limit}; --limit shows more"))
    return 0


def _log_conversations(context: Context, found: tuple[Conversation, ...], limit: int) -> int:
    if context.json:
        context.emit(
            {
                "conversations": [
                    {
                        "id": c.id,
                        "title": c.title,
                        "started": iso(c.started),
                        "last_activity": iso(c.last_activity),
                        "turns": c.turns,
                        "app": c.app,
                    }
                    for c in found
                ]
            }
        )
        return 0
    for c in found:
        count = f"{c.turns:>5} {'turn ' if c.turns == 1 else 'turns'}"
        print(f"{c.last_activity:%Y-%m-%d %H:%M}  {count}  {one_line(c.title, 60)}")
        print(dim(f"                  {visible(c.id)}"))
    if not found:
        print("no conversations")
    elif len(found) == limit:
        print(dim(f"the first {limit}; --limit shows more"))
    return 0


def _turn_to_json(turn: CatalogEntry) -> dict[str, Any]:
    return {
        "ref": turn_ref(turn.conversation, turn.turn),
        "conversation": turn.conversation,
        "turn": turn.turn,
        "ordinal": turn.ordinal,
        "started": iso(turn.started),
        "ended": iso(turn.ended),
        "status": turn.status,
        "state": turn.state,
        "about": turn.about,
        "agent": turn.agent,
        "app": turn.app,
    }


def show(context: Context, options: argparse.Namespace) -> int:
    """Print the object behind a reference."""
    with context.open() as db:
        handle = context.handle(db)
        if options.raw:
            sys.stdout.flush()
            sys.stdout.buffer.write(handle.read(options.ref, options.conversation))
            return 0
        if options.link:
            url = handle.link(options.ref, options.conversation)
            if context.json:
                context.emit({"url": url})
            else:
                print(visible(url))
            return 0
        found = handle.resolve(options.ref, options.conversation)
        if context.json:
            context.emit(found.as_json())
        elif found.kind == "turn" and found.ref.startswith("conv:"):
            from threefold.realms.conv.view import materialise

            print_turn(materialise(handle.conv.stored(handle.conv.parse(options.ref, options.conversation))))
        elif found.file is not None:
            file = found.file
            mime = visible(file.mime or "unknown type")
            print(f"{visible(str(found.ref))}\n{counted(file.size, 'bytes')}, {mime}, SHA-256 {file.digest}")
            print("the exact bytes: add --raw")
        elif found.content is not None:
            print(f"{visible(found.ref)}\n{one_line(found.title or found.kind, 200)}")
            print(f"{counted(len(found.content), 'bytes')}; the exact bytes: add --raw")
        else:
            print(visible(found.as_bytes().decode()))
    return 0


def print_turn(view: TurnView) -> None:
    """A materialised turn as a person would read it."""
    where = f"{visible(view.conversation)}, turn {view.ordinal} ({view.status})"
    print(bold(f"{where}  {view.started:%Y-%m-%d %H:%M}"))
    for message in view.messages:
        who = f"{bold(visible(message.author or message.role))} ({visible(message.kind)})"
        print(f"{dim(f'[{message.at:%H:%M:%S}]')} {who}: {visible(message.text)}")
    for title, cards in (("attached", view.attachments), ("published", view.files)):
        for card in cards:
            print(f"  {title}: {visible(card.name)} ({counted(card.size, 'bytes')})  {dim(visible(card.ref))}")
    for step in view.steps:
        arguments, result = (one_line(str(value or ""), 60) for value in (step.arguments, step.result))
        print(f"  step: {one_line(step.name, 40)} ({step.status}) {arguments} → {result}  {dim(visible(step.ref))}")
    for source in view.citations:
        print(f"  source: {one_line(source.get('title') or source['url'], 80)}  {dim(visible(source['ref']))}")
    for note in view.notes:
        print(f"  note: {one_line(note['text'], 100)}  {dim(visible(note['ref']))}")
    if view.summary:
        print(f"  summary: {one_line(view.summary['text'], 200)}  {dim(visible(view.summary['ref']))}")
    for given in view.feedback:
        print(f"  feedback ({given.origin}): {visible(given.reaction)} {one_line(given.text or '', 100)}")
    if view.error:
        print(f"  error: {one_line(view.error, 200)}")
    if view.redacted:
        print(f"  redacted: {', '.join(f'{count} {visible(kind)}' for kind, count in view.redacted.items())}")
    print(dim(f"  {visible(view.ref)}"))

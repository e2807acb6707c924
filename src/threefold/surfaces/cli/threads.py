"""Threads: list, show, archive, reopen."""

from __future__ import annotations

import argparse
from typing import Any

from threefold.realms.conv.threads.realm import WINDOW
from threefold.surfaces.cli.context import Context, bold, dim, visible, warn


def add_commands(commands: Any) -> None:
    """Add this file's commands."""
    command = commands.add_parser("threads", help="named conversations, each with a summary of what was long ago")
    acts = command.add_subparsers(title="acts", metavar="ACT", required=True)
    act = acts.add_parser("list", help="threads, those last written to first")
    act.add_argument("--archived", action="store_true", help="archived ones too")
    act.add_argument("--limit", type=int, default=20, help="how many (default: 20)")
    act.set_defaults(run=list_)
    act = acts.add_parser("show", help="what an agent is given: the summary, then the last messages whole")
    act.add_argument("name", help="the thread, or any conversation")
    act.add_argument("--window", type=int, default=WINDOW, help=f"how many messages (default: {WINDOW})")
    act.set_defaults(run=show)
    for name, about in (("archive", "take no more messages, leave it out of the list"), ("reopen", "undo archive")):
        act = acts.add_parser(name, help=about)
        act.add_argument("name", help="the thread, or any conversation")
        act.set_defaults(run=set_, act=name)


def list_(context: Context, options: argparse.Namespace) -> int:
    """Print the list."""
    with context.open() as db:
        found = context.handle(db).threads(options.limit, archived=options.archived)
    if context.json:
        context.emit({"threads": [entry.as_json() for entry in found]})
        return 0
    for entry in found:
        archived = "" if entry.status == "active" else dim("  archived")
        print(f"{entry.active:%Y-%m-%d %H:%M}  {visible(entry.name)}{archived}")
    if not found:
        print("no threads")
    return 0


def show(context: Context, options: argparse.Namespace) -> int:
    """Print summary and messages."""
    with context.open() as db:
        found = context.handle(db).thread(options.name).context(options.window)
    if context.json:
        context.emit(found.as_json())
        return 0
    for warning in found.warnings:
        warn(warning)
    if found.summarised:
        print(bold(f"summary of the first {found.summarised} messages"))
        print(visible(found.summary))
        print()
    for message in found.messages:
        who = bold(visible(message.author or message.role))
        print(f"{dim(f'[{message.at:%Y-%m-%d %H:%M}]')} {who}: {visible(message.text)}")
    print(dim(f"{found.tokens:,} tokens, {found.status}"))
    return 0


def set_(context: Context, options: argparse.Namespace) -> int:
    """Archive or reopen."""
    with context.open() as db:
        thread = context.handle(db).thread(options.name)
        found = thread.archive() if options.act == "archive" else thread.reopen()
    if context.json:
        context.emit(found.as_json())
    else:
        print(f"{visible(found.name)}: {found.status}")
    return 0

"""Moving a store: copy everything into another store, and prove that it arrived."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import threefold
from threefold.surfaces.cli.context import Context, counted, visible
from threefold.surfaces.cli.histories import bar

if TYPE_CHECKING:
    from threefold.transfer import Comparison, Copied


def add_commands(commands: Any) -> None:
    """Add this file's commands."""
    command = commands.add_parser(
        "copy",
        help="copy everything of all users into another store, of any kind, and check it",
        description="Copy every tenant and user from one store into another, then check that both hold the same and "
        "find the same rows. Copying again goes on where it was interrupted.",
    )
    command.add_argument("source", metavar="SOURCE", help="the store that is read: a folder or a URL")
    command.add_argument("target", metavar="TARGET", help="the store that is filled, made when new")
    command.add_argument("--source-blobs", metavar="PLACE", help="where the source's files are, if not in itself")
    command.add_argument("--target-blobs", metavar="PLACE", help="where the target's files go, if not into itself")
    only = command.add_mutually_exclusive_group()
    only.add_argument("--check-only", action="store_true", help="copy nothing, only check")
    only.add_argument("--no-check", action="store_true", help="copy without the check")
    command.add_argument("--deep", action="store_true", help="check the bytes of every file too")
    command.set_defaults(run=copy)


def copy(context: Context, options: argparse.Namespace) -> int:
    """Copy, check, and say what came of it; 1 where something differs or was lost."""
    copied, compared = None, None
    # Each has its own place of files; the general option cannot mean both.
    read = replace(context, store=options.source, blobs=options.source_blobs)
    filled = replace(context, store=options.target, blobs=options.target_blobs)
    with read.open() as source, filled.open(make=not options.check_only) as target:
        turns = source.state().counts["turns"]
        if not options.check_only:
            with bar(turns, "copying", "turns") as progress:
                copied = threefold.copy_store(source, target, progress.update)
        if not options.no_check:
            with bar(turns, "checking", "turns") as progress:
                compared = threefold.compare_stores(source, target, options.deep, on_turn=progress.update)
    if context.json:
        done = {"copied": None if copied is None else asdict(copied)}
        context.emit({**done, "checked": None if compared is None else asdict(compared)})
    else:
        _tell(copied, compared)
    wrong = (compared is not None and compared.differences) or (copied is not None and copied.lost)
    return 1 if wrong else 0


def _tell(copied: Copied | None, compared: Comparison | None) -> None:
    if copied is not None:
        there = counted(copied.unchanged, "turns were", "turn was")
        print(f"copied: {counted(copied.turns, 'turns')}, {counted(copied.blobs, 'files')}; {there} there already")
        if copied.removed:
            before = "removed in the target before and"
            print(counted(copied.removed, f"turns were {before} stay removed", f"turn was {before} stays removed"))
        if copied.lost:
            lost = counted(len(copied.lost), "files are", "file is")
            print(f"{lost} lost or damaged in the source, first {copied.lost[0]}")
    if compared is not None:
        verdict = "not the same" if compared.differences else "the same"
        looked = {"turns": compared.turns, "files": compared.blobs, "questions": compared.questions}
        print(f"checked: {', '.join(counted(n, name) for name, n in looked.items())}: {verdict}")
        for difference in compared.differences:
            print(f"  {visible(difference)}")

"""Moving histories: import, export, restore."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import threefold
from threefold.surfaces.cli.context import Context, counted, visible

_SHOWN = 10
# Those of `threefold.importers`, which is loaded only where it is used; a test holds both together.
_KINDS = ("auto", "claude-code", "codex", "gemini-cli", "chatgpt", "claude", "jsonl")


def add_commands(commands: Any) -> None:
    """Add this file's commands."""
    command = commands.add_parser(
        "import",
        help="import histories with their own times; importing again adds nothing",
        description="Import sessions of Claude Code, Codex and Gemini CLI, exports of ChatGPT and Claude, and JSONL.",
    )
    command.add_argument("paths", nargs="+", metavar="PATH", help="a folder, a zip file or a single file")
    command.add_argument("--from", dest="kind", choices=_KINDS, default="auto", help="the format (default: auto)")
    command.set_defaults(run=import_)
    command = commands.add_parser("export", help="write everything of the user into one zip file")
    command.add_argument("path", metavar="FILE.zip")
    command.set_defaults(run=export)
    command = commands.add_parser("restore", help="read an export back; what is there already stays")
    command.add_argument("path", metavar="FILE.zip")
    command.add_argument("--keep-user", action="store_true", help="restore for the user that was exported, not --user")
    command.set_defaults(run=restore)


def bar(total: int | None, what: str, unit: str, scale: bool = False) -> Any:
    """A progress bar on standard error, only where that is a terminal."""
    from tqdm import tqdm

    return tqdm(total=total, desc=what, unit=unit, unit_scale=scale, disable=not sys.stderr.isatty(), leave=False)


def embed_with_bar(db: threefold.Threefold) -> None:
    """Embed what waits, showing how far it is."""
    with bar(db.state().pending, "embedding", "rows") as progress:
        db.embed_pending(on_progress=progress.update)


def import_(context: Context, options: argparse.Namespace) -> int:
    """Import, then embed what is new."""
    from threefold.importers import total_bytes

    size = total_bytes(options.paths)
    with context.open(make=True) as db:
        with bar(size, "importing", "B", scale=True) as progress:
            done = context.handle(db).import_history(options.paths, options.kind, progress.update)
        embed_with_bar(db)
    if context.json:
        skipped = [{"where": s.where, "why": s.why} for s in done.skipped]
        context.emit({"imported": done.imported, "unchanged": done.unchanged, "skipped": skipped})
        return 0
    print(f"{counted(done.imported, 'turns')} imported, {done.unchanged} unchanged, {len(done.skipped)} skipped")
    for skipped_item in done.skipped[:_SHOWN]:
        print(f"  {visible(skipped_item.where)}: {visible(skipped_item.why)}")
    if len(done.skipped) > _SHOWN:
        print(f"  … and {len(done.skipped) - _SHOWN} more; --json lists them all")
    return 0


def export(context: Context, options: argparse.Namespace) -> int:
    """Write the archive."""
    with context.open() as db, bar(None, "exporting", "turns") as progress:
        done = context.handle(db).export(options.path, progress.update)
    if context.json:
        lost = {"missing": list(done.missing)}
        context.emit({"path": str(done.path), "turns": done.turns, "blobs": done.blobs, **lost})
    else:
        print(
            f"{counted(done.turns, 'records')} and {counted(done.blobs, 'files')} written to {visible(str(done.path))}"
        )
        if done.missing:
            lost_files = counted(len(done.missing), "files are", "file is")
            print(f"{lost_files} lost or damaged and not in it; `threefold doctor` says which")
    return 1 if done.missing else 0


def restore(context: Context, options: argparse.Namespace) -> int:
    """Read the archive, then embed what is new."""
    user, tenant = (None, None) if options.keep_user else (context.user, context.tenant)
    with context.open(make=True) as db:
        with bar(None, "restoring", "turns") as progress:
            done = threefold.restore(options.path, db, user, tenant, progress.update)
        embed_with_bar(db)
    if context.json:
        context.emit(
            {"created": done.created, "replaced": done.replaced, "unchanged": done.unchanged, "blobs": done.blobs}
        )
    else:
        records = f"{counted(done.created, 'records')} restored, {done.replaced} replaced, {done.unchanged} unchanged"
        print(f"{records}, {counted(done.blobs, 'files')}")
    return 0

"""Care: forget, scrub, reembed, migrate, doctor."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from threefold.backends.opening import migrate_store
from threefold.embedders.opening import BUNDLED
from threefold.errors import Conflict
from threefold.surfaces.cli.context import Context, counted, visible
from threefold.surfaces.cli.histories import embed_with_bar


def add_commands(commands: Any) -> None:
    """Add this file's commands."""
    command = commands.add_parser("forget", help="remove a turn, a conversation, or all of the user, with a receipt")
    aim = command.add_mutually_exclusive_group(required=True)
    aim.add_argument("--conversation", help="remove this conversation")
    aim.add_argument("--all", action="store_true", help="remove everything of the user")
    aim.add_argument("--whole-tenant", action="store_true", help="remove every user of --tenant")
    command.add_argument("--turn", help="remove only this turn of the conversation")
    command.add_argument("--yes", action="store_true", help="do not ask")
    command.set_defaults(run=forget, wrong_usage=command.error)
    command = commands.add_parser(
        "scrub",
        help="take what removals left out of unused places of the files",
        description="Rewrite or overwrite unused places of the store's files, where removed bytes may still stand. On "
        "PostgreSQL every table is rewritten and locked meanwhile: choose a quiet moment.",
    )
    command.set_defaults(run=scrub)
    command = commands.add_parser("reembed", help="embed what waits; everything anew if the model changed")
    command.add_argument("--all", action="store_true", help="drop all vectors first")
    command.set_defaults(run=reembed)
    command = commands.add_parser("migrate", help="bring the store to this program's schema")
    command.add_argument("--dry-run", action="store_true", help="only say what would be applied")
    command.set_defaults(run=migrate)
    command = commands.add_parser("doctor", help="look at the program and the store, explain each problem in a line")
    command.add_argument(
        "--repair", action="store_true", help="rebuild the indexes, remove files left by killed writers"
    )
    command.set_defaults(run=doctor)


def forget(context: Context, options: argparse.Namespace) -> int:
    """Remove, after asking, and print the receipt."""
    if options.turn and not options.conversation:
        options.wrong_usage("--turn needs --conversation too")
    what = _named(context, options)
    if not options.yes and not _agreed(what):
        raise Conflict(f"nothing was removed; to remove {what}, answer yes or add --yes")
    with context.open() as db:
        if options.whole_tenant:
            receipt = db.forget_tenant(context.tenant)
        else:
            receipt = context.handle(db).forget(options.conversation, options.turn)
    if context.json:
        context.emit(receipt.as_json())
    else:
        touched = ", ".join(counted(n, store) for store, n in receipt.stores.items() if n and store != "log emptied")
        print(f"forgot {what}: {touched or 'nothing was there'}")
        for leftover in receipt.leftovers:
            print(f"not finished: {visible(leftover)}")
    return 1 if receipt.leftovers else 0


def _named(context: Context, options: argparse.Namespace) -> str:
    if options.whole_tenant:
        return f"every user of tenant {context.tenant!r}"
    if options.all:
        return f"everything of user {context.user!r}"
    where = f"conversation {options.conversation!r}"
    return f"turn {options.turn!r} of {where}" if options.turn else where


def _agreed(what: str) -> bool:
    if not sys.stdin.isatty():
        return False
    print(f"Remove {what} for good? [yes/no] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def reembed(context: Context, options: argparse.Namespace) -> int:
    """Embed what waits, or all of it anew."""
    with context.open() as db:
        before = db.state()
        changed = before.embedder is not None and db.embedder is not None and before.embedder != db.embedder.name
        if changed and not context.embedder_named and not str(before.embedder).startswith(BUNDLED):
            raise Conflict(
                f"the vectors were made by {before.embedder!r}: name it with --embedder to embed what waits, or say "
                "--embedder bundled to drop them; nothing was changed"
            )
        if options.all or changed:
            db.reembed()
        embed_with_bar(db)
        after = db.state()
    if context.json:
        counts = {"vectors": after.counts["vectors"], "pending": after.pending, "failed": after.failed}
        context.emit({"embedder": after.embedder, **counts})
    else:
        embedded = counted(after.counts["vectors"], "rows are", "row is")
        waiting = counted(after.pending, "wait", "waits")
        print(f"{embedded} embedded by {visible(str(after.embedder))}, {waiting}, {after.failed} failed")
        if after.last_failure:
            print(f"last failure: {visible(after.last_failure)}")
    return 1 if after.failed else 0


def scrub(context: Context, options: argparse.Namespace) -> int:  # noqa: ARG001 - it has no options
    """Scrub and say what is left; 1 where something is."""
    with context.open() as db:
        left = db.scrub()
    if context.json:
        context.emit({"leftovers": list(left)})
    else:
        print("nothing of what was removed is left in the store's files" if not left else visible("\n".join(left)))
    return 1 if left else 0


def migrate(context: Context, options: argparse.Namespace) -> int:
    """Apply what the store lacks, or say what that is."""
    done = migrate_store(context.store, options.dry_run)
    names = [str(migration) for migration in done.migrations]
    if context.json:
        applied, pending = ([], names) if options.dry_run else (names, [])
        context.emit({"schema": done.number, "applied": applied, "pending": pending})
        return 0
    for name in names:
        print(f"{'pending' if options.dry_run else 'applied'}: {name}")
    print(f"schema {done.number}" + ("" if names else ", up to date"))
    return 0


def doctor(context: Context, options: argparse.Namespace) -> int:
    """Print findings; exit 1 where one is a problem."""
    if options.repair:
        with context.open() as db:
            rows = db.repair()
            left = db.state(check=True).counts["rows"] - rows
            collected = db.collect_blobs()
        removed = counted(collected, "unreferenced files")
        print(f"repaired: {counted(rows, 'rows')} indexed anew, {removed} removed", file=sys.stderr)
        if left:
            raise Conflict(f"{counted(left, 'rows')} could not be indexed; restore an export")
    from threefold.surfaces.cli.checks import examine  # looks at packages, which other commands need not wait for

    findings = examine(context)
    problems = [finding for finding in findings if finding.problem]
    if context.json:
        context.emit(
            {
                "ok": not problems,
                "findings": [{"what": f.what, "says": f.says, "problem": f.problem} for f in findings],
            }
        )
    else:
        for finding in findings:
            print(f"{'✗' if finding.problem else '✓'} {finding.what}: {visible(finding.says)}")
    return 1 if problems else 0

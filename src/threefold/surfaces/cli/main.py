"""Arguments in, exit status out: 0 done, 1 the request failed (one line on standard error), 2 wrong usage."""

from __future__ import annotations

import argparse
import gc
import io
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial

from threefold import __version__
from threefold.config import default_blobs, default_store
from threefold.errors import ThreefoldError
from threefold.surfaces.cli import (
    asking,
    boards,
    care,
    chat,
    documents,
    embedder,
    histories,
    ingesting,
    memories,
    reading,
    services,
    serving,
    threads,
    tokens,
    transfer,
    work,
)  # fmt: skip
from threefold.surfaces.cli import demo as demonstration
from threefold.surfaces.cli.context import Context, warn
from threefold.surfaces.cli.table import ServiceParser

# So many objects more than were given back, then the garbage collector looks for cycles; usually 700.
_COLLECT_AFTER = 50_000

_EPILOG = """\
examples:
  threefold demo
  threefold import ~/.claude/projects
  threefold search "why did the openpyxl export fail" --explain
  threefold log                      conversations, the last active first
  threefold ingest docs/ --prune     files, cut into chunks that are found and cited
  threefold show conv:ar:conv_trip.turn_1.user.prompt
"""


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    root = argparse.ArgumentParser(
        prog="threefold",
        description="A context database for agents: records turns, finds them again, gives back the exact bytes.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    root.add_argument("--version", action="version", version=f"threefold {__version__}")
    _common(root, fresh=True)
    commands = root.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (
        demonstration, histories, reading, threads, memories, boards, ingesting, documents, asking, services,
        serving, tokens, transfer, care, work,
    ):  # fmt: skip
        module.add_commands(commands)
    for command in commands.choices.values():
        _common(command, fresh=False)
        if isinstance(command, ServiceParser):
            command.finish = partial(_common, fresh=False)
            continue
        for act in acts_of(command).values():
            _common(act, fresh=False)
    return root


def acts_of(command: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """The commands of a command, such as `list` of `memories`."""
    if isinstance(command, ServiceParser):
        return command.acts()
    for action in command._actions:  # noqa: SLF001 - no public way
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            return dict(action.choices)
    return {}


def _common(target: argparse.ArgumentParser, fresh: bool) -> None:
    """Options that stand before or after the command."""
    group = target.add_argument_group("for every command")
    missing = argparse.SUPPRESS
    group.add_argument(
        "--db",
        metavar="STORE",
        default=None if fresh else missing,
        help="the store: a folder or postgresql://… (default: $THREEFOLD_DB)",
    )
    group.add_argument(
        "--blobs",
        metavar="PLACE",
        default=None if fresh else missing,
        help="where files are: a folder or s3://bucket/prefix (default: $THREEFOLD_BLOBS, then in the store)",
    )
    group.add_argument(
        "--user", default=None if fresh else missing, help="whose record (default: $THREEFOLD_USER, then the login)"
    )
    group.add_argument("--tenant", default="default" if fresh else missing, help="whose tenant (default: default)")
    embedder.add_options(group, fresh)
    chat.add_options(group, fresh)
    group.add_argument(
        "--redact",
        metavar="RULE",
        default=None if fresh else missing,
        help="take out of what is written: secrets, secrets+personal, or none (default: $THREEFOLD_REDACT, then none)",
    )
    group.add_argument(
        "--json", action="store_true", default=False if fresh else missing, help="one JSON document on standard output"
    )


def process() -> int:
    """`main` as all that a process does.

    What is loaded stays until the process ends, so the garbage collector need not go through it: neither while a
    command works nor at the end, when the interpreter would do so once more. What comes later it looks through seldom.
    """
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)
    status = main()
    gc.freeze()
    return status


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    _speak_utf8()
    options = parser().parse_args(argv)
    try:
        status: int = options.run(_context(options), options)
        sys.stdout.flush()
    except ThreefoldError as error:
        warn(str(error))
        return 1
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        warn(str(error))
        return 1
    except KeyboardInterrupt:
        print("threefold: interrupted; what was acknowledged is kept", file=sys.stderr)
        return 130
    return status


def _context(options: argparse.Namespace) -> Context:
    return Context(
        store=default_store() if options.db is None else options.db,
        user=_user() if options.user is None else options.user,
        tenant=options.tenant,
        json=options.json,
        blobs=default_blobs() if options.blobs is None else options.blobs,
        embedder=embedder.chosen(options),
        redact=_redact(options.redact),
        chat=chat.chosen(options),
    )


def _redact(named: str | None) -> str | None:
    rule = named or os.environ.get("THREEFOLD_REDACT") or "none"
    return None if rule == "none" else rule


def _user() -> str:
    """An empty variable is refused later, never taken for someone else."""
    named = os.environ.get("THREEFOLD_USER")
    if named is not None:
        return named
    import getpass  # seldom needed beside --user and the variable

    return getpass.getuser()


def _speak_utf8() -> None:
    """Every script can be printed, whatever the terminal's encoding was set to."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")

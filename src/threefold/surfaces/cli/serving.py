"""Serve other programs: mcp."""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
from typing import Any

import threefold
from threefold.errors import InvalidInput, Unavailable
from threefold.model.scope import Scope
from threefold.surfaces.cli.context import Context, visible
from threefold.surfaces.cli.hosts import HOSTS, configuration

# What an assistant may do unless it is told otherwise: read, and suggest.
DEFAULT_GRANTS = ("*:read", "mem:propose", "cnv:propose")
_GRANT = re.compile(r"(\*|[a-z][a-z0-9_-]*):(read|propose|write)")


def add_commands(commands: Any) -> None:
    """Add this file's command."""
    command = commands.add_parser(
        "mcp",
        help="serve a coding assistant or chat client over MCP, on standard input and output",
        description="A client starts this by itself; --print-config prints what to paste into its configuration.",
    )
    command.add_argument(
        "--grant",
        action="append",
        metavar="GRANT",
        help=f"what it may do, such as mem:read; may be repeated (default: {', '.join(DEFAULT_GRANTS)})",
    )
    command.add_argument("--write", action="store_true", help="every grant; held memories stay the person's to change")
    command.add_argument(
        "--agent",
        default="mcp",
        metavar="NAME",
        help="as whom it writes: an agent only proposes memories; '' is the person (default: mcp)",
    )
    command.add_argument("--app", help="it sees only what this app recorded")
    command.add_argument("--verbose", action="store_true", help="log what happens, on standard error")
    command.add_argument(
        "--print-config",
        nargs="?",
        choices=HOSTS,
        const="claude-code",
        metavar="HOST",
        help=f"print the configuration of a host and end: {', '.join(HOSTS)} (default: claude-code)",
    )
    command.set_defaults(run=mcp)


def mcp(context: Context, options: argparse.Namespace) -> int:
    """Serve until the client leaves, or print how to make it come."""
    grants = _grants(options)
    if options.print_config is not None:
        return _print(context, options)
    scope = Scope(context.user, context.tenant, options.app, options.agent or None)
    # Before anything is loaded: what is printed from here on is not for the client.
    lines, wire = own_wire()
    try:
        from threefold.surfaces.mcp.opening import Opening
        from threefold.surfaces.mcp.stdio import serve
    except ImportError as error:
        raise Unavailable(f"MCP is not installed ({error}): pip install 'threefold[mcp]'") from None
    from threefold.services import Caller

    level = logging.DEBUG if options.verbose else logging.WARNING
    logging.basicConfig(stream=sys.stderr, level=level, format="%(levelname)s %(name)s: %(message)s", force=True)

    def open_() -> threefold.Threefold:
        if not context.store_exists():
            print(f"threefold mcp: a new store at {visible(context.store)}", file=sys.stderr, flush=True)
        return context.open(make=True, background=True)

    serve(Opening(open_, context.store), Caller(scope, grants), lines, wire)
    return 0


def own_wire() -> tuple[int, int]:
    """Standard input and output for the protocol alone, as file descriptors of their own, until the process ends.

    Whatever else is printed, by a service, a library or a child process, now or at the end, goes to standard error;
    whoever else reads gets nothing.
    """
    lines, wire = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return lines, wire


def _grants(options: argparse.Namespace) -> frozenset[str] | None:
    """The grants that are given; None for all.

    Raises:
        InvalidInput: one is none.
    """
    if options.write and options.grant:
        raise InvalidInput("--write gives every grant; leave --grant out, or --write")
    for each in options.grant or ():
        if not _GRANT.fullmatch(each):
            raise InvalidInput(f"--grant {each!r} is none; write NAMESPACE:read, :propose or :write, such as mem:read")
    return None if options.write else frozenset(options.grant or DEFAULT_GRANTS)


def _print(context: Context, options: argparse.Namespace) -> int:
    """Print a configuration, and on standard error where it belongs."""
    own = [f"--grant={each}" for each in options.grant or ()] + (["--write"] if options.write else [])
    own += [] if options.agent == "mcp" else ["--agent", options.agent]
    own += [] if options.app is None else ["--app", options.app]
    host = options.print_config
    text = configuration(host, [*context.as_options(), "mcp", *own])
    if context.json:
        context.emit({"host": host, "place": HOSTS[host].place, "configuration": text})
    else:
        print(f"# {HOSTS[host].place}", file=sys.stderr, flush=True)
        print(text)
    return 0

"""Serve other programs: mcp over standard input and output, serve over HTTP."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from functools import partial
from typing import Any

import threefold
from threefold.errors import InvalidInput, Unavailable
from threefold.model.scope import Scope
from threefold.realms.access.grants import READER, check_grants
from threefold.surfaces.cli.context import Context, visible
from threefold.surfaces.cli.hosts import HOSTS, configuration


def add_commands(commands: Any) -> None:
    """Add this file's commands."""
    _add_serve(commands)
    command = commands.add_parser(
        "mcp",
        help="serve a coding assistant or chat client over MCP, on standard input and output",
        description="A client starts this by itself; --print-config prints what to paste into its configuration.",
    )
    command.add_argument(
        "--grant",
        action="append",
        metavar="GRANT",
        help=f"what it may do, such as mem:read; may be repeated (default: {', '.join(READER)})",
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


def _add_serve(commands: Any) -> None:
    command = commands.add_parser(
        "serve",
        help="serve the store over HTTP: every operation, MCP, and the pages where there are some",
        description="On this machine alone it needs no token; for others `threefold tokens create` makes them.",
    )
    command.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)")
    command.add_argument("--port", type=int, default=8484, help="the port, 0 for any (default: 8484)")
    command.add_argument(
        "--allowed-host", action="append", default=[], metavar="NAME", help="a name that it is called by, as in a URL"
    )
    command.add_argument("--require-token", action="store_true", help="on this machine too, such as behind a proxy")
    command.add_argument(
        "--agent", action="append", default=[], metavar="MODULE:NAME",
        help="an agent that answers: an Agent, a function, or a list of them; may be repeated",
    )  # fmt: skip
    command.add_argument("--workers", type=int, default=1, metavar="N", help="processes (default: 1)")
    command.add_argument("--threads", type=int, default=4, metavar="N", help="that work in each (default: 4)")
    command.add_argument(
        "--lanes", type=int, default=8, metavar="N", help="turns that run at once in each (default: 8)"
    )
    command.add_argument("--rate", type=int, metavar="N", help="requests in a minute for each token (default: any)")
    command.add_argument("--log-json", action="store_true", help="a JSON line for each request, on standard error")
    command.add_argument("--open", action="store_true", help="open it in a browser")
    command.set_defaults(run=serve)


def serve(context: Context, options: argparse.Namespace) -> int:
    """Serve until a signal says to stop."""
    for name in ("workers", "threads", "lanes", "rate"):
        given = getattr(options, name)
        if given is not None and given < 1:
            raise InvalidInput(f"--{name} must be a whole number from 1")
    if not 0 <= options.port < 65_536:
        raise InvalidInput(f"--port {options.port} must be a whole number from 0 to 65535")
    if options.workers > 1 and context.store == ":memory:":
        raise InvalidInput("--workers: a store in memory is one process's own; give a folder, or one worker")
    scope = Scope(context.user, context.tenant)
    try:
        from threefold.surfaces.http import Settings, serving
    except ImportError as error:
        raise Unavailable(f"HTTP is not installed ({error}): pip install 'threefold[serve]'") from None
    from threefold.host.loading import load_agents

    agents = tuple(options.agent)
    load_agents(agents)  # what is off is said before anything listens
    with serving.listen(options.host, options.port) as listening:
        local = None if options.require_token or not serving.is_own(listening) else scope
        settings = Settings(
            local, tuple(options.allowed_host), threads=options.threads, lanes=options.lanes, rate=options.rate
        )
        opening = partial(context.open, make=True, background=True)
        url = _url(options.host, listening.getsockname()[1])
        serving.serve(
            serving.Service(opening, settings, agents, options.log_json),
            listening,
            options.workers,
            partial(_started, context, url, local, options.open),
        )
    return 0


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _started(context: Context, url: str, local: Scope | None, show: bool) -> None:
    """The first line, and the only one on standard output."""
    if context.json:
        print(json.dumps({"url": url, "user": None if local is None else local.user}, ensure_ascii=False), flush=True)
    else:
        who = "with a token" if local is None else f"as {visible(local.user)}"
        print(f"threefold serves {visible(context.store)} at {url} {who}; Ctrl-C stops it", flush=True)
    if show:
        import webbrowser  # seldom needed
        from threading import Thread

        # Some browsers are waited for.
        Thread(target=webbrowser.open, args=(url,), daemon=True).start()


def mcp(context: Context, options: argparse.Namespace) -> int:
    """Serve until the client leaves, or print how to make it come."""
    grants = grants_of(options)
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


def grants_of(options: argparse.Namespace) -> frozenset[str] | None:
    """The grants that are given; None for all.

    Raises:
        InvalidInput: one is none.
    """
    if options.write and options.grant:
        raise InvalidInput("--write gives every grant; leave --grant out, or --write")
    return None if options.write else check_grants(options.grant or READER, "--grant")


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

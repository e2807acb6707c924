"""Tokens, with which users come in over a network: tokens create, list, revoke."""

from __future__ import annotations

import argparse
import re
import sys
from datetime import timedelta
from typing import Any, Final

from threefold.errors import InvalidInput
from threefold.realms.access.grants import READER
from threefold.surfaces.cli.context import Context, dim, visible
from threefold.surfaces.cli.serving import grants_of

_UNITS: Final = {"d": "days", "h": "hours", "m": "minutes"}


def add_commands(commands: Any) -> None:
    """Add this file's commands."""
    command = commands.add_parser("tokens", help="who may come in over HTTP: create, list, revoke")
    acts = command.add_subparsers(title="acts", metavar="ACT", required=True)
    act = acts.add_parser(
        "create",
        help="make a token for --user; it is shown once",
        description="Make a token for --user of --tenant. It is printed once: only its hash is kept.",
    )
    act.add_argument(
        "--grant",
        action="append",
        metavar="GRANT",
        help=f"what it may do, such as mem:read; may be repeated (default: {', '.join(READER)})",
    )
    act.add_argument("--write", action="store_true", help="every grant")
    act.add_argument("--agent", metavar="NAME", help="as whom it writes: an agent only proposes memories")
    act.add_argument("--app", help="it sees only what this app recorded")
    act.add_argument("--expires", metavar="TIME", help="how long it holds, such as 90d, 12h or 30m (default: no end)")
    act.add_argument(
        "--rate", type=int, metavar="N", help="requests that it may make in a minute (default: the server's)"
    )
    act.add_argument("--name", default="", help="what you know it by")
    act.set_defaults(run=create)
    act = acts.add_parser("list", help="tokens that hold, without their secrets")
    act.add_argument("--all", action="store_true", help="those of every user")
    act.set_defaults(run=list_)
    act = acts.add_parser("revoke", help="let a token hold no more, at once")
    act.add_argument("id", help="its id, tok_…; `threefold tokens list` has it")
    act.set_defaults(run=revoke)


def create(context: Context, options: argparse.Namespace) -> int:
    """Make a token, and print its secret alone on standard output."""
    grants, expires = grants_of(options), None if options.expires is None else _time(options.expires)
    narrowed = {"app": options.app, "agent": options.agent, "rate": options.rate}
    with context.open(make=True) as db:
        made = db.tokens.create(context.user, context.tenant, grants, expires=expires, name=options.name, **narrowed)
    if context.json:
        context.emit({"token": made.secret, **made.token.as_json()})
        return 0
    given = "every grant" if grants is None else ", ".join(sorted(grants))
    print(f"{made.token.id} for {visible(context.user)}: {given}; it is shown only now", file=sys.stderr, flush=True)
    print(made.secret)
    return 0


def list_(context: Context, options: argparse.Namespace) -> int:
    """List tokens."""
    with context.open() as db:
        found = db.tokens.list() if options.all else db.tokens.list(context.user, context.tenant)
    if context.json:
        context.emit({"tokens": [each.as_json() for each in found]})
        return 0
    for each in found:
        value = each.as_json()
        grants = "every grant" if each.grants is None else ", ".join(sorted(each.grants))
        more = [f"{name} {value[name]}" for name in ("app", "agent", "expires", "rate") if value[name] is not None]
        whose = [f"{each.scope.tenant}/{each.scope.user}"] if options.all else []
        called = visible("  ".join([*whose, each.name]))
        print(f"{each.id}  {value['created'][:10]}  {called}  {dim(visible('; '.join([grants, *more])))}")
    return 0


def revoke(context: Context, options: argparse.Namespace) -> int:
    """Let a token hold no more."""
    with context.open() as db:
        db.tokens.revoke(options.id)
    if context.json:
        context.emit({"revoked": options.id})
    else:
        print(f"{visible(options.id)} holds no more")
    return 0


def _time(text: str) -> timedelta:
    found = re.fullmatch(r"(\d{1,6})([dhm])", text)
    if found is None:
        raise InvalidInput(f"--expires {text!r} is no time; write it like 90d, 12h or 30m")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})

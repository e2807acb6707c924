"""What an agent would see for a request, and what one answers: context, ask."""

from __future__ import annotations

import argparse
import asyncio
import sys
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from threefold.errors import Unavailable
from threefold.surfaces.cli.context import Context, bold, counted, dim, one_line, visible, warn

if TYPE_CHECKING:
    import threefold
    from threefold.host.events import Outcome
    from threefold.model.context import ComputedContext


def add_commands(commands: Any) -> None:
    """Add this file's commands."""
    command = commands.add_parser("context", help="what an agent should see for a request, within a budget of tokens")
    command.add_argument("goal", nargs="+", help="the request, in any language")
    _common(command)
    command.add_argument("--explain", action="store_true", help="show what was taken and what was left out, and why")
    command.set_defaults(run=context)
    command = commands.add_parser("ask", help="ask; the answer cites what is kept, and is recorded")
    command.add_argument("goal", nargs="+", help="the question, in any language")
    _common(command)
    command.set_defaults(run=ask)


def _common(command: argparse.ArgumentParser) -> None:
    command.add_argument("--thread", metavar="CONVERSATION", help="the conversation that it belongs to")
    command.add_argument("--budget", type=int, default=4000, metavar="TOKENS", help="of the context (default: 4000)")
    command.add_argument("--engine", metavar="ID", help="another context engine than the default one")


def context(context: Context, options: argparse.Namespace) -> int:
    """Print the context of a request."""
    with context.open() as db:
        found = context.handle(db).context(
            " ".join(options.goal), thread=options.thread, budget=options.budget, engine=options.engine
        )
    if context.json:
        context.emit(found.as_json())
        return 0
    _warn(found)
    if options.explain:
        _explain(found)
    else:
        print(visible(found.text) or "nothing that is kept is to the point")
    return 0


def _warn(found: ComputedContext) -> None:
    for warning in found.warnings:
        warn(warning)


def _explain(found: ComputedContext) -> None:
    share = f"{found.estimated_tokens:,} of {found.budget:,} tokens"
    print(f"{bold(share)} by the engine {found.engine!r}")
    for entry in found.entries:
        score = "" if entry.score is None else f" {entry.score:.2f}"
        cut = "" if entry.whole else ", in part"
        because = visible(f"{entry.section:<14}{entry.because}")
        print(f"{bold(visible(entry.label)):>4}  {because}{score}{cut}  {dim(visible(entry.ref))}")
        print(f"      {one_line(entry.text, 100)}")
    if found.thread is not None:
        said = counted(len(found.thread.messages), "messages")
        print(f"      thread {visible(found.thread.name)}: {said}{', after a summary' if found.thread.summary else ''}")
    if found.dropped:
        print(bold("left out"))
    for dropped in found.dropped:
        score = "" if dropped.score is None else f" {dropped.score:.2f}"
        why = visible(f"{dropped.section:<14}{dropped.why}")
        print(f"      {why}{score}, {counted(dropped.tokens, 'tokens')}  "
              f"{dim(visible(dropped.ref))}")  # fmt: skip


def ask(context: Context, options: argparse.Namespace) -> int:
    """Answer a question: pieces of the answer as they come, then what it cites."""
    with context.open(make=True) as db:
        outcome = asyncio.run(_asked(context, options, db))
        db.embed_pending()
    if context.json:
        context.emit(outcome.as_json())
    else:
        print()
        for label, ref in outcome.citations.items():
            print(f"{bold(visible(label)):>4}  {dim(visible(ref))}")
        print(dim(f"recorded as {visible(outcome.ref)}"))
    if outcome.status != "completed":
        warn(str(outcome.error))
        return 1
    return 0


async def _asked(context: Context, options: argparse.Namespace, db: threefold.Threefold) -> Outcome:
    from threefold.host.kernel import Kernel

    outcome = None
    async with Kernel(db, tenant=context.tenant) as kernel:
        goal = " ".join(options.goal)
        events = kernel.stream(goal, context.user, options.thread, budget=options.budget, engine=options.engine)
        async with aclosing(events):
            async for event in events:
                outcome = event.outcome
                if context.json:
                    continue
                if event.kind == "start" and event.context is not None:
                    _warn(event.context)
                elif event.kind == "delta":
                    print(visible(event.text), end="", flush=True)
                elif event.step is not None:
                    print(dim(f"({one_line(event.step.name, 40)}: {event.step.status})"), file=sys.stderr)
    if outcome is None:
        raise Unavailable("the request ended without an outcome")
    return outcome

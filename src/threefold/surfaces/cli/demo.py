"""The main job on a sample that ships with the package: no key, no network."""

from __future__ import annotations

import argparse
import json
import time
from contextlib import ExitStack
from typing import Any

import threefold
from threefold.surfaces.cli.context import Context, bold, dim
from threefold.surfaces.cli.reading import print_hit, print_turn

_QUESTIONS = (
    ("a question in other words", "which restaurant for seafood did you tell us about?"),
    ("a misspelt word", "opnepyxl"),
    ("a part of an identifier", "getUserById"),
    ("a Chinese word of two characters", "接龙"),
    ("a Russian question", "когда укрывать розы"),
)
_REQUEST = "Which restaurant in Cacilhas, and what shall we order there?"
_PLAN = "# Lisbon, 29 to 31 May\n\nFriday: ferry to Cacilhas, dinner at Ponto Final.\n"


def add_commands(commands: Any) -> None:
    """Add this file's command."""
    command = commands.add_parser("demo", help="the main job on a small sample; no key, no network")
    command.add_argument("--keep", metavar="FOLDER", help="keep the demo's store there, to look around afterwards")
    command.set_defaults(run=demo)


def demo(context: Context, options: argparse.Namespace) -> int:
    """Import a history, ask five questions, record a live turn, show it whole, remember, show a context."""
    # Not at the top: the other commands need not wait for them.
    import tempfile
    from importlib import resources

    from threefold.realms.conv.view import view_to_json

    with ExitStack() as stack:
        folder = options.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="threefold-demo-"))
        db = stack.enter_context(threefold.open(folder, background=False))
        alice = db.user("alice")
        said = _Said(context.json)
        sample = stack.enter_context(resources.as_file(resources.files("threefold.surfaces.cli") / "sample.jsonl"))
        said.title("1. A history is imported with its own times")
        done = alice.import_history([sample])
        listed = alice.conv.conversations()
        said.line(f"{done.imported} turns in {len(listed)} conversations; importing again adds {_again(alice, sample)}")
        db.embed_pending()
        said.title("2. It is found again")
        searches = [_ask(alice, said, why, question) for why, question in _QUESTIONS]
        said.title("3. A live turn is recorded as a by-product")
        ref = _live_turn(alice)
        said.line(f"recorded {ref}")
        said.title("4. A known turn is rebuilt, with its exact bytes")
        view = alice.conv.turn(ref)
        if not context.json:
            print_turn(view)
        data = alice.read(view.files[0].ref)
        equal = data == _PLAN.encode()
        said.line(f"{view.files[0].name}: {len(data)} bytes read back, equal to what was published: {equal}")
        said.title("5. What is true is remembered; what an agent proposes waits for a word")
        kept = alice.mem.remember("eats fish, no shellfish", kind="preference", context="said when planning Lisbon")
        said.line(f"{kept.status}: {kept.memory}")
        waiting = db.user("alice", agent="planner").mem.propose("likes late dinners")
        said.line(f"{waiting.status}: {waiting.memory}")
        said.title("6. What an agent should see for a request is computed, within a budget")
        db.embed_pending()
        computed = alice.context(_REQUEST, thread="lisbon", budget=400)
        said.line(f"{bold(json.dumps(_REQUEST))} {dim(f'({computed.estimated_tokens} of {computed.budget} tokens)')}")
        said.line(f"\n{computed.text}")
        if context.json:
            told = {"memory": kept.as_json(), "proposed": waiting.as_json(), "context": computed.as_json()}
            context.emit({"imported": done.imported, "searches": searches, "turn": view_to_json(view), **told})
        elif options.keep:
            print(f"\nThe store stays in {folder}; try: threefold --db {folder} --user alice log")
        else:
            print("\nNext: threefold import ~/.claude/projects, then threefold search …   (threefold --help lists all)")
    return 0


class _Said:
    """Headings and lines for a person; silent where JSON was asked for."""

    def __init__(self, silent: bool) -> None:
        self._silent = silent

    def title(self, text: str) -> None:
        if not self._silent:
            print(f"\n{bold(text)}")

    def line(self, text: str) -> None:
        if not self._silent:
            print(text)

    def hit(self, hit: Any) -> None:
        if not self._silent:
            print_hit(1, hit)


def _again(alice: threefold.Handle, sample: Any) -> str:
    return str(alice.import_history([sample]).imported or "nothing")


def _live_turn(alice: threefold.Handle) -> str:
    with alice.turn("lisbon") as turn:
        turn.prompt("Plan the Friday for us, and put it into a file.")
        turn.attach(("ferry-times.txt", b"Cais do Sodre - Cacilhas: every 20 minutes until 01:40\n"))
        turn.step("find_tables", {"city": "Lisbon", "day": "Friday"}, result="2 tables at Ponto Final, 20:30")
        turn.source("https://example.org/cacilhas", title="Ferries to Cacilhas")
        turn.publish("plan.md", _PLAN)
        turn.answer("Done: the ferry at 19:40, then dinner at Ponto Final at 20:30. The plan is in plan.md.")
    return str(turn.ref)


def _ask(alice: threefold.Handle, said: _Said, why: str, question: str) -> dict[str, Any]:
    began = time.perf_counter()
    found = alice.conv.search(question, limit=1)
    took = (time.perf_counter() - began) * 1000
    said.line(f"\n{why}: {bold(json.dumps(question, ensure_ascii=False))} {dim(f'({found.mode}, {took:.1f} ms)')}")
    for hit in found:
        said.hit(hit)
    return {"query": question, "mode": found.mode, "hits": [hit.as_json() for hit in found]}

"""Write docs/reference.md from the code: signatures, docstrings, fields, the command line. A test compares them."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import sys
from pathlib import Path
from typing import Any

import threefold
from threefold import aio, errors, ports
from threefold.archive.export import Exported
from threefold.archive.restore import Restored
from threefold.handle import Commons, Imported
from threefold.host.live import LaneEvent
from threefold.importers import KINDS, Skipped
from threefold.model.board import Board, BoardRevision, Card, Comment, Looked, Rect, RenderedBoard, Suggestion
from threefold.model.chat import Call, Reply, Tool, Usage
from threefold.model.chat import Message as ChatMessage
from threefold.model.document import Document, Extracted, Ingested, Library, Passage
from threefold.model.memory import Evidence, Memory, Revision
from threefold.model.paging import Cursor
from threefold.model.record import CatalogEntry, Conversation, Feedback, Timeline
from threefold.model.resolved import Resolved, Shown
from threefold.model.retention import Receipt
from threefold.models.anthropic import AnthropicModel
from threefold.models.judging import model_judge
from threefold.models.openai import OpenAIModel
from threefold.models.scripted import Asked, ScriptedModel
from threefold.models.summarizing import ModelSummarizer
from threefold.models.wire import Patience
from threefold.realms.access.requests import Answer, Requests
from threefold.realms.access.tokens import Made, Token, Tokens
from threefold.realms.cnv import BoardHandle, Cnv
from threefold.realms.cnv.searching import BoardHit, BoardHits
from threefold.realms.conv.hits import Hit, Results, Snippet
from threefold.realms.conv.lanes.values import Accepted, LaneView, Sent
from threefold.realms.conv.realm import Conv
from threefold.realms.conv.recorder import TurnHandle
from threefold.realms.conv.threads.realm import Thread
from threefold.realms.conv.threads.values import Maintained, ThreadContext, ThreadEntry, ThreadInfo
from threefold.realms.conv.view import FileCard, Message, StepView, TurnView
from threefold.realms.doc.folders import IngestedFolder, SkippedFile
from threefold.realms.doc.realm import Doc
from threefold.realms.doc.retrieving import DocHit, Retrieved
from threefold.realms.mem.hotset import Hot
from threefold.realms.mem.importing import ImportedMemories
from threefold.realms.mem.mirror import Synced
from threefold.realms.mem.policy import Policy
from threefold.realms.mem.realm import Mem
from threefold.realms.mem.recalling import Recall, Recalled
from threefold.realms.mem.scores import Scores
from threefold.services import Caller, Introduction, Operation, Service, Services, operation
from threefold.surfaces.cli.main import parser
from threefold.transfer import Comparison, Copied

TARGET = Path(__file__).parent.parent / "docs" / "reference.md"
SECTIONS: list[tuple[str, list[Any]]] = [
    ("Opening", [threefold.open, threefold.Config, aio.open]),
    ("Moving", [threefold.restore, threefold.copy_store, threefold.compare_stores]),
    ("The store and the handle", [threefold.Threefold, threefold.Handle, Commons]),
    ("Recording", [TurnHandle]),
    ("The record", [Conv]),
    ("Threads", [Thread, ThreadContext, ThreadInfo, ThreadEntry, Maintained]),
    (
        "Curated memory",
        [Mem, Memory, Evidence, Revision, Scores, Recall, Recalled, Hot, Policy, ImportedMemories, Synced],
    ),
    ("Documents", [Doc, Document, Passage, Retrieved, DocHit, Ingested, IngestedFolder, SkippedFile, Library]),
    (
        "Boards",
        [
            Cnv, BoardHandle, Board, Card, Rect, Comment, Suggestion, BoardRevision, Looked, BoardHits, BoardHit,
            RenderedBoard,
        ],
    ),
    ("Live turns", [threefold.Door, Accepted, LaneView, Sent, LaneEvent]),
    ("Named services", [Services, Introduction, Operation, Caller, Service, operation]),
    ("Serving", [Tokens, Made, Token, Requests, Answer]),
    ("Ranking", [threefold.Ranking]),
    (
        "Chat models",
        [
            ChatMessage, Call, Tool, Reply, Usage, OpenAIModel, AnthropicModel, Patience, ScriptedModel, Asked,
            ModelSummarizer, model_judge,
        ],
    ),
    (
        "What comes back",
        [
            Results, Hit, Snippet, Conversation, CatalogEntry, Timeline, TurnView, Message, FileCard, StepView,
            Feedback, Resolved, Shown, Cursor, Receipt, Imported, Skipped, Exported, Restored, Copied,
            Comparison,
        ],
    ),
    (
        "Ports, for contributors",
        [ports.Store, ports.Upkeep, ports.Blobs, ports.Embedder, ports.ChatModel, ports.Summarizer,
         ports.Extractor, Extracted],
    ),
]  # fmt: skip


def reference() -> str:
    """The whole page."""
    parts = [
        "# Reference",
        "Made from the code by `scripts/make_reference.py`; do not edit. Give arguments after the first by name.",
    ]
    for title, objects in SECTIONS:
        parts.append(f"## {title}")
        parts += [_object(found) for found in objects]
    parts.append("## Errors")
    parts.append("\n".join(_error(errors.ThreefoldError, 0)))
    parts.append("## Command line")
    parts.append(_command_line())
    parts.append(f"Formats of `import --from`: {', '.join(KINDS)}.")
    return "\n\n".join(parts) + "\n"


def _object(found: Any) -> str:
    name = "threefold.aio.open" if found is aio.open else found.__name__
    if inspect.isfunction(found):
        shown = name if "." in name else f"threefold.{name}"
        return f"### `{shown}{_signature(found)}`\n\n{_doc(found)}"
    lines = [f"### {name}", _doc(found)]
    if dataclasses.is_dataclass(found):
        lines.append("\n".join(f"- `{f.name}`: {_type(f.type)}" for f in dataclasses.fields(found) if f.name[0] != "_"))
    for member, value in vars(found).items():
        if member.startswith("_"):
            continue
        if isinstance(value, property):
            lines.append(f"`{member}`: {_doc(value.fget)}")
        elif inspect.isfunction(value):
            lines.append(f"**`{member}{_signature(value)}`**\n\n{_doc(value)}")
    return "\n\n".join(lines)


def _type(annotation: Any) -> str:
    return f"`{annotation}`" if isinstance(annotation, str) else f"`{getattr(annotation, '__name__', annotation)}`"


def _signature(function: Any) -> str:
    found = inspect.signature(function)
    kept = [p.replace(annotation=_Plain(p.annotation)) for p in found.parameters.values() if p.name != "self"]
    return str(found.replace(parameters=kept, return_annotation=_Plain(found.return_annotation)))


class _Plain(str):
    """An annotation that prints without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _doc(found: Any) -> str:
    lines = inspect.getdoc(found).splitlines()
    shown, block = [], False
    for line in lines:
        if line.rstrip() in ("Args:", "Raises:"):
            shown += [f"*{line.strip()[:-1]}*", ""]
            block = True
        elif block and line.startswith("    ") and not line.startswith("     "):
            shown.append(f"- {line.strip()}")
        elif block and line.startswith("    "):
            shown.append(f"  {line.strip()}")
        else:
            block = block and not line
            shown.append(line)
    return "\n".join(shown)


def _error(error: type, depth: int) -> list[str]:
    lines = [f"{'  ' * depth}- `{error.__name__}`: {inspect.getdoc(error)}"]
    for child in error.__subclasses__():
        # What a back end or a surface adds for itself is there only where it is loaded.
        if child.__module__ == error.__module__ and not child.__name__.startswith("_"):
            lines += _error(child, depth + 1)
    return lines


def _command_line() -> str:
    root = parser()
    actions = [a for a in root._actions if isinstance(a, argparse._SubParsersAction)]  # noqa: SLF001 - no public way
    lines = ["Exit status: 0 done, 1 the request failed (one line on standard error), 2 wrong usage.", _options(root)]
    for name, command in actions[0].choices.items():
        lines.append(f"### `threefold {name}`\n\n{_help(actions[0], name)}.")
        lines.append(_options(command))
        nested = next((a for a in command._actions if isinstance(a, argparse._SubParsersAction)), None)  # noqa: SLF001
        for act, parser_of in (nested.choices if nested else {}).items():
            lines.append(f"**`threefold {name} {act}`**: {_help(nested, act)}.")
            lines.append(_options(parser_of))
    return "\n\n".join(filter(None, lines))


def _help(commands: Any, name: str) -> str:
    return next(str(choice.help) for choice in commands._choices_actions if choice.dest == name)  # noqa: SLF001


def _options(command: argparse.ArgumentParser) -> str:
    common = {
        "--db", "--blobs", "--user", "--tenant", "--embedder", "--embedder-model", "--chat", "--chat-model",
        "--redact", "--json",
    }  # fmt: skip
    common = common if " " in command.prog else set()
    rows = []
    for action in command._actions:  # noqa: SLF001
        if action.help == argparse.SUPPRESS or isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            continue
        if set(action.option_strings) & (common | {"-h"}):
            continue
        shown = ", ".join(action.option_strings) or str(action.metavar or action.dest)
        rows.append(f"- `{shown}`: {action.help}" if action.help else f"- `{shown}`")
    return "\n".join(rows)


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(
            0 if TARGET.read_text("utf-8") == reference() else "docs/reference.md is old: run scripts/make_reference.py"
        )
    TARGET.write_text(reference(), "utf-8")

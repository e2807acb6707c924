"""What the tests of the importers share: the fixtures, reading them, and writing files of their kind."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from threefold.importers import Skipped, read
from threefold.model.turn import Turn

DATA = Path(__file__).parent / "data"


def both(*paths: str | Path, kind: str = "auto") -> tuple[list[Turn], list[Skipped]]:
    """The turns and the notes of `paths`."""
    found = list(read(paths, kind))
    return [x for x in found if isinstance(x, Turn)], [x for x in found if isinstance(x, Skipped)]


def turns(*paths: str | Path, kind: str = "auto") -> list[Turn]:
    return both(*paths, kind=kind)[0]


def said(turn: Turn) -> list[str]:
    return [submission.text for submission in turn.submissions]


def answer(turn: Turn) -> str:
    return turn.completion.text if turn.completion is not None else ""


def events(turn: Turn, kind: str) -> list[Any]:
    return [event.payload for event in turn.context if event.type == kind]


def write_lines(path: Path, records: Iterable[Any]) -> Path:
    """Write each record as a line; text and bytes as they are."""
    lines = [
        r if isinstance(r, bytes) else r.encode() if isinstance(r, str) else json.dumps(r).encode() for r in records
    ]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path

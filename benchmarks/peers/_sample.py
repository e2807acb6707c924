"""What every peer is given: rows and questions for speed, and sets with gold items for recall, as plain JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from _dataset import Dataset, item_of, limited
from _peer import ME
from _sets import load
from _texts import Texts, texts, turns

from threefold.model.turn import Turn

# The unit that messages are judged in, so that all peers are: a turn counts by any of its messages.
UNITS = {"locomo": "message", "longmemeval": "turn"}
_ROWS_OF_AN_OTHER = 1000


def sample(
    data: Path | None, sets: Sequence[str], rows: int, others: int, added: int, asked: int, limit: int | None
) -> dict[str, Any]:
    """All that a run needs.

    Args:
        data: the folder of the sets, or of the one set; None for made-up texts without recall.
        rows: of the user that searches.
        others: rows of other users, a thousand each.
        added: rows to add turn by turn.
        asked: how many questions the user asks.
        limit: at most so many questions of LongMemEval, each of which has a history of its own.
    """
    source = _source(data)
    mine = list(rows_of(ME, turns(source, rows)))
    said = [row[5] for row in mine]
    return {
        "rows": mine,
        "others": [row for user, turn in _others(source, others) for row in rows_of(user, [turn])],
        "turns": list(rows_of("writer", turns(source, added))),
        "questions": [source.question(said) for _ in range(asked)],
        "sets": {} if data is None else {name: judged(load(name, folder_of(data, name)), limit) for name in sets},
    }


def folder_of(data: Path, name: str) -> Path:
    """The folder of a set: that in `data` of its name, else `data` itself."""
    return data / name if (data / name).is_dir() else data


def _source(data: Path | None) -> Texts:
    if data is None:
        return texts(None)
    found = folder_of(data, "longmemeval")
    return texts(found if (found / "sessions.jsonl.gz").exists() else None)


def _others(source: Texts, rows: int) -> Iterator[tuple[str, Turn]]:
    for number, start in enumerate(range(0, rows, _ROWS_OF_AN_OTHER)):
        for turn in turns(source, min(_ROWS_OF_AN_OTHER, rows - start)):
            yield f"other-{number}", turn


def rows_of(user: str, made: Iterator[Turn] | Sequence[Turn]) -> Iterator[tuple[Any, ...]]:
    """The messages of turns, each as the fields of a `Row`; empty ones are no messages."""
    for turn in made:
        parts = [("user", part.text, part.at, part.author) for part in turn.submissions]
        if turn.completion is not None:
            parts.append(("assistant", turn.completion.text, turn.completion.at, turn.completion.author))
        for role, text, at, author in parts:
            if text.strip():
                yield (user, turn.conversation, turn.id, role, at.isoformat(), text, author)


def judged(dataset: Dataset, limit: int | None) -> dict[str, Any]:
    """Rows of all users who ask, the item that each counts as, and the questions with their gold items."""
    unit = UNITS[dataset.name]
    # Users of LoCoMo ask hundreds of questions each.
    chosen = limited(dataset, limit) if dataset.name == "longmemeval" else dataset
    rows, items = [], []
    for user, history in chosen.histories.items():
        for entry in history():
            for row in rows_of(user, [entry.turn]):
                rows.append(row)
                items.append(item_of(unit, entry, row[3]))
    questions = [{"text": q.text, "user": q.user, "gold": sorted(q.gold[unit])} for q in chosen.questions]
    return {"unit": unit, "rows": rows, "items": items, "questions": questions}

"""A retrieval set as values: histories of users (turns to record) and questions with their gold items."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from threefold.model.turn import Completion, Submission, Turn

# Documents have no time of their own.
UNDATED = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Entry:
    """A turn to record, with the names that it is judged under: as an item of its own and as part of a session."""

    turn: Turn
    item: str
    session: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """What `user` asks; `gold` holds the right items for each unit, `groups` those the question is counted in."""

    user: str
    text: str
    gold: Mapping[str, frozenset[str]]
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Dataset:
    """One set: each user's history, made when it is needed; the questions; `facts` are shown in every line.

    Units: `session` ranks conversations; `message` counts a turn and the role that matched; any other counts turns.
    """

    name: str
    units: tuple[str, ...]
    histories: Mapping[str, Callable[[], Iterator[Entry]]]
    questions: tuple[Question, ...]
    facts: Mapping[str, int] = field(default_factory=dict)


def item_of(unit: str, entry: Entry, role: str) -> str:
    """The name under which a hit on `entry` counts."""
    if unit == "session":
        return entry.session
    return f"{entry.item}:{role}" if unit == "message" else entry.item


def limited(dataset: Dataset, limit: int | None) -> Dataset:
    """At most `limit` questions, spread evenly over the set, and the users that ask them."""
    asked = dataset.questions
    if limit is not None and limit < len(asked):
        asked = tuple(asked[i * len(asked) // limit] for i in range(limit))
    users = {question.user for question in asked}
    kept = {user: history for user, history in dataset.histories.items() if user in users}
    return Dataset(dataset.name, dataset.units, kept, asked, dataset.facts)


def turn_of(
    conversation: str,
    number: int,
    at: datetime,
    asked: str | None,
    answered: str | None,
    asker: str | None = None,
    answerer: str | None = None,
) -> Turn:
    """Turn `number` (from 0) of a conversation: what was asked, what was answered, by whom.

    Its id is the number, padded, since the sets give one time for a whole session: so turns sort as they were said.
    """
    return Turn(
        conversation=conversation,
        id=f"{number:05}",
        started=at,
        ended=at,
        submissions=() if asked is None else (Submission("prompt", asked, at, author=asker),),
        completion=None if answered is None else Completion(answered, at, answerer),
    )


def replay(entries: Iterable[Entry]) -> Callable[[], Iterator[Entry]]:
    """A history from entries that are at hand."""
    kept = tuple(entries)
    return lambda: iter(kept)


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON value of each line of a file, which may be compressed."""
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)

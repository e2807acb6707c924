"""The questions that the ranker learns from: candidates and features by the product, labels by the sets."""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from _dataset import Dataset, Entry, Question, item_of  # noqa: E402
from _metrics import distinct, mean, measure  # noqa: E402
from _sets import load  # noqa: E402
from _store import embed, open_store, progress, record  # noqa: E402

from threefold import Handle, Threefold  # noqa: E402
from threefold.model.query import LISTS, Filter, ListName  # noqa: E402
from threefold.model.times import now  # noqa: E402
from threefold.realms.asking import question_for  # noqa: E402
from threefold.search.conversations import either  # noqa: E402
from threefold.search.rank import Ranking, in_place, observed  # noqa: E402
from threefold.text.dates import periods  # noqa: E402

# What is learned in each set; of LongMemEval, rows of the turn that holds the answer count, those that hold it double.
UNITS = {
    "chats": "message", "longmemeval": "turn", "lifebench": "record", "scifact": "document",
    "locomo": "message", "xquad": "paragraph",
}  # fmt: skip
# A store may have no embedder, a question no word of the store's language, a history few rows. Of so many questions one
# is learned a second time without vectors, one without words, both of the other two within the conversation that has
# the answer; and one of these is asked in the store of somebody else.
TURNS = 4
# Rows of a question that are learned from: the first by rank fusion, and all that are right.
LEARNED = 120


@dataclass(frozen=True)
class Lesson:
    """Features and labels (0, 1, 2) of some rows of one question."""

    seen: Any
    labels: Any


@dataclass(frozen=True)
class Asked:
    """A question with its candidates: their features, order by rank fusion, labels, and names as turn and items."""

    question: Question
    seen: Any
    fused: Any
    labels: Any
    turns: tuple[tuple[str, str], ...]
    items: tuple[Mapping[str, str], ...]
    poorer: Lesson | None
    foreign: Any

    def lessons(self) -> Iterator[Lesson]:
        """What is learned from it; nothing where no right row was found."""
        kept = np.union1d(np.argsort(-self.fused, kind="stable")[:LEARNED], np.flatnonzero(self.labels))
        if self.labels.any():
            yield Lesson(self.seen[kept], self.labels[kept])
        if self.poorer is not None and self.poorer.labels.any():
            yield self.poorer


def asked_of(name: str, data: Path, stores: Path | None) -> list[Asked]:
    """Record a set, unless it is there, and ask its questions; spelling variants are left out."""
    folder = ROOT / "benchmarks" / "data" / "chats" if name == "chats" else data / name
    dataset = load(name, folder)
    with (
        tempfile.TemporaryDirectory() as place,
        open_store(str(stores / name if stores else place), "bundled") as db,
    ):
        entries = {}
        with progress(desc=name, unit="turn") as bar:
            for user, history in dataset.histories.items():
                known = list(history())
                record(db, f"{name}:{user}", [entry.turn for entry in known], bar)
                entries[user] = {(entry.turn.conversation, entry.turn.id): entry for entry in known}
        embed(db)
        questions = [q for q in dataset.questions if not q.groups[0].startswith("variant")]
        found = [
            _ask(dataset, db, q, i % TURNS, entries, _stranger(dataset, q))
            for i, q in enumerate(progress(questions, desc=f"{name}, asking", unit="question"))
        ]
    return [asked for asked in found if asked is not None]


def _stranger(dataset: Dataset, question: Question) -> str | None:
    """Another user, whose history has no answer; of the chats, one in the same language."""
    if dataset.name not in ("chats", "longmemeval"):
        return None
    alike = {q.user for q in dataset.questions if dataset.name == "longmemeval" or q.groups[1] == question.groups[1]}
    others = sorted(alike - {question.user})
    return others[sum(map(ord, question.text)) % len(others)] if others else None


def _ask(
    dataset: Dataset,
    db: Threefold,
    question: Question,
    turn: int,
    entries: Mapping[str, Mapping[Any, Entry]],
    stranger: str | None,
) -> Asked | None:
    def observe(user: str, lists: Sequence[ListName], within: str | None = None) -> Any:
        return _observe(dataset, db.user(f"{dataset.name}:{user}"), db, question, entries[user], lists, within)

    full = observe(question.user, LISTS)
    if full is None:
        return None
    seen, fused, labels, turns, items = full
    within = None if turn < 2 else next((name for (name, _), right in zip(turns, labels, strict=True) if right), None)
    poorer = observe(question.user, (LISTS[:2], ("semantic",), LISTS, ("semantic",))[turn], within)
    foreign = observe(stranger, LISTS) if turn == 2 and stranger is not None else None
    lesson = None if poorer is None else Lesson(poorer[0], poorer[2])
    return Asked(question, seen, fused, labels, turns, items, lesson, None if foreign is None else foreign[0])


def _observe(
    dataset: Dataset,
    handle: Handle,
    db: Threefold,
    question: Question,
    entries: Mapping[Any, Entry],
    lists: Sequence[ListName],
    within: str | None,
) -> tuple[Any, Any, Any, tuple[tuple[str, str], ...], tuple[Mapping[str, str], ...]] | None:
    ranking, at = Ranking(), now()
    ports = db._ports  # noqa: SLF001 - the ranker is a part of the product
    query, _ = question_for(handle.scope, ports, question.text, Filter(at, conversation=within), lists, ranking.depth)
    found = ports.store.candidates(query)
    if not len(found.rows):
        return None
    head, seen = observed(found, in_place(found.rows), query, ranking, periods(question.text, at))
    rows = [found.rows[number] for number in head.tolist()]
    turns = tuple((row.key.conversation, row.key.turn) for row in rows)
    items = tuple(
        {unit: item_of(unit, entries[turn], row.role) for unit in dataset.units}
        for row, turn in zip(rows, turns, strict=True)
    )
    right = [UNITS[dataset.name], *(["message"] if dataset.name == "longmemeval" else [])]
    labels = np.array([sum(item[unit] in question.gold[unit] for unit in right) for item in items])
    fused = np.zeros(len(rows))
    place = {number: i for i, number in enumerate(head.tolist())}
    for name, hits in found.lists.items():
        for rank, (number, _) in enumerate(hits, 1):
            fused[place[number]] += ranking.weights[name] / (ranking.k + rank)
    return seen, fused, labels, turns, items


def metrics_of(asked: Sequence[Asked], likely: Sequence[Any]) -> Iterator[tuple[str, str, dict[str, float], int]]:
    """(unit, group, metrics, questions) of rows ordered by `likely`, as `benchmarks/recall.py` has them."""
    for unit in asked[0].question.gold:
        groups: dict[str, list[dict[str, float]]] = defaultdict(list)
        for one, scores in zip(asked, likely, strict=True):
            measured = measure(_ranked(one, scores, unit)[:20], one.question.gold[unit])
            for group in one.question.groups:
                groups[group].append(measured)
        for group, found in groups.items():
            yield unit, group, mean(found), len(found)


def told_of(one: Asked, likely: Any) -> tuple[Any, Any]:
    """How likely each conversation is to have what was asked for, and whether one of its rows is right."""
    right = {one.turns[number][0] for number in np.flatnonzero(one.labels)}
    found = _conversations(one, likely)
    return np.array([told for told, _ in found]), np.array([one.turns[rows[0]][0] in right for _, rows in found])


def _ranked(one: Asked, likely: Any, unit: str) -> list[str]:
    """The items of a question, best first."""
    if unit == "session":
        return distinct(one.items[rows[0]][unit] for _, rows in _conversations(one, likely))
    return distinct(one.items[number][unit] for number in _turns(one, likely))


def _turns(one: Asked, likely: Any) -> list[int]:
    """The best row of each turn, best first."""
    turns: dict[tuple[str, str], int] = {}
    for number in np.lexsort((-one.fused, -likely)):
        turns.setdefault(one.turns[number], number)
    return list(turns.values())


def _conversations(one: Asked, likely: Any) -> list[tuple[float, list[int]]]:
    """Each conversation with its likelihood and the best rows of its turns, best first."""
    found: dict[str, list[int]] = defaultdict(list)
    for number in _turns(one, likely):
        found[one.turns[number][0]].append(number)
    told = [(either(likely[rows].tolist()), rows) for rows in found.values()]
    return sorted(told, key=lambda pair: -pair[0])

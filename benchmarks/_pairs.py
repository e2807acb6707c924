"""The pairs of short notes in `data/pairs`, in two halves: one is tuned on, the other only judges."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

FOLDER = Path(__file__).resolve().parent / "data" / "pairs"
HALVES = ("judged", "tuned")
Half = Literal["judged", "tuned"]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two notes, and how the first stands to the second."""

    id: str
    language: str
    relation: str
    kind: str
    first: str
    second: str


def pairs(half: Half, folder: Path = FOLDER) -> list[Pair]:
    """One half: of each language and relation every second pair, by id, beginning with the first for `tuned`."""
    groups: defaultdict[tuple[str, str], list[Pair]] = defaultdict(list)
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            pair = Pair(**json.loads(line))
            groups[pair.language, pair.relation].append(pair)
    return [pair for group in groups.values() for pair in sorted(group, key=_id)[HALVES.index(half) ^ 1 :: 2]]


def _id(pair: Pair) -> str:
    return pair.id

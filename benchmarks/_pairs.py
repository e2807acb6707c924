"""Pairs of short notes, `data/pairs`, and what the likelihood that they say the same learns from them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from threefold.realms.mem.leftover import Seen, seen_of
from threefold.realms.mem.likeness import FEATURES, Model, note_of, relation_of, saturated

FOLDER = Path(__file__).resolve().parent / "data" / "pairs"
JUDGED, TUNED = FOLDER / "judged", FOLDER / "tuned"
PRECISION, RIDGE, STEPS = 0.99, 1e-4, 5_000


@dataclass(frozen=True, slots=True)
class Pair:
    """Two notes, and how the first stands to the second."""

    id: str
    language: str
    relation: str
    kind: str
    first: str
    second: str

    @property
    def half(self) -> str:
        """Which half it is in: every second number."""
        return "odd" if int(self.id[-3:]) % 2 else "even"


def pairs(folder: Path = FOLDER) -> list[Pair]:
    """The pairs of a folder."""
    lines = [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()]
    return [Pair(**json.loads(line)) for line in lines]


def seen(told: Sequence[Pair]) -> list[Seen]:
    """What decides, of each pair."""
    return [seen_of(*sorted((note_of(pair.first), note_of(pair.second)), key=lambda note: note.text)) for pair in told]


def learned(told: Sequence[Pair], found: Sequence[Seen]) -> Model:
    """Weights and offset from pairs without a conflict, and the lowest threshold with the precision asked for."""
    own = [number for number, one in enumerate(found) if not one.conflict]
    x = np.array([[*(saturated(getattr(found[at], name)) for name in FEATURES), 1.0] for at in own])
    *weights, offset = (
        round(float(value), 4) for value in fit(x, np.array([told[at].relation == "same" for at in own]))
    )
    for threshold in np.arange(0.6, 0.9, 0.01):
        model = Model(tuple(weights), offset, round(float(threshold), 2))
        merged = [
            pair.relation == "same" for pair, one in zip(told, found, strict=True) if relation_of(one, model) == "same"
        ]
        if merged and sum(merged) >= PRECISION * len(merged):
            return model
    raise SystemExit("no threshold gives the precision asked for")


def crossed(told: Sequence[Pair], found: Sequence[Seen], by: str) -> list[str]:
    """The relation of each pair, by a model that learned from none of the same language (`language`) or `half`."""
    groups = [getattr(pair, by) for pair in told]
    models = {}
    for group in sorted(set(groups)):
        others = [at for at, own in enumerate(groups) if own != group]
        models[group] = learned([told[at] for at in others], [found[at] for at in others])
    return [relation_of(one, models[group]) for group, one in zip(groups, found, strict=True)]


def fit(x: Any, y: Any) -> Any:
    """Weights, of which all but the last are held at 0 or below, by projected gradient descent (Adam)."""
    weights, mean, square = np.zeros(x.shape[1]), np.zeros(x.shape[1]), np.zeros(x.shape[1])
    ridge = np.array([RIDGE] * (x.shape[1] - 1) + [0.0])
    for step in range(1, STEPS + 1):
        gradient = x.T @ (1.0 / (1.0 + np.exp(-(x @ weights))) - y) / len(y) + ridge * weights
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        weights -= 0.05 * mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-9)
        weights[:-1] = np.minimum(weights[:-1], 0.0)
    return weights

"""Recall: the question to every place that may hold an answer, one order of all, the memories as they stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from threefold.errors import InvalidInput
from threefold.model.memory import HELD, LAYERS, Layer, Memory, Status
from threefold.model.query import LISTS, Filter, ListName
from threefold.model.scope import Scope
from threefold.realms.asking import question_for
from threefold.realms.mem import places
from threefold.realms.mem.decaying import decays
from threefold.realms.mem.keeping import steps_from
from threefold.realms.mem.scores import Decay, Scores, relevance, scores
from threefold.realms.mem.shelf import Labels, Shelf
from threefold.realms.places import Place
from threefold.realms.wiring import Ports
from threefold.search.answers import Answers
from threefold.search.rank import Placing, by_turn, depth_for, rank
from threefold.search.relevance import Gauge
from threefold.text.dates import periods
from threefold.text.excerpt import excerpt

Mode = Literal["hybrid", "fulltext", "semantic"]
_LISTS: Final[Mapping[Mode, tuple[ListName, ...]]] = {
    "hybrid": LISTS, "fulltext": ("lexical", "trigram"), "semantic": ("semantic",),
}  # fmt: skip
MAX_LIMIT: Final = 1_000
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which memories are asked for, checked."""

    layers: tuple[Layer, ...] = LAYERS
    tags: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    owner: str | None = None
    statuses: tuple[Status, ...] = tuple(HELD)
    min_relevance: float = 0.0
    min_confidence: float = 0.0

    def labels(self, agent: bool, place: Place) -> Labels:
        """What the store is to look for in one place, as an agent or the person sees it."""
        here = tuple(f"layer:{layer}" for layer in self.layers if layer in places.LAYERS_OF[place])
        groups = [
            here,
            tuple(f"status:{status}" for status in self.statuses),
            visible_to(agent),
            *((f"tag:{tag}",) for tag in self.tags),
        ]
        if self.kinds:
            groups.append(tuple(f"kind:{kind}" for kind in self.kinds))
        if self.owner is not None:
            groups.append((f"owner:{self.owner}",))
        if self.min_confidence > 0:
            groups.append(tuple(f"confidence:{step}" for step in steps_from(self.min_confidence)))
        return tuple(groups)


def visible_to(agent: bool) -> tuple[str, ...]:
    """The labels of what an agent, or else the person, may see."""
    return ("visibility:shared", "visibility:agent" if agent else "visibility:user")


@dataclass(frozen=True, slots=True)
class Recalled:
    """A memory that answers. `score` is the likelihood that it is what was asked for, as in `conv` (docs/search.md).

    `scores` are its own, `terms` those of the question.
    """

    record: Memory
    score: float
    scores: Scores
    explain: Mapping[str, Any] | None = None
    terms: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def matches(self) -> tuple[tuple[int, int], ...]:
        """The (start, end) offsets of the matching words in `record.memory`."""
        return excerpt(self.record.memory, self.terms).matches

    @property
    def ref(self) -> str:
        """The memory's reference."""
        return self.record.ref

    def as_json(self) -> dict[str, Any]:
        """The answer as plain JSON values."""
        value = {
            "ref": self.ref,
            **self.record.as_json(evidence=False),
            "score": self.score,
            "scores": self.scores.as_json(),
            "matched": [self.record.memory[start:end] for start, end in self.matches],
        }
        return value if self.explain is None else {**value, "explain": dict(self.explain)}


@dataclass(frozen=True, slots=True)
class Recall(Answers[Recalled]):
    """Memories, best first; see `Answers`."""


@dataclass(frozen=True, slots=True)
class _Ranked:
    score: float
    place: int
    id: str
    number: int
    placing: Placing


def recall(
    scope: Scope, ports: Ports, text: str, wanted: Wanted, limit: int, mode: Mode = "hybrid", explain: bool = False
) -> Recall:
    """Answer a question from memory; the arguments are checked but for `limit` and `mode`."""
    if mode not in _LISTS:
        raise InvalidInput(f"mode {mode!r} must be one of {', '.join(_LISTS)}")
    now = ports.clock()
    cycles = decays(ports.store, now)
    shelf = Shelf(scope, ports)
    since = touched_since(wanted.min_relevance, cycles)
    ranked: list[_Ranked] = []
    placed: list[Placing] = []
    semantic, warnings, terms = False, dict[str, None](), tuple[str, ...]()
    for order, place in enumerate(places.of_layers(wanted.layers)):
        where = places.place_of(scope, place)
        only = Filter(now, since=since, labels=wanted.labels(scope.agent is not None, place))
        query, said = question_for(where, ports, text, only, _LISTS[mode], depth_for(2 * limit, ports.ranking))
        found = ports.store.candidates(query)
        placing = rank(found, query, ports.ranking, periods(text, now) if ports.ranking.learned else ())
        placed.append(placing)
        for score, turns in by_turn(placing):
            number = turns[0][0]
            ranked.append(_Ranked(score, order, placing.rows.key(number).conversation, number, placing))
        warnings.update(dict.fromkeys((*said, *found.warnings)))
        semantic = semantic or bool(found.lists.get("semantic"))
        terms += query.terms + tuple(term for variants in found.corrections.values() for term, _ in variants)
    ranked.sort(key=lambda each: (-each.score, each.place, each.id))
    answers: list[Recalled] = []
    for start in range(0, len(ranked), limit):
        chunk = ranked[start : start + limit]
        kept = shelf.memories(each.id for each in chunk)
        for each in chunk:
            if each.id in kept:
                record = kept[each.id]
                own = scores(record, now, cycles)
                if own.confidence >= wanted.min_confidence and own.relevance >= wanted.min_relevance:
                    steps = each.placing.entry(each.number).explain() if explain else None
                    answers.append(Recalled(record, each.score, own, steps, terms))
        if len(answers) >= limit:
            break
    ran = "semantic" if mode == "semantic" else "hybrid" if semantic else "lexical"
    return Recall(tuple(answers[:limit]), ran, tuple(warnings), Gauge(placed, ports.unrelated))


def touched_since(least: float, cycles: Sequence[Decay]) -> datetime | None:
    """From when on what was touched is at least so relevant; None where everything is.

    Relevance grows with the time of the last touch, in steps where cycles of decay found it too old.
    """
    if least <= 0.0:
        return None
    now = max((cycle.at for cycle in cycles), default=None)
    if now is None:
        return None
    edges = sorted({cycle.at - cycle.older_than for cycle in cycles})
    if relevance(edges[0], now, cycles) >= least:
        return None
    return next((e + _MICROSECOND for e in edges if relevance(e + _MICROSECOND, now, cycles) >= least), now)

"""The hotset: at most eight memories that every turn begins with. Pinned first, then the most salient."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from threefold.model.memory import LAYERS, Layer, Memory
from threefold.model.scope import Scope
from threefold.realms.mem import places
from threefold.realms.mem.decaying import decays
from threefold.realms.mem.keeping import STEPS
from threefold.realms.mem.recalling import Recall, Wanted, recall
from threefold.realms.mem.scores import Scores, scores
from threefold.realms.mem.shelf import Shelf
from threefold.realms.wiring import Ports

SIZE: Final = 8
# Memories that are looked at: of each two steps of salience the last touched, and what answers the goal.
DEPTH: Final = 4 * SIZE
# How much it counts beside salience that a memory answers the goal; in full from this likelihood on, since the best
# answer to an unrelated goal has some hundredths.
_GOAL: Final = 0.5
_LIKELY: Final = 0.2


@dataclass(frozen=True, slots=True)
class Hot:
    """A memory of the hotset and how it got in. `answers`: how likely it answers the goal, None without one."""

    record: Memory
    scores: Scores
    answers: float | None
    weight: float

    @property
    def because(self) -> Mapping[str, Any]:
        """How it got in, as plain values."""
        found = {"pinned": self.record.pinned, "salience": self.scores.salience, "weight": self.weight}
        return found if self.answers is None else {**found, "answers_goal": self.answers}


def hotset(
    scope: Scope,
    ports: Ports,
    goal: str | None = None,
    limit: int = SIZE,
    layers: tuple[Layer, ...] = LAYERS,
    found: Recall | None = None,
) -> tuple[Hot, ...]:
    """The hotset; with a `goal` what answers it comes before what is as salient and does not.

    `found` is what was recalled for the goal already.
    """
    now = ports.clock()
    cycles = decays(ports.store, now)
    shelf = Shelf(scope, ports)
    wanted = Wanted(layers, statuses=("active",))
    answers: dict[str, float] = {}
    if found is None and goal is not None and goal.strip():
        found = recall(scope, ports, goal, wanted, DEPTH)
    if found is not None:
        answers = {each.record.id: each.score for each in found}
    records = {each.record.id: each.record for each in found or () if each.record.status == "active"}
    others = (id_ for id_ in dict.fromkeys((*_candidates(scope, shelf, wanted), *answers)) if id_ not in records)
    records |= {id_: record for id_, record in shelf.memories(others).items() if record.status == "active"}
    hot = []
    for record in records.values():
        if vouched(record):
            own = scores(record, now, cycles)
            likely = None if not answers else answers.get(record.id, 0.0)
            hot.append(Hot(record, own, likely, own.salience + _GOAL * min(1.0, (likely or 0.0) / _LIKELY)))
    hot.sort(key=lambda each: (not each.record.pinned, -each.weight, each.record.id))
    return tuple(hot[:limit])


def vouched(record: Memory) -> bool:
    """Whether a person stands behind it: what only agents say is no part of every turn."""
    return any(each.by in ("user", "import") and each.signal != "contradicted" for each in record.evidence)


def _candidates(scope: Scope, shelf: Shelf, wanted: Wanted) -> Iterable[str]:
    """Ids of what may belong to the hotset: all that is pinned, then by falling step of salience the last touched.

    A memory's step is its salience when it was touched, which falls from then on in the same way for all of a layer.
    """
    for place in places.of_layers(wanted.layers):
        where = places.place_of(scope, place)
        labels = wanted.labels(scope.agent is not None, place)
        few = shelf.newest(where, labels, DEPTH)
        if len(few) < DEPTH:  # that is all there is
            yield from few
            continue
        yield from shelf.newest(where, (*labels, ("pinned",)), DEPTH)
        found = 0
        for step in range(STEPS - 1, 0, -2):
            salient = (f"salience:{step}", f"salience:{step - 1}")
            ids = shelf.newest(where, (*labels, salient), DEPTH)
            yield from ids
            found += len(ids)
            if found >= DEPTH:
                break

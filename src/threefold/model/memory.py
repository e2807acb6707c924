"""A curated memory: what is held to be true, the evidence for it, and how far it can be relied on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Final, Literal, get_args

from threefold.model.codec import compact_json
from threefold.model.paging import Cursor
from threefold.model.redaction import marks
from threefold.model.times import iso

Layer = Literal["working", "session", "longterm", "organizational", "global"]
Status = Literal["proposed", "active", "weakened", "superseded", "merged", "retired", "rejected"]
# Who wrote: the host says so, by the handle that it gives out.
Actor = Literal["user", "agent", "reconciler", "import"]
Signal = Literal["stated", "observed", "imported", "edited", "confirmed", "contradicted", "merged"]
# Who may see a record: both, the person alone, or agents alone.
Visibility = Literal["shared", "user", "agent"]

LAYERS: Final[tuple[Layer, ...]] = get_args(Layer)
"""In the order in which they are put into a context."""
STATUSES: Final[tuple[Status, ...]] = get_args(Status)
VISIBILITIES: Final[tuple[Visibility, ...]] = get_args(Visibility)
LIFETIMES: Final[Mapping[Layer, timedelta]] = {"working": timedelta(seconds=300), "session": timedelta(seconds=3600)}
"""How long a record of a layer lives from when it was last stored; those of other layers have no end."""
# What is held to be true, if not as firmly in one case.
HELD: Final[frozenset[Status]] = frozenset({"active", "weakened"})


@dataclass(frozen=True, slots=True)
class Evidence:
    """One reason to believe a record, or not to. `agent` names the agent that gave it, `source` what it came from.

    `source` is a reference or any other name; what one source says again is no new evidence.
    """

    signal: Signal
    by: Actor
    at: datetime
    agent: str | None = None
    source: str | None = None
    note: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The evidence as plain JSON values; absent parts are left out."""
        return {name: value for name, value in _plain(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Memory:
    """A record. `memory` is the compact note, `context` why it is there: provenance, examples, rationale.

    `kind` is open: fact, preference, decision, constraint, spec, milestone, anchor, … `owner` names whom or what it is
    about where that is not the user. `importance` is from 0 to 1. `touched` is when it was last stored or confirmed,
    which is what freshness, relevance and the layer's lifetime count from. `supersedes` are records that it takes the
    place of, `superseded_by` the one that took its place or that it was merged into.
    """

    id: str
    memory: str
    context: str
    kind: str
    layer: Layer
    tags: tuple[str, ...]
    importance: float
    created: datetime
    updated: datetime
    touched: datetime
    status: Status = "active"
    owner: str | None = None
    visibility: Visibility = "shared"
    pinned: bool = False
    revision: int = 1
    evidence: tuple[Evidence, ...] = ()
    expires: datetime | None = None
    supersedes: tuple[str, ...] = ()
    superseded_by: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    app: str | None = None

    @property
    def ref(self) -> str:
        """Its reference."""
        return f"mem:record:{self.id}"

    @property
    def cursor(self) -> Cursor:
        """Where a page that ends with it ended."""
        return Cursor(self.touched, self.id)

    @property
    def redacted(self) -> Mapping[str, int]:
        """How many marks of redaction stand in it, by kind."""
        return marks(self.memory, self.context, compact_json(self.metadata))

    def as_json(self, evidence: bool = True) -> dict[str, Any]:
        """The record as plain JSON values, with its evidence or without."""
        value = _plain(self)
        del value["evidence"]
        return {**value, "evidence": [each.as_json() for each in self.evidence]} if evidence else value


@dataclass(frozen=True, slots=True)
class Revision:
    """A change of a record: the record as it was left, who changed it, when, by which act and why."""

    record: Memory
    by: Actor
    at: datetime
    act: str
    why: str | None = None
    agent: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The revision as plain JSON values; its record without evidence, which has times of its own."""
        return {**_plain(self), "record": self.record.as_json(evidence=False)}


def _plain(value: Evidence | Memory | Revision) -> dict[str, Any]:
    found = {field.name: getattr(value, field.name) for field in fields(value)}
    return {
        name: iso(each) if isinstance(each, datetime) else list(each) if isinstance(each, tuple) else each
        for name, each in found.items()
    }

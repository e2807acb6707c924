"""Scores of a memory, each from 0 to 1 and each explained from what it came from. Pure.

Confidence is the mean of a Beta distribution over evidence (the rule of succession, Laplace 1774): each piece adds its
weight to one side of an even start. Freshness halves with each half-life since the record was last stored or confirmed.
Salience is a weighted mean of all four.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Final

from threefold.model.memory import Actor, Evidence, Layer, Memory, Signal
from threefold.model.times import iso

# How much a piece of evidence weighs: what a person says for themselves counts most. Ours; what matters is the order.
_FOR: Final[Mapping[Signal, float]] = {
    "stated": 3.0, "edited": 3.0, "confirmed": 3.0, "imported": 2.0, "observed": 1.0, "merged": 1.0,
}  # fmt: skip
_AGAINST: Final[Mapping[Signal, float]] = {"contradicted": 3.0}
_OF: Final[Mapping[Actor, float]] = {"user": 1.0, "import": 1.0, "agent": 0.5, "reconciler": 0.5}
# Of a record whose importance nobody gave.
IMPORTANCE: Final[Mapping[str, float]] = {
    "constraint": 0.8, "decision": 0.7, "spec": 0.7, "preference": 0.6, "milestone": 0.6, "fact": 0.5,
}  # fmt: skip
USUAL_IMPORTANCE: Final = 0.5
_HALF_LIFE: Final[Mapping[Layer, timedelta]] = {"working": timedelta(minutes=2.5), "session": timedelta(minutes=30)}
_LONG_HALF_LIFE: Final = timedelta(days=45)
_SALIENCE: Final[Mapping[str, float]] = {"confidence": 0.35, "importance": 0.3, "freshness": 0.2, "relevance": 0.15}


@dataclass(frozen=True, slots=True)
class Decay:
    """A cycle of decay: relevance of what was not touched for `older_than` is multiplied by `factor`, to no less
    than `floor`."""

    at: datetime
    factor: float
    floor: float
    older_than: timedelta


@dataclass(frozen=True, slots=True)
class Scores:
    """A record's scores at a moment; `because` says from what."""

    confidence: float
    importance: float
    freshness: float
    relevance: float
    salience: float
    because: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """The scores as plain JSON values."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**found, "because": {**self.because, "touched": iso(self.because["touched"])}}


def scores(record: Memory, now: datetime, decays: Sequence[Decay] = ()) -> Scores:
    """All scores of a record; `decays` are the cycles so far, oldest first."""
    counted = list(distinct(record.evidence))
    for_it = sum(weight(each) for each in counted if each.signal in _FOR)
    against = sum(weight(each) for each in counted if each.signal in _AGAINST)
    found = {
        "confidence": (1.0 + for_it) / (2.0 + for_it + against),
        "importance": record.importance,
        "freshness": freshness(record.layer, record.touched, now),
        "relevance": relevance(record.touched, now, decays),
    }
    signals = [each.signal for each in counted]
    because = {
        "for": for_it,
        "against": against,
        "evidence": {signal: signals.count(signal) for signal in dict.fromkeys(signals)},
        "touched": record.touched,
        "salience": {name: share * found[name] for name, share in _SALIENCE.items()},
    }
    salience = sum(share * found[name] for name, share in _SALIENCE.items())
    return Scores(**found, salience=salience, because=because)


def distinct(evidence: Iterable[Evidence]) -> Iterable[Evidence]:
    """Evidence without what one source says again; each time that a person speaks without a source counts."""
    seen: set[tuple[object, ...]] = set()
    for each in evidence:
        # An agent that names no source is itself the source.
        key = (each.signal, each.by, each.agent, each.source)
        if (each.by == "user" and each.source is None) or key not in seen:
            seen.add(key)
            yield each


def weight(evidence: Evidence) -> float:
    """How much a piece of evidence counts, for or against."""
    return (_FOR.get(evidence.signal) or _AGAINST[evidence.signal]) * _OF[evidence.by]


def freshness(layer: Layer, touched: datetime, now: datetime) -> float:
    """2^(−age / half-life): 45 days, or half of what the layer lives; what is dated in the future is fresh."""
    age = max(now - touched, timedelta(0))
    return float(2.0 ** -(age / _HALF_LIFE.get(layer, _LONG_HALF_LIFE)))


def relevance(touched: datetime, now: datetime, decays: Sequence[Decay]) -> float:
    """1 when touched; every cycle since then that found it old enough has taken its share."""
    value = 1.0
    for cycle in decays:
        if cycle.at <= now and touched <= cycle.at - cycle.older_than:
            value = max(min(value, cycle.floor), value * cycle.factor)
    return value

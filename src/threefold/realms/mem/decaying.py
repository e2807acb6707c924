"""Decay: cycles are kept once for all memories, and counted when a memory is read. So a cycle costs one write.

Cycles that make no difference any more are left out, so that a read costs the same after years: with the usual numbers
some fifty are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from threefold.errors import Conflict, InvalidInput
from threefold.model.codec import digest_of, log_to_json
from threefold.model.commit import Commit, RecordTurn
from threefold.model.record import TurnLog, TurnRecord
from threefold.model.times import iso, parse_moment
from threefold.ports import Store
from threefold.realms.mem import checking
from threefold.realms.mem.places import DECAYS
from threefold.realms.mem.scores import Decay, relevance

_LEDGER: Final = ("decays", "cycles")
# Cycles, and names of cycles that ran, are kept at most: some years of daily ones.
_MOST: Final = 2_000
_TRIES: Final = 5


def decays(store: Store, now: datetime) -> tuple[Decay, ...]:
    """The cycles so far, oldest first, without those that make no difference any more."""
    found = store.replays(DECAYS, [_LEDGER], now)
    return tuple(_from_json(each) for replay in found.values() for each in replay["cycles"])


def decay(
    store: Store,
    now: datetime,
    factor: float = 0.95,
    floor: float = 0.1,
    older_than: float = 86_400.0,
    cycle: str | None = None,
) -> bool:
    """Run a cycle; False where one of this name ran already.

    Raises:
        InvalidInput: a number is out of its range.
    """
    factor, floor = checking.share(factor, "factor"), checking.share(floor, "floor")
    if isinstance(older_than, bool) or not isinstance(older_than, int | float) or not 0 <= older_than <= 1e9:
        raise InvalidInput(f"older_than {older_than!r} must be seconds from 0 to 1,000,000,000")
    name = now.date().isoformat() if cycle is None else checking.kind_name(cycle)
    for _ in range(_TRIES):
        found = store.records(DECAYS, [_LEDGER], now, rows=False)
        cycles, digest = (list(found[0].replay["cycles"]), found[0].digest) if found else ([], "")
        ran = found[0].replay.get("ran", [each["cycle"] for each in cycles]) if found else []
        if name in ran:
            return False
        cycles.append({"cycle": name, "at": iso(now), "factor": factor, "floor": floor, "older_than": older_than})
        log = TurnLog(_LEDGER[1], now, now, "completed", ())
        last = needed([_from_json(each) for each in cycles])
        body = {"cycles": cycles[-min(last, _MOST) :], "ran": [*ran, name][-_MOST:]}
        record = TurnRecord(*_LEDGER, "minimal", log, (), (), body, digest_of([log_to_json(log), body]), "")
        try:
            store.commit(Commit(DECAYS, (RecordTurn(record, replaces=digest),)))
        except Conflict:
            continue  # another process ran one meanwhile, perhaps this one
        return True
    raise Conflict("cycles of decay are being run by many at once; try again")


def needed(cycles: Sequence[Decay]) -> int:
    """How many of the last cycles tell the relevance of every memory as all of them do.

    The first makes no difference where it looks no further than those after it, and what it found is brought down to
    the same by these alone.
    """
    edges = [cycle.at - cycle.older_than for cycle in cycles]
    now = cycles[-1].at
    for first in range(len(cycles) - 1):
        oldest, rest = edges[first], cycles[first + 1 :]
        further = oldest > min(edges[first + 1 :])
        if further or relevance(oldest, now, cycles[first:]) != relevance(oldest, now, rest):
            return len(cycles) - first
    return 1


def _from_json(value: dict[str, Any]) -> Decay:
    older_than = timedelta(seconds=value["older_than"])
    return Decay(parse_moment(value["at"], "at"), value["factor"], value["floor"], older_than)

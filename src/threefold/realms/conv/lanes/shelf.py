"""Lanes in the store: read by key, changed only as they were seen, found over all users."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from threefold.errors import BytesGone, Conflict, IntegrityError
from threefold.model.commit import Commit, RecordTurn
from threefold.model.scope import Scope
from threefold.ports import Upkeep
from threefold.realms.conv.lanes.keeping import REALM, from_record, lane_turn, side_record, to_record
from threefold.realms.conv.lanes.values import Lane, LaneKey
from threefold.realms.wiring import Ports

_log = logging.getLogger("threefold.lanes")
_TRIES: Final = 60
# Seconds that are waited at most before the second try; twice as long before the next, up to the longest.
_SHORTEST, _LONGEST = 0.002, 0.1
# How many times as many lanes are listed, where too few of those listed fit.
_MORE: Final = 4
# How long a lane that has nothing to do is remembered, with the keys that were used in it.
_REMEMBERED: Final = timedelta(days=7)


class Shelf:
    """The lanes of a store. Every call names the scope of one user, but for those that look over all of them."""

    def __init__(self, ports: Ports, upkeep: Upkeep) -> None:
        self._ports, self._upkeep = ports, upkeep

    def find(self, key: LaneKey) -> Lane:
        """A lane, or one that holds nothing where none is kept.

        Raises:
            Forbidden: the conversation belongs to another app.
        """
        place = [(key.conversation, lane_turn(key.scope.app, key.agent))]
        stored = self._ports.store.records(key.scope, place, self._ports.clock(), rows=False)
        return from_record(stored[0]) if stored else Lane(key.conversation, key.scope.app, key.agent)

    def change(
        self, key: LaneKey, change: Callable[[Lane], Lane], before: Callable[[], None] = lambda: None
    ) -> tuple[Lane, Lane]:
        """Change a lane as it stands; where it is changed meanwhile, once more. Returns it as it was and as it is now.

        `before` is called before each write, to put bytes that the lane will name.

        Raises:
            what `change` raises; Conflict: too many change it at once. Forbidden: as `find`.
        """
        wait, lost = _SHORTEST, 0
        for _ in range(_TRIES):
            lane = self.find(key)
            changed = change(lane)
            if changed is lane or changed == lane:
                return lane, lane
            before()
            try:
                # Bytes that are gone for good must not keep the lane from going on; who reads them is told so.
                if self._put(key, changed, lane.digest, without_lost=lost > 1):
                    return lane, changed
            except BytesGone:
                lost += 1
            # At random, so that those who wait do not come back at the same moment.
            time.sleep(wait * random.random())  # noqa: S311
            wait = min(2 * wait, _LONGEST)
        raise Conflict(f"conversation {key.conversation!r} is being sent to by many at once; try again")

    def _put(self, key: LaneKey, lane: Lane, digest: str, without_lost: bool) -> bool:
        """Keep a lane in place of what had that digest; False where that was changed meanwhile.

        Raises:
            BytesGone: of a file; `without_lost` refers to none of which they are.
        """
        now = self._ports.clock()
        record = to_record(lane, now, self._ends(now))
        if without_lost:
            there = tuple(file for file in record.files if self._ports.blobs.has(key.scope, file.digest))
            record = replace(record, files=there)
        try:
            self._ports.store.commit(Commit(key.scope, (RecordTurn(record, digest),)))
        except Conflict:
            if not digest and self._ports.store.turn(key.scope, lane.conversation, record.turn, now) == "expired":
                self._upkeep.expire(now)  # what is over but not swept yet stands in the way
            return False
        # What was there already is our own, written before a connection broke: every change has an id that is new.
        return True

    def _ends(self, now: datetime) -> datetime:
        ttl = self._ports.ttl
        return now + (_REMEMBERED if ttl is None else min(ttl, _REMEMBERED))

    def labelled(
        self, label: str, before: datetime | None, limit: int, fits: Callable[[Scope, str], bool]
    ) -> Iterator[LaneKey]:
        """Lanes of any user that have a label and are to be looked at before a moment, the first ones first.

        Only those whose owner and id of the record fit, at most `limit` of them; one that cannot be read is left out.
        """
        now = self._ports.clock()
        seen, asked, given = 0, limit, 0
        while True:
            found = self._upkeep.labelled(REALM, label, now, before, asked)
            for owner, conversation, turn in found[seen:]:
                if fits(owner, turn) and (lane := self._readable(owner, conversation, turn, now)) is not None:
                    yield LaneKey(Scope(owner.user, owner.tenant, lane.app, realm=REALM), conversation, lane.agent)
                    given += 1
                    if given == limit:
                        return
            if len(found) < asked:
                return
            seen, asked = asked, _MORE * asked

    def _readable(self, owner: Scope, conversation: str, turn: str, now: datetime) -> Lane | None:
        """A lane, where it is still there and can be read: a damaged one keeps nobody from the others."""
        try:
            stored = self._ports.store.records(owner, [(conversation, turn)], now, rows=False)
            return from_record(stored[0]) if stored else None
        except IntegrityError as error:
            _log.error("%s", error)
            return None

    def beside(self, key: LaneKey, turns: list[str]) -> dict[str, dict[str, Any]]:
        """What is kept beside a lane under these ids, where it is."""
        places = [(key.conversation, turn) for turn in turns]
        found = self._ports.store.replays(key.scope, places, self._ports.clock())
        return {turn: dict(body) for (_, turn), body in found.items()}

    def put_beside(self, key: LaneKey, turn: str, body: dict[str, Any], ended: datetime, keep: timedelta) -> None:
        """Keep something beside a lane for a while; what ended later takes the place of what is there."""
        expires = self._ports.clock() + keep
        record = side_record(key.conversation, turn, body, key.scope.app, ended, expires)
        self._ports.store.commit(Commit(key.scope, (RecordTurn(record),)))

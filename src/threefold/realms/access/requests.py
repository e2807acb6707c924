"""Requests with a key, which are done once however often they come: whoever lost an answer asks again and gets it.

The answer is kept for a day, sealed with the request's own key, of which only a hash is kept: nobody reads it in a file
of the store, not even what was removed from the store in the meantime.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from threefold.errors import Conflict
from threefold.model.codec import digest_of, log_to_json
from threefold.model.commit import Commit, RecordTurn
from threefold.model.record import TurnLog, TurnRecord
from threefold.model.scope import Scope
from threefold.model.times import EPOCH, iso, parse_moment
from threefold.ports import Store

KEPT: Final = timedelta(hours=24)
"""How long an answer is kept."""
_REALM: Final = "access.requests"
_TURN: Final = "request"
_TRIES: Final = 5


class Answer(NamedTuple):
    """What a request gave; `again` says that it was done before, and this is what it gave then."""

    body: bytes
    again: bool


class _Claim(NamedTuple):
    """A request that is this one's to do: where it is kept, and what its end takes the place of."""

    place: Scope
    name: str
    key: str
    request: str
    digest: str


class Requests:
    """The requests with a key of a store."""

    def __init__(self, store: Store, clock: Callable[[], datetime]) -> None:
        self._store, self._clock = store, clock

    def once(
        self, scope: Scope, who: str, key: str, request: str, work: Callable[[], bytes], lease: timedelta
    ) -> Answer:
        """What `work` gives, or gave before: it is run once for each `key` of `who`, a caller of this user.

        `request` tells this request from others. Where `work` raises, nothing is kept and the key may be used again.
        One that did not end within `lease`, since its process was killed, is done again.

        Raises:
            Conflict: the key was used for another request, or this one is being done. Others as `work`.
        """
        place = replace(scope.owner, realm=_REALM)
        name = hashlib.sha256(json.dumps([who, key]).encode()).hexdigest()
        begun = self._begin(place, name, key, request, lease)
        if isinstance(begun, bytes):
            return Answer(begun, True)
        try:
            body = work()
        except BaseException:
            self._put(begun, {"request": "", "until": iso(self._clock())})
            raise
        nonce = os.urandom(16)
        sealed = base64.b64encode(nonce + _sealed(key, nonce, body)).decode()
        self._put(begun, {"request": request, "sealed": sealed, "until": iso(self._clock() + KEPT)})
        return Answer(body, False)

    def _begin(self, place: Scope, name: str, key: str, request: str, lease: timedelta) -> _Claim | bytes:
        """The right to do the request, or the answer that it had."""
        for _ in range(_TRIES):
            now = self._clock()
            # One whose time is over and that was not swept yet is there too: it is what a new one takes the place of.
            found = next(iter(self._store.records(place, [(name, _TURN)], EPOCH)), None)
            if found is not None and (known := self._known(found.replay, key, request, now)) is not None:
                return known
            claim = {"request": request, "until": iso(now + lease), "by": os.urandom(16).hex()}
            record = _record(name, claim, now)
            try:
                before = "" if found is None else found.digest
                self._store.commit(Commit(place, (RecordTurn(record, replaces=before),)))
            except Conflict:
                continue  # another one was quicker; look again at what it is
            return _Claim(place, name, key, request, record.digest)
        raise Conflict("the request with this key is being done; ask again in a moment")

    def _known(self, replay: Mapping[str, Any], key: str, request: str, now: datetime) -> bytes | None:
        """The answer that is kept, or None where the request is to be done."""
        if parse_moment(replay["until"], "until") <= now:
            return None
        if replay["request"] != request:
            raise Conflict("the key was used for another request within 24 hours; use a new one for each request")
        if "sealed" not in replay:
            raise Conflict("the request with this key is being done; ask again in a moment")
        sealed = base64.b64decode(replay["sealed"])
        return _sealed(key, sealed[:16], sealed[16:])

    def _put(self, claim: _Claim, body: Mapping[str, Any]) -> None:
        record = _record(claim.name, body, self._clock())
        try:
            self._store.commit(Commit(claim.place, (RecordTurn(record, replaces=claim.digest),)))
        except Conflict:
            # It took longer than its lease, and another one does it again, or its user was forgotten meanwhile.
            return


def _record(name: str, body: Mapping[str, Any], now: datetime) -> TurnRecord:
    log = TurnLog(_TURN, now, now, "completed", ())
    digest = digest_of([log_to_json(log), body])
    return TurnRecord(name, _TURN, "minimal", log, (), (), body, digest, "", expires=now + KEPT)


def _sealed(key: str, nonce: bytes, data: bytes) -> bytes:
    """Data sealed with a key and a number that is used once, or opened: both are the same."""
    pad = hashlib.shake_256(nonce + key.encode()).digest(len(data))
    return (int.from_bytes(data) ^ int.from_bytes(pad)).to_bytes(len(data))

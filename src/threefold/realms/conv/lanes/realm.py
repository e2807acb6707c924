"""The lanes of a store: what is sent is accepted here, and whoever holds a lane changes it here. Every call is durable.

A door, which runs turns, names itself as the `holder` of those it runs. It holds one until a moment that it puts off
again and again; who comes later than that may take the turn over, to record that it was stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Any, Final

from threefold.model.scope import Scope
from threefold.model.times import iso, parse_moment
from threefold.ports import Redactor, Upkeep
from threefold.realms.conv.lanes import changing
from threefold.realms.conv.lanes.arriving import Draft
from threefold.realms.conv.lanes.keeping import REALM, lane_turn, log_turn, runs, waits, watch_turn
from threefold.realms.conv.lanes.shelf import Shelf
from threefold.realms.conv.lanes.values import Accepted, Lane, LaneKey, LaneView, Running, Sent
from threefold.realms.conv.recorder import new_turn_id
from threefold.realms.wiring import Ports

# How long events of a turn are kept beside its lane after they were put there, and how long a look counts as watching.
_KEPT: Final = timedelta(minutes=10)
WATCHED: Final = timedelta(seconds=20)
_TICK: Final = timedelta(microseconds=1)


class Lanes:
    """The lanes of a store; a `LaneKey` says of which user, conversation and agent."""

    def __init__(self, ports: Ports, upkeep: Upkeep) -> None:
        self._ports, self._shelf = ports, Shelf(ports, upkeep)

    @property
    def redact(self) -> Redactor | None:
        """The rule by which everything is redacted before it is kept."""
        return self._ports.redact

    @property
    def clock(self) -> Callable[[], datetime]:
        """What time it is for leases."""
        return self._ports.clock

    def key(self, scope: Scope, conversation: str, agent: str | None = None) -> LaneKey:
        """The lane of a user's conversation."""
        return LaneKey(Scope(scope.user, scope.tenant, scope.app, realm=REALM), conversation, agent)

    def lane(self, key: LaneKey) -> Lane:
        """A lane as it is."""
        return self._shelf.find(key)

    def view(self, key: LaneKey) -> LaneView:
        """What is to be seen of a lane."""
        return LaneView.of(self.lane(key))

    def submit(
        self, key: LaneKey, draft: Draft, most: int, opening: Callable[[], None] = lambda: None
    ) -> tuple[Accepted, Lane]:
        """Accept a submission; `most` is how many may wait. `opening` is called before one that opens a turn is kept.

        Raises:
            Conflict: too much waits already, or something else was sent under the key. What `opening` raises.
        """
        turn, answers = new_turn_id(), list[Accepted]()

        def accept(lane: Lane) -> Lane:
            changed, answer = changing.accept(lane, draft.sent, turn, most, draft.key)
            answers.append(answer)
            if answer.joined == "opened":
                opening()
            return changed

        def put() -> None:
            for data in draft.data:
                self._ports.blobs.put(key.scope, data)

        _, lane = self._shelf.change(key, accept, put)
        return answers[-1], lane

    def next(self, key: LaneKey, holder: str, lease: timedelta, opening: bool = True) -> Running | None:
        """The turn that is now this holder's: what waits, opened, or a closed one that nobody held any more, to end it.

        None where there is neither. Without `opening` what waits is left to others.
        """
        return self._mine(key, lambda lane, now: changing.take(lane, holder, now, now + lease, opening))

    def stop(self, key: LaneKey, holder: str, lease: timedelta, turn: str | None = None) -> Running | None:
        """The turn of what waits, where none runs, closed and cancelled: it is this holder's to end. Else None."""
        return self._mine(key, lambda lane, now: changing.stop(lane, holder, now, now + lease, turn))

    def _mine(self, key: LaneKey, change: Callable[[Lane, datetime], Lane]) -> Running | None:
        before, after = self._shelf.change(key, lambda lane: change(lane, self._ports.clock()))
        return None if after is before else after.running

    def renew(self, key: LaneKey, holder: str, turn: str, lease: timedelta) -> Lane:
        """Go on holding a turn.

        Raises:
            Conflict: it is not held any more.
        """
        return self._changed(key, lambda lane, now: changing.renew(lane, holder, turn, now + lease))

    def close(self, key: LaneKey, holder: str, turn: str, seen: int, lease: timedelta, force: bool = False) -> Running:
        """Let a turn take no more in, and give it as it is then; if it is `cancelled`, it is to be recorded as that.

        Where more than the first `seen` submissions came, and it is neither cancelled nor `force` is set, it stays
        open.

        Raises:
            Conflict: it is not held any more.
        """
        lane = self._changed(key, lambda lane, now: changing.close(lane, holder, turn, seen, now + lease, force))
        return changing.held(lane, holder, turn)

    def end(self, key: LaneKey, holder: str, turn: str) -> Lane:
        """Let a turn be over, which is recorded.

        Raises:
            Conflict: it is not held any more.
        """
        return self._changed(key, lambda lane, _: changing.end(lane, holder, turn))

    def cancel(self, key: LaneKey, turn: str | None = None) -> bool:
        """Have the turn that runs stop, if it is this one; whether there is one to stop."""
        before, after = self._shelf.change(key, lambda lane: changing.cancel(lane, turn))
        return after is not before

    def withdraw(self, key: LaneKey, submission: str) -> Sent:
        """Take back a submission that waits, and give it.

        Raises:
            Conflict: a turn has it already. NotFound: nothing waits under this id (any more).
        """
        before, _ = self._shelf.change(key, lambda lane: changing.withdraw(lane, submission))
        return next(each for each in before.waiting if each.id == submission)

    def _changed(self, key: LaneKey, change: Callable[[Lane, datetime], Lane]) -> Lane:
        return self._shelf.change(key, lambda lane: change(lane, self._ports.clock()))[1]

    def free(
        self, app: str | None, limit: int, agents: Collection[str] | None = None, busy: Collection[Scope] = ()
    ) -> list[LaneKey]:
        """Lanes of an app, of any user, in which something waits and no turn runs; those that wait longest first.

        With `agents`, only lanes of these and of no agent that was named; none of owners who are `busy`.
        """
        named = None if agents is None else {lane_turn(app, agent) for agent in (None, *agents)}

        def fits(owner: Scope, turn: str) -> bool:
            return owner not in busy and (named is None or turn in named)

        return list(self._shelf.labelled(waits(app), None, limit, fits))

    def left(self, app: str | None, limit: int, busy: Collection[Scope] = ()) -> list[LaneKey]:
        """Lanes of an app, of any user, in which a turn runs that nobody holds any more; none of who is `busy`."""
        before = self._ports.clock() + _TICK
        return list(self._shelf.labelled(runs(app), before, limit, lambda owner, _: owner not in busy))

    def read(self, key: LaneKey, digest: str) -> bytes:
        """The bytes of a file that was sent.

        Raises:
            NotFound, IntegrityError: they are lost.
        """
        return self._ports.blobs.get(key.scope, digest)

    def watch(self, key: LaneKey) -> None:
        """Say that somebody looks at a lane from another process than that which runs its turn."""
        until = self._ports.clock() + WATCHED
        turn = watch_turn(key.scope.app, key.agent)
        self._shelf.put_beside(key, turn, {"until": iso(until)}, until, 2 * WATCHED)

    def watched(self, key: LaneKey) -> bool:
        """Whether somebody looks at a lane from another process."""
        turn = watch_turn(key.scope.app, key.agent)
        body = self._shelf.beside(key, [turn]).get(turn)
        return body is not None and parse_moment(body["until"], "until") > self._ports.clock()

    def put_log(self, key: LaneKey, turn: str, body: dict[str, Any], number: int) -> None:
        """Keep the events of a turn for viewers at other processes; `number` grows with every edition of them."""
        ended = self._ports.clock() + number * _TICK
        self._shelf.put_beside(key, log_turn(turn), body, ended, _KEPT)

    def log(self, key: LaneKey, turn: str) -> dict[str, Any] | None:
        """The events of a turn that were kept for viewers, as far as they were."""
        return self._shelf.beside(key, [log_turn(turn)]).get(log_turn(turn))

"""What becomes of a lane: every change of one, as a function of the lane and a moment. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from threefold.errors import Conflict, NotFound, TooMany
from threefold.realms.conv.lanes.values import Accepted, Joined, Key, Lane, Running, Sent

# Keys that a lane remembers, and turns that ended.
MAX_KEYS, MAX_ENDED = 128, 20
LOST: Final = "the lane was taken over by another process, or forgotten"


def accept(lane: Lane, sent: Sent, turn: str, most: int, key: Key | None = None) -> tuple[Lane, Accepted]:
    """Take in a submission; `turn` is the id of the turn that it may open, `most` how many may wait.

    A steer joins the turn that runs, as long as that takes any in. All else waits; what waits is one turn together.

    Raises:
        TooMany: too much waits already. Conflict: something else was sent under the key.
    """
    for known in lane.keys:
        if key is not None and known.key == key.key:
            if known.what != key.what:
                raise Conflict("key: something else was sent under it before; give each submission a key of its own")
            return lane, Accepted(known.submission, known.turn, "repeated", known.position)
    running = lane.running
    if (answer := _there(lane, sent)) is not None:
        return lane, answer
    if sent.kind == "steer" and running is not None and not running.closed:
        if sum(each.kind == "steer" for each in running.sent) >= most:
            raise TooMany(f"this turn was interrupted {most} times; let it end, or cancel it")
        running = replace(running, sent=(*running.sent, sent))
        return _answered(replace(lane, running=running), sent, running.turn, "steered", len(running.sent), key)
    if len(lane.waiting) >= most:
        raise TooMany(
            f"{most} submissions wait in conversation {lane.conversation!r} already; let the turn that runs end, "
            "or cancel it"
        )
    waiting = (*lane.waiting, sent)
    joined: Joined = "folded" if lane.waiting else "opened" if running is None else "queued"
    changed = replace(lane, waiting=waiting, next=lane.next or turn)
    return _answered(changed, sent, changed.next, joined, len(waiting), key)


def _there(lane: Lane, sent: Sent) -> Accepted | None:
    """The answer to what is in the lane already: the connection broke after it was written."""
    running = lane.running
    if running is not None and sent in running.sent:
        return Accepted(sent.id, running.turn, "steered", running.sent.index(sent) + 1)
    if sent in lane.waiting:
        place = lane.waiting.index(sent)
        joined: Joined = "folded" if place else "opened" if running is None else "queued"
        return Accepted(sent.id, lane.next, joined, place + 1)
    return None


def _answered(
    lane: Lane, sent: Sent, turn: str, joined: Joined, position: int, key: Key | None
) -> tuple[Lane, Accepted]:
    if key is not None:
        known = key._replace(submission=sent.id, turn=turn, position=position)
        lane = replace(lane, keys=(*lane.keys, known)[-MAX_KEYS:])
    return lane, Accepted(sent.id, turn, joined, position)


def take(lane: Lane, holder: str, now: datetime, until: datetime, opening: bool = True) -> Lane:
    """Open a turn with what waits, or take over one whose holder does not hold it any more, to end it: it is closed.

    As it is where a turn is held, or nothing waits that is to be opened.
    """
    running = lane.running
    if running is not None and running.until <= now:
        return replace(lane, running=replace(running, holder=holder, until=until, closed=True))
    if running is not None or not lane.waiting or not opening:
        return lane
    opened = Running(lane.next, now, lane.waiting, holder, until)
    return replace(lane, running=opened, waiting=(), next="")


def stop(lane: Lane, holder: str, now: datetime, until: datetime, turn: str | None = None) -> Lane:
    """Open a turn with what waits, if it is this one, only to end it as cancelled; as it is where a turn runs."""
    if lane.running is not None or not lane.waiting or turn not in (None, lane.next):
        return lane
    stopped = Running(lane.next, now, lane.waiting, holder, until, closed=True, cancelled=True)
    return replace(lane, running=stopped, waiting=(), next="")


def held(lane: Lane, holder: str, turn: str) -> Running:
    """The turn that runs, if this holder holds it.

    Raises:
        Conflict: it does not any more.
    """
    running = lane.running
    if running is None or (running.holder, running.turn) != (holder, turn):
        raise Conflict(LOST)
    return running


def forgotten(lane: Lane, turn: str) -> bool:
    """Whether a lane in which this turn ran was removed since: it neither has it, nor did so many come after it."""
    runs = lane.running is not None and lane.running.turn == turn
    return not runs and turn not in lane.ended and len(lane.ended) < MAX_ENDED


def renew(lane: Lane, holder: str, turn: str, until: datetime) -> Lane:
    """Hold a turn until a later moment.

    Raises:
        Conflict: it is not held any more.
    """
    return replace(lane, running=replace(held(lane, holder, turn), until=until))


def close(lane: Lane, holder: str, turn: str, seen: int, until: datetime, force: bool = False) -> Lane:
    """Let the turn take no more in, if no more than the first `seen` submissions came, it is cancelled, or by `force`.

    Raises:
        Conflict: it is not held any more.
    """
    running = held(lane, holder, turn)
    if len(running.sent) > seen and not (force or running.cancelled):
        return lane
    return replace(lane, running=replace(running, closed=True, until=until))


def end(lane: Lane, holder: str, turn: str) -> Lane:
    """Let the turn be over: it is recorded.

    Raises:
        Conflict: it is not held any more.
    """
    if turn in lane.ended:
        return lane
    held(lane, holder, turn)
    return replace(lane, running=None, ended=(*lane.ended, turn)[-MAX_ENDED:])


def withdraw(lane: Lane, submission: str) -> Lane:
    """Take back a submission that waits; what waits beside it stays, in its order.

    Raises:
        Conflict: a turn has it already. NotFound: nothing waits under this id (any more).
    """
    running = lane.running
    if running is not None and any(each.id == submission for each in running.sent):
        raise Conflict(f"submission {submission!r} is in the turn that runs; cancel that, only what waits is withdrawn")
    left = tuple(each for each in lane.waiting if each.id != submission)
    if len(left) == len(lane.waiting):
        raise NotFound(f"submission {submission!r} does not wait in conversation {lane.conversation!r} (any more)")
    return replace(lane, waiting=left, next=lane.next if left else "")


def cancel(lane: Lane, turn: str | None = None) -> Lane:
    """Have the turn that runs stop, if it is this one; as it is where there is no such."""
    running = lane.running
    if running is None or running.closed or running.cancelled or turn not in (None, running.turn):
        return lane
    return replace(lane, running=replace(running, cancelled=True))

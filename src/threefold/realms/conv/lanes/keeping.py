"""How a lane is kept: a record of the realm `conv.lanes`, in a conversation of its name. Pure.

The record has no rows, so that nothing of it is searched; its files are those of the submissions in it, so that their
bytes stay. Its labels say whether a turn runs or something waits, and it starts when that is to be looked at: when the
hold on the turn ends, or when the first that waits came.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from threefold.errors import IntegrityError, InvalidInput
from threefold.model.codec import compact_json, digest_of, log_to_json
from threefold.model.record import FileEntry, TurnLog, TurnRecord
from threefold.model.times import iso, parse_moment
from threefold.realms.conv.lanes.values import Attached, Key, Lane, Running, Sent

REALM: Final = "conv.lanes"


def lane_turn(app: str | None, agent: str | None) -> str:
    """Under which id the lane of an app and an agent is kept."""
    return f"lane-{_hash([app, agent])}"


def log_turn(turn: str) -> str:
    """Under which id the events of a turn are kept while it runs, for viewers at other processes."""
    return f"live-{_hash(turn)}"


def watch_turn(app: str | None, agent: str | None) -> str:
    """Under which id it is kept that somebody watches a lane from another process."""
    return f"watch-{_hash([app, agent])}"


def runs(app: str | None) -> str:
    """The label of an app's lanes in which a turn runs."""
    return f"lane:runs:{_hash(app)}"


def waits(app: str | None) -> str:
    """The label of an app's lanes in which something waits and no turn runs."""
    return f"lane:waits:{_hash(app)}"


def _hash(value: Any) -> str:
    return hashlib.sha256(compact_json(value).encode()).hexdigest()[:32]


def to_record(lane: Lane, now: datetime, expires: datetime | None) -> TurnRecord:
    """What is stored of a lane; `expires` is when one that has nothing to do is forgotten."""
    running, labels, started = lane.running, tuple[str, ...](), now
    if running is not None:
        labels, started = (runs(lane.app),), running.until
    elif lane.waiting:
        labels, started = (waits(lane.app),), lane.waiting[0].at
    body = {
        "agent": lane.agent, "next": lane.next, "waiting": [_sent_to_json(each) for each in lane.waiting],
        "running": None if running is None else _running_to_json(running),
        "ended": list(lane.ended), "keys": [list(key) for key in lane.keys],
    }  # fmt: skip
    log = TurnLog(lane_turn(lane.app, lane.agent), started, max(started, now), "completed", ())
    sent = (*(() if running is None else running.sent), *lane.waiting)
    files = tuple(
        FileEntry(f"{each.id}/{number}", file.digest, file.size, file.mime)
        for each in sent
        for number, file in enumerate(each.attachments)
    )
    digest = digest_of([log_to_json(log), body])
    return TurnRecord(
        lane.conversation, log.turn, "minimal", log, (), files, body, digest, "",
        app=lane.app, expires=None if labels else expires, labels=labels,
    )  # fmt: skip


def side_record(
    conversation: str, turn: str, body: Mapping[str, Any], app: str | None, ended: datetime, expires: datetime
) -> TurnRecord:
    """Something that is kept beside a lane for a while; of two editions the one that ended later counts."""
    log = TurnLog(turn, ended, ended, "completed", ())
    digest = digest_of([log_to_json(log), body])
    return TurnRecord(conversation, turn, "minimal", log, (), (), body, digest, "", app=app, expires=expires)


def from_record(stored: TurnRecord) -> Lane:
    """The lane that was stored.

    Raises:
        IntegrityError: it is none.
    """
    body = stored.replay
    try:
        running = body["running"]
        return Lane(
            conversation=stored.conversation,
            app=stored.app,
            agent=body["agent"],
            next=body["next"],
            waiting=tuple(_sent(each) for each in body["waiting"]),
            running=None if running is None else _running(running),
            ended=tuple(body["ended"]),
            keys=tuple(Key(*key) for key in body["keys"]),
            digest=stored.digest,
        )
    except (KeyError, TypeError, InvalidInput) as error:
        raise IntegrityError(f"the lane of conversation {stored.conversation!r} is damaged: {error!r}") from None


def _sent_to_json(sent: Sent) -> dict[str, Any]:
    return {
        "id": sent.id, "kind": sent.kind, "text": sent.text, "at": iso(sent.at), "author": sent.author,
        "attachments": [list(file) for file in sent.attachments], "context": [list(each) for each in sent.context],
        "redacted": dict(sent.redacted),
    }  # fmt: skip


def _sent(value: Mapping[str, Any]) -> Sent:
    return Sent(
        id=value["id"],
        kind=value["kind"],
        text=value["text"],
        at=parse_moment(value["at"], "at"),
        author=value["author"],
        attachments=tuple(Attached(*file) for file in value["attachments"]),
        context=tuple((type_, payload) for type_, payload in value["context"]),
        redacted=value["redacted"],
    )


def _running_to_json(running: Running) -> dict[str, Any]:
    return {
        "turn": running.turn, "since": iso(running.since), "sent": [_sent_to_json(each) for each in running.sent],
        "holder": running.holder, "until": iso(running.until), "closed": running.closed,
        "cancelled": running.cancelled,
    }  # fmt: skip


def _running(value: Mapping[str, Any]) -> Running:
    return Running(
        turn=value["turn"],
        since=parse_moment(value["since"], "since"),
        sent=tuple(_sent(each) for each in value["sent"]),
        holder=value["holder"],
        until=parse_moment(value["until"], "until"),
        closed=value["closed"],
        cancelled=value["cancelled"],
    )

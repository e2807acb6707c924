"""How a thread is kept: two records of the realm `thread`, in a conversation of its name. Pure.

One says that there is the thread, and whether it is archived. The other is its summary, which is derived: it has no
rows, so that nothing of it is searched or listed, and it goes with what it was made of. Each app of the user, and the
user without one, sees other turns and has a summary of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from threefold.errors import IntegrityError, InvalidInput
from threefold.model.codec import digest_of, log_to_json
from threefold.model.record import CatalogEntry, TurnLog, TurnRecord
from threefold.model.scope import Scope
from threefold.model.times import iso, parse_moment

REALM: Final = "thread"
STATE: Final = "thread"
ACTIVE, ARCHIVED = "thread:active", "thread:archived"


def place_of(scope: Scope) -> Scope:
    """Where the threads of a scope are kept."""
    return replace(scope, realm=REALM)


def summary_turn(app: str | None) -> str:
    """Under which id the summary is kept that an app's handle reads, or one without an app."""
    return "summary" if app is None else f"summary for {app}"


@dataclass(frozen=True, slots=True)
class State:
    """That there is a thread. `active` is when it was last written to, to the minute, `archived` since when it is.

    `removals` counts what was removed from its conversation; who keeps a summary names the state that was read first,
    so that nothing that was removed meanwhile is in it. `digest` is what a change names.
    """

    name: str
    created: datetime
    active: datetime
    archived: datetime | None = None
    removals: int = 0
    app: str | None = None
    expires: datetime | None = None
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """The last turn that a summary covers, as it was then: it is found again only if nothing before it has changed.

    Turns that are recorded or removed before it change its ordinal, another edition of it its end or state.
    """

    turn: str
    started: datetime
    ordinal: int
    ended: datetime
    state: str

    @classmethod
    def of(cls, entry: CatalogEntry) -> Mark:
        """The mark at a turn."""
        return cls(entry.turn, entry.started, entry.ordinal, entry.ended, entry.state)


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of the first `messages` of a thread, up to and with the turn at `mark`.

    `by` is who wrote its last part, `parts` how many were written by whom: `extract`, or the name of a model.
    """

    text: str
    mark: Mark
    messages: int
    by: str
    parts: Mapping[str, int] = field(default_factory=dict)
    expires: datetime | None = None
    digest: str = ""


def state_record(state: State, now: datetime) -> TurnRecord:
    """What is stored of a thread; threads are listed by `started`, and of two editions the later one counts."""
    body = {
        "created": iso(state.created),
        "archived": None if state.archived is None else iso(state.archived),
        "removals": state.removals,
    }
    log = TurnLog(STATE, state.active, max(state.active, now), "completed", ())
    label = ACTIVE if state.archived is None else ARCHIVED
    return _record(state.name, log, body, state.app, state.expires, (label,))


def summary_record(name: str, summary: Summary, app: str | None, now: datetime) -> TurnRecord:
    """What is stored of a summary."""
    mark = summary.mark
    body = {
        "text": summary.text,
        "messages": summary.messages,
        "by": summary.by,
        "parts": dict(summary.parts),
        "mark": {
            "turn": mark.turn,
            "started": iso(mark.started),
            "ordinal": mark.ordinal,
            "ended": iso(mark.ended),
            "state": mark.state,
        },
    }
    return _record(name, TurnLog(summary_turn(app), now, now, "completed", ()), body, app, summary.expires, ())


def _record(
    name: str,
    log: TurnLog,
    body: Mapping[str, Any],
    app: str | None,
    expires: datetime | None,
    labels: tuple[str, ...],
) -> TurnRecord:
    digest = digest_of([log_to_json(log), body])
    return TurnRecord(name, log.turn, "minimal", log, (), (), body, digest, "", app=app, expires=expires, labels=labels)


def to_state(stored: TurnRecord) -> State:
    """The state that was stored.

    Raises:
        IntegrityError: it is none.
    """
    try:
        archived = stored.replay["archived"]
        return State(
            name=stored.conversation,
            created=parse_moment(stored.replay["created"], "created"),
            active=stored.log.started,
            archived=None if archived is None else parse_moment(archived, "archived"),
            removals=stored.replay["removals"],
            app=stored.app,
            expires=stored.expires,
            digest=stored.digest,
        )
    except (KeyError, TypeError, InvalidInput) as error:
        raise IntegrityError(f"the thread {stored.conversation!r} is damaged: {error!r}") from None


def to_summary(stored: TurnRecord) -> Summary:
    """The summary that was stored.

    Raises:
        IntegrityError: it is none.
    """
    body = stored.replay
    try:
        mark = body["mark"]
        return Summary(
            text=body["text"],
            mark=Mark(
                mark["turn"],
                parse_moment(mark["started"], "started"),
                mark["ordinal"],
                parse_moment(mark["ended"], "ended"),
                mark["state"],
            ),
            messages=body["messages"],
            by=body["by"],
            parts=body["parts"],
            expires=stored.expires,
            digest=stored.digest,
        )
    except (KeyError, TypeError, InvalidInput) as error:
        raise IntegrityError(f"the summary of the thread {stored.conversation!r} is damaged: {error!r}") from None

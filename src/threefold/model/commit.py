"""What is written: one commit, one transaction. And the rule for recording a turn twice."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple

from threefold.errors import Conflict
from threefold.model.kinds import State
from threefold.model.record import Feedback, TurnRecord
from threefold.model.scope import Scope

Outcome = Literal["created", "replaced", "unchanged"]


class RecordTurn(NamedTuple):
    """Record a turn, or a fuller edition of it (`supersede`).

    With `replaces` it takes the place of the edition with that digest, whatever the two hold, or, where it is empty,
    of nothing: who changes a record says which one was seen.
    """

    record: TurnRecord
    replaces: str | None = None


class PutFeedback(NamedTuple):
    """Put a reaction on a turn. A person's replaces the person's earlier one; None takes it back."""

    conversation: str
    turn: str
    feedback: Feedback | None


Write = RecordTurn | PutFeedback


class Commit(NamedTuple):
    """Writes of one scope that happen together or not at all."""

    scope: Scope
    writes: tuple[Write, ...]


class Recorded(NamedTuple):
    """What is known of a turn that is already stored, enough to decide about a second recording."""

    state: State
    digest: str
    head: str
    ended: datetime


def outcome_of(stored: Recorded | None, write: RecordTurn) -> Outcome:
    """Decide what a write does where `stored` is there already.

    Raises:
        Conflict: as `supersede`, or what is there is not what the write replaces.
    """
    if write.replaces is None:
        return supersede(stored, write.record)
    if stored is not None and stored.digest == write.record.digest:
        return "unchanged"
    if write.replaces != ("" if stored is None else stored.digest):
        raise Conflict(f"{write.record.turn!r} of {write.record.conversation!r} was changed meanwhile; read it anew")
    return "created" if stored is None else "replaced"


def supersede(stored: Recorded | None, new: TurnRecord) -> Outcome:
    """Decide what recording `new` does where `stored` is there already.

    The recording state only rises (minimal < rich). The same content changes nothing. Other content under the same
    turn id is accepted as a fuller edition where the submissions begin alike and there are more of them, or it ended
    later, as when a session file is imported again after it has grown.

    Raises:
        Conflict: where `new` is another turn under an id that is taken.
    """
    if stored is None:
        return "created"
    if stored.digest == new.digest:
        return "unchanged"
    if stored.state == "rich" and new.state == "minimal":
        return "unchanged"
    if stored.state == "minimal" and new.state == "rich":
        return "replaced"
    if new.head.startswith(stored.head):
        fuller = (len(new.head), new.log.ended) > (len(stored.head), stored.ended)
        return "replaced" if fuller else "unchanged"
    if stored.head.startswith(new.head) and new.log.ended <= stored.ended:
        return "unchanged"
    raise Conflict(
        f"turn {new.turn!r} of conversation {new.conversation!r} is recorded with other submissions; "
        "a record is never edited, use a new turn id"
    )

"""How a board is kept: as one record of the realm `cnv`, in a conversation of its name. Pure.

What the store searches is what people wrote on it and what is not in the bin; nothing of an object is in it. Beside it
lie its last revisions, of each what it changed, as it was before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from threefold.errors import IntegrityError, InvalidInput
from threefold.model.board import Board, BoardRevision, Card, Comment, Rect, Suggestion
from threefold.model.codec import digest_of, log_to_json
from threefold.model.record import Block, TurnLog, TurnRecord
from threefold.model.rows import Row
from threefold.model.times import parse_moment
from threefold.model.titles import one_line
from threefold.realms.cnv.merging import Before, Kept, Part, Step
from threefold.text.terms import index_terms

REALM: Final = "cnv"
TURN: Final = "board"
ACTIVE, ARCHIVED = "active", "archived"
_TYPE: Final = "cnv.board"


def unmade(name: str, app: str | None, now: datetime) -> Kept:
    """A board that is not there yet."""
    return Kept(Board(name, one_line(name), now, now, revision=0, app=app))


def attached_label(conversation: str) -> str:
    """What boards are labelled by that are attached to a conversation."""
    return f"attached:{conversation}"


def text_of(board: Board) -> str:
    """What people wrote on a board, without what is in the bin."""
    notes = ((card.note, *(said.text for said in card.comments)) for card in board.chosen())
    return "\n".join(filter(None, (board.title, *(text for each in notes for text in each))))


def to_record(kept: Kept) -> TurnRecord:
    """What is stored of a board."""
    board = kept.board
    text, at = text_of(board), board.updated
    row = Row(0, "note", _TYPE, TURN, text, at, terms=index_terms(text))
    log = TurnLog(TURN, at, at, "completed", (Block(_TYPE, TURN, at, text),), counts={_TYPE: 1})
    body = {"board": _board_to_json(board), "revisions": [_step_to_json(step) for step in kept.steps]}
    return TurnRecord(
        conversation=board.name,
        turn=TURN,
        state="minimal",
        log=log,
        rows=(row,),
        files=(),
        replay=body,
        digest=digest_of([log_to_json(log), body]),
        head="",
        app=board.app,
        labels=(ARCHIVED if board.archived else ACTIVE, *map(attached_label, board.attached)),
    )


def from_record(stored: TurnRecord) -> Kept:
    """The board that was stored, with its revisions.

    Raises:
        IntegrityError: it is none.
    """
    board = board_of(stored.conversation, stored.replay)
    try:
        steps = tuple(_step_from_json(each) for each in stored.replay["revisions"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(stored.conversation, error) from None
    if not steps or steps[-1].revision != board.revision:
        raise _damaged(stored.conversation, IndexError("revisions"))
    return Kept(board, steps, stored.digest)


def board_of(name: str, replay: Mapping[str, Any]) -> Board:
    """The board that was stored, without its revisions.

    Raises:
        IntegrityError: it is none.
    """
    try:
        value = dict(replay["board"])
        value |= {at: parse_moment(value[at], at) for at in ("created", "updated")}
        cards = tuple(replace(_card_from_json(each), revision=value["revision"]) for each in value.pop("cards"))
        return Board(name, **{**value, "attached": tuple(value["attached"]), "cards": cards})
    except (KeyError, TypeError, ValueError, AttributeError, InvalidInput) as error:
        raise _damaged(name, error) from None


def _damaged(name: str, error: Exception) -> IntegrityError:
    return IntegrityError(f"the board {name!r} is damaged: {error!r}")


def _board_to_json(board: Board) -> dict[str, Any]:
    value = board.as_json()
    for name in ("ref", "name"):
        del value[name]
    for card in value["cards"]:
        del card["revision"]
    return value


def _card_from_json(value: Mapping[str, Any]) -> Card:
    given = {
        "at": parse_moment(value["at"], "at"),
        "rect": Rect(**value["rect"]),
        "comments": tuple(Comment(**_timed(each)) for each in value["comments"]),
        "suggestion": _suggestion_from_json(value["suggestion"]),
    }
    return Card(**{**value, **given})


def _suggestion_from_json(value: Mapping[str, Any] | None) -> Suggestion | None:
    return None if value is None else Suggestion(**_timed(value))


def _timed(value: Mapping[str, Any]) -> dict[str, Any]:
    return {**value, "at": parse_moment(value["at"], "at")}


def _step_to_json(step: Step) -> dict[str, Any]:
    cards = {
        card: None if parts is None else {part: _part_to_json(part, value) for part, value in parts.items()}
        for card, parts in step.before.cards.items()
    }
    before = {**step.before.fields, "cards": cards}
    if "attached" in before:
        before["attached"] = list(before["attached"])
    # What it changed follows from how it was before.
    told = {name: value for name, value in step.told.as_json().items() if name not in ("cards", "fields")}
    return {**told, "before": before}


def _step_from_json(value: Mapping[str, Any]) -> Step:
    was = dict(value["before"])
    cards: dict[str, Mapping[Part, Any] | None] = {
        card: None if parts is None else {part: _part_from_json(part, each) for part, each in parts.items()}
        for card, parts in was.pop("cards").items()
    }
    if "attached" in was:
        was["attached"] = tuple(was["attached"])
    given = {name: each for name, each in _timed(value).items() if name != "before"}
    given |= {"acts": tuple(value["acts"]), "cards": tuple(cards), "fields": tuple(was)}
    return Step(BoardRevision(**given), Before(was, cards))


def _part_to_json(part: Part, value: Any) -> Any:
    if part == "layout":
        return value.as_json()
    if part == "state":
        state, suggestion = value
        return {"state": state, "suggestion": None if suggestion is None else suggestion.as_json()}
    return value


def _part_from_json(part: Part, value: Any) -> Any:
    if part == "layout":
        return Rect(**value)
    if part == "state":
        return value["state"], _suggestion_from_json(value["suggestion"])
    return value

"""What becomes of a board: each act is a pure function from how it stood to how it stands. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from threefold.errors import Conflict, Forbidden, InvalidInput, NotFound
from threefold.model.board import SHOWN_STATES, Board, By, Card, CardState, Comment, Rect, Suggestion
from threefold.realms.cnv.checking import MAX_ATTACHED, MAX_CARDS, MAX_COMMENTS, card_of
from threefold.realms.cnv.grid import HEIGHT, WIDTH, free_place


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes, as the host says, and when."""

    by: By
    at: datetime
    agent: str | None = None

    def suggests(self, act: Literal["pin", "bin"], why: str) -> Suggestion:
        """A suggestion by this writer."""
        return Suggestion(act, why, self.by, self.at, self.agent)

    def made(self, suggestion: Suggestion) -> bool:
        """Whether a suggestion is by this writer."""
        return (suggestion.by, suggestion.agent) == (self.by, self.agent)


def pin(
    board: Board, writer: Writer, ref: str, note: str = "", x: float | None = None, y: float | None = None,
    source: str | None = None,
) -> Board:  # fmt: skip
    """A card for what a reference names. The one that is there lies on the board from now on, in a place if one is
    given, with a note if one is given."""
    card = board.find(card_of(ref))
    if card is None:
        return _added(board, writer, ref, note, x, y, source)
    rect = card.rect if x is None or y is None else replace(card.rect, x=x, y=y)
    return _with(board, replace(card, state="placed", suggestion=None, note=note or card.note, rect=rect))


def suggest(
    board: Board, writer: Writer, ref: str, note: str = "", why: str = "", x: float | None = None,
    y: float | None = None, source: str | None = None,
) -> Board:  # fmt: skip
    """A card that waits for the person's word. One that lies there stays as it is, and what was declined is not
    suggested again by an agent; whatever note there is stays."""
    card = board.find(card_of(ref))
    suggestion = writer.suggests("pin", why)
    if card is None:
        return _added(board, writer, ref, note, x, y, source, suggestion)
    if card.state == "placed" or (card.state == "declined" and writer.by == "agent"):
        return board
    if card.suggestion is not None and (not writer.made(card.suggestion) or why in ("", card.suggestion.why)):
        return board
    return _with(board, replace(card, state="suggested", suggestion=suggestion, note=card.note or note))


def suggest_bin(board: Board, writer: Writer, card: str, why: str = "") -> Board:
    """A suggestion to put a card into the bin; the first one stays until the person has said a word."""
    found = card_on(board, card)
    if found.state == "suggested":
        raise Conflict(f"card {card!r} on board {board.name!r} is only suggested; decline it instead")
    if found.state != "placed":
        return board
    there = found.suggestion
    if there is not None and (not writer.made(there) or why in ("", there.why)):
        return board
    return _with(board, replace(found, suggestion=writer.suggests("bin", why)))


def accept(board: Board, writer: Writer, card: str) -> Board:  # noqa: ARG001 - acts have one shape
    """What was suggested is done."""
    found, suggestion = _suggested(board, card)
    state: CardState = "placed" if suggestion.act == "pin" else "binned"
    return _with(board, replace(found, state=state, suggestion=None))


def decline(board: Board, writer: Writer, card: str) -> Board:
    """What was suggested is not done; an agent may take back its own suggestion, and make it again."""
    found, suggestion = _suggested(board, card)
    if writer.by == "agent" and not writer.made(suggestion):
        raise Forbidden(f"card {card!r}: the suggestion is not this agent's; the person declines it")
    state: CardState = "placed"
    if suggestion.act == "pin":
        state = "binned" if writer.by == "agent" else "declined"
    return _with(board, replace(found, state=state, suggestion=None))


def bin_(board: Board, writer: Writer, card: str) -> Board:  # noqa: ARG001
    """Into the bin, from where it can be restored."""
    found = card_on(board, card)
    return board if found.state not in SHOWN_STATES else _with(board, replace(found, state="binned", suggestion=None))


def restore(board: Board, writer: Writer, card: str) -> Board:  # noqa: ARG001
    """Out of the bin."""
    found = card_on(board, card)
    if found.state == "suggested":
        raise Conflict(f"card {card!r} on board {board.name!r} is suggested; accept it instead")
    return board if found.state == "placed" else _with(board, replace(found, state="placed"))


def remove(board: Board, writer: Writer, card: str) -> Board:  # noqa: ARG001
    """Off the board for good."""
    gone = card_on(board, card)
    return replace(board, cards=tuple(each for each in board.cards if each.id != gone.id))


def move(board: Board, writer: Writer, card: str, x: float, y: float) -> Board:  # noqa: ARG001
    """To another place."""
    found = card_on(board, card)
    return _with(board, replace(found, rect=replace(found.rect, x=x, y=y)))


def resize(board: Board, writer: Writer, card: str, w: float, h: float) -> Board:  # noqa: ARG001
    """To another size."""
    found = card_on(board, card)
    return _with(board, replace(found, rect=replace(found.rect, w=w, h=h)))


def annotate(board: Board, writer: Writer, card: str, note: str) -> Board:  # noqa: ARG001
    """Another note, or with an empty one none."""
    return _with(board, replace(card_on(board, card), note=note))


def comment(board: Board, writer: Writer, card: str, text: str, token: str) -> Board:
    """One comment more; `token` is its id, by which it is known when it is written once more."""
    found = card_on(board, card)
    if any(each.id == token for each in found.comments):
        return board
    if len(found.comments) >= MAX_COMMENTS:
        raise InvalidInput(f"text: card {card!r} has {MAX_COMMENTS} comments, the most there can be; use its note")
    said = Comment(token, text, writer.by, writer.at, writer.agent)
    return _with(board, replace(found, comments=(*found.comments, said)))


def rename(board: Board, writer: Writer, title: str) -> Board:  # noqa: ARG001
    """Another title."""
    return replace(board, title=title)


def archive(board: Board, writer: Writer) -> Board:  # noqa: ARG001
    """Out of the list."""
    return replace(board, archived=True)


def reopen(board: Board, writer: Writer) -> Board:  # noqa: ARG001
    """Into the list again."""
    return replace(board, archived=False)


def attach(board: Board, writer: Writer, conversation: str) -> Board:  # noqa: ARG001
    """To a conversation."""
    if conversation in board.attached:
        return board
    if len(board.attached) >= MAX_ATTACHED:
        raise InvalidInput(f"conversation: board {board.name!r} is attached to {MAX_ATTACHED}, the most; detach some")
    return replace(board, attached=(*board.attached, conversation))


def detach(board: Board, writer: Writer, conversation: str) -> Board:  # noqa: ARG001
    """From a conversation."""
    return replace(board, attached=tuple(each for each in board.attached if each != conversation))


def card_on(board: Board, card: str) -> Card:
    """A card that must be there.

    Raises:
        NotFound: it is not.
    """
    found = board.find(card)
    if found is None:
        raise NotFound(f"card {card!r} is not on board {board.name!r}; cards(binned=True) has those that are")
    return found


def _suggested(board: Board, card: str) -> tuple[Card, Suggestion]:
    found = card_on(board, card)
    if found.suggestion is None:
        raise Conflict(f"card {card!r} on board {board.name!r} has no suggestion that waits; read it again")
    return found, found.suggestion


def _added(
    board: Board, writer: Writer, ref: str, note: str, x: float | None, y: float | None, source: str | None,
    suggestion: Suggestion | None = None,
) -> Board:  # fmt: skip
    if len(board.cards) >= MAX_CARDS:
        raise InvalidInput(f"ref: board {board.name!r} has {MAX_CARDS} cards, the most there can be; remove() some")
    if x is None or y is None:
        rect = free_place(card.rect for card in board.cards if card.state in SHOWN_STATES)
    else:
        rect = Rect(x, y, WIDTH, HEIGHT)
    state: CardState = "placed" if suggestion is None else "suggested"
    card = Card(card_of(ref), ref, rect, state, writer.by, writer.at, writer.agent, source, note, suggestion=suggestion)
    return replace(board, cards=(*board.cards, card))


def _with(board: Board, card: Card) -> Board:
    """The board with a card as it stands now."""
    return replace(board, cards=tuple(card if each.id == card.id else each for each in board.cards))

"""What a revision changed, back to how it was before, and whether a write contradicts what it did not see. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from threefold.errors import Conflict, InvalidInput, NotFound
from threefold.model.board import Board, BoardRevision, Card

Part = Literal["layout", "note", "state", "comments"]
PARTS: Final[Mapping[Part, Callable[[Card], Any]]] = {
    "layout": lambda card: card.rect,
    "note": lambda card: card.note,
    "state": lambda card: (card.state, card.suggestion),
    # Comments are only added, so how many there were tells which.
    "comments": lambda card: len(card.comments),
}
FIELDS: Final = ("title", "archived", "attached")
# So many revisions can be read and merged with; older ones are forgotten.
MAX_REVISIONS: Final = 100


@dataclass(frozen=True, slots=True)
class Before:
    """Fields of a board and parts of its cards as they were before a change; None for a card that was not there."""

    fields: Mapping[str, Any]
    cards: Mapping[str, Mapping[Part, Any] | None]

    def touches(self, card: str, part: Part) -> bool:
        """Whether the change was of this part of a card."""
        return card in self.cards and (self.cards[card] is None or part in (self.cards[card] or {}))


@dataclass(frozen=True, slots=True)
class Step:
    """A revision, and how it was before."""

    told: BoardRevision
    before: Before

    @property
    def revision(self) -> int:
        """The number of the revision."""
        return self.told.revision


@dataclass(frozen=True, slots=True)
class Kept:
    """A board with the steps that led to it, oldest first; `digest` is what a change of it names.

    A board at revision 0 is not there yet.
    """

    board: Board
    steps: tuple[Step, ...] = ()
    digest: str = ""


def difference(before: Board, after: Board, gone: Collection[str] = ()) -> Before:
    """What of `before` is another thing in `after`. Cards that are gone for good were never there."""
    fields = {name: getattr(before, name) for name in FIELDS if getattr(before, name) != getattr(after, name)}
    there = {card.id: card for card in before.cards if card.id not in gone}
    cards: dict[str, Mapping[Part, Any] | None] = {}
    for card in after.cards:
        was = there.get(card.id)
        if was is None:
            cards[card.id] = None
        elif was is not card:
            parts = {part: of(was) for part, of in PARTS.items() if of(was) != of(card)}
            if parts:
                cards[card.id] = parts
    return Before(fields, cards)


def stepped(kept: Kept, after: Board, gone: Collection[str], told: BoardRevision) -> Kept:
    """One revision more. What is gone for good is gone from those before, too.

    `told` needs no cards and fields; they are what differs.
    """
    before = difference(kept.board, after, gone)
    told = replace(told, cards=tuple(before.cards), fields=tuple(before.fields))
    steps = (*(without(step, gone) for step in kept.steps), Step(told, before))
    cards = tuple(replace(card, revision=told.revision) for card in after.cards)
    board = replace(after, revision=told.revision, updated=told.at, cards=cards)
    return Kept(board, steps[-MAX_REVISIONS:], kept.digest)


def without(step: Step, gone: Collection[str]) -> Step:
    """A step without what it says of some cards."""
    if not any(card in step.before.cards for card in gone):
        return step
    cards = {card: parts for card, parts in step.before.cards.items() if card not in gone}
    told = replace(step.told, cards=tuple(card for card in step.told.cards if card not in gone))
    return Step(told, replace(step.before, cards=cards))


def as_it_was(kept: Kept, revision: int) -> Board:
    """The board at one of its revisions.

    Raises:
        NotFound: it never was at this one, or it is forgotten.
    """
    if not kept.steps[0].revision <= revision <= kept.board.revision:
        raise NotFound(
            f"board {kept.board.name!r} has no revision {revision} to be read; "
            f"there are {kept.steps[0].revision} to {kept.board.revision}"
        )
    board, at = kept.board, kept.board.updated
    for step in reversed(kept.steps):
        at = step.told.at
        if step.revision == revision:
            break
        board = _undone(board, step.before)
    cards = tuple(replace(card, revision=revision) for card in board.cards)
    return replace(board, revision=revision, updated=at, cards=cards)


def _undone(board: Board, before: Before) -> Board:
    cards = tuple(_card_before(card, before) for card in board.cards if before.cards.get(card.id, {}) is not None)
    return replace(board, **before.fields, cards=cards)


def _card_before(card: Card, before: Before) -> Card:
    parts = before.cards.get(card.id)
    if not parts:
        return card
    state, suggestion = parts.get("state", (card.state, card.suggestion))
    return replace(
        card,
        rect=parts.get("layout", card.rect),
        note=parts.get("note", card.note),
        state=state,
        suggestion=suggestion,
        comments=card.comments[: parts.get("comments", len(card.comments))],
    )


def check_merge(kept: Kept, after: Board, gone: Collection[str], seen: int) -> None:
    """Refuse a write that saw revision `seen` where it would undo what it did not see.

    Raises:
        Conflict: it changes what was changed since, or nobody knows what was. InvalidInput: there is no such revision.
    """
    board = kept.board
    if seen > board.revision:
        raise InvalidInput(
            f"revision {seen} is yet to come: board {board.name!r} is at {board.revision}; read it again"
        )
    if seen == board.revision:
        return
    if seen < kept.steps[0].revision - 1:
        raise Conflict(
            f"board {board.name!r}: what was changed since revision {seen} is not known any more, it is at "
            f"{board.revision}; read it again"
        )
    since = [step for step in kept.steps if step.revision > seen]
    for what, step in _contradicted(board, after, gone, since):
        raise Conflict(
            f"board {board.name!r}: {what} was changed in revision {step.revision}, which a write that saw revision "
            f"{seen} does not know; read it again at revision {board.revision}"
        )


def _contradicted(
    board: Board, after: Board, gone: Collection[str], since: Sequence[Step]
) -> Iterator[tuple[str, Step]]:
    """What a write changes that was changed since, and when."""
    change = difference(board, after, gone)
    for step in since:
        yield from ((f"its {name}", step) for name in change.fields if name in step.before.fields)
        for card, parts in change.cards.items():
            for part in parts or ():
                if part != "comments" and step.before.touches(card, part):
                    yield f"the {part} of card {card!r}", step
        yield from ((f"card {card!r}", step) for card in gone if card in step.before.cards)

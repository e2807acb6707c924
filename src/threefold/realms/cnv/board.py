"""The handle of one board: arrange it, comment, suggest; look at what its cards show at this moment."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from threefold.errors import Forbidden
from threefold.model.board import Board, BoardRevision, Card, Looked, RenderedBoard
from threefold.model.resolved import Resolved, Shown
from threefold.model.retention import Receipt
from threefold.model.scope import Scope, check_id
from threefold.ports import Objects
from threefold.realms.cnv import changing, checking
from threefold.realms.cnv.changing import Writer
from threefold.realms.cnv.merging import as_it_was
from threefold.realms.cnv.orders import Order, order, orders
from threefold.realms.cnv.rendering import rendered
from threefold.realms.cnv.shelf import Shelf
from threefold.realms.cnv.showing import look
from threefold.realms.cnv.writing import written
from threefold.realms.redacting import Pass
from threefold.realms.wiring import Ports

# How much of an object is put into a text for a model.
_RENDERED = 300


class BoardHandle:
    """One board. It is made by what first puts something on it; reading one that is not there is NotFound.

    A handle without an agent is the person's and may do everything. An agent suggests and comments: what it pins is a
    suggestion, and all else is Forbidden. Every write that changes something is one revision more. A write may name the
    `revision` it saw: what others changed since then in other cards, or in other respects (layout, note, state), stays;
    where they changed the same it is a Conflict. Comments always stay. Without `revision` a write is of what is there.
    A `card` is given as a `Card`, its id, or the reference that it stands for.
    """

    def __init__(self, scope: Scope, ports: Ports, objects: Objects, name: str) -> None:
        self.name = check_id(name, "name")
        self._scope, self._ports, self._objects = scope, ports, objects
        self._shelf = Shelf(scope, ports)

    # Cards.

    def pin(
        self,
        ref: str,
        note: str = "",
        x: float | None = None,
        y: float | None = None,
        conversation: str | None = None,
        source: str | None = None,
        revision: int | None = None,
    ) -> Card:
        """A card for what a reference names; `conversation` completes a short one. The same reference is one card.

        One that is in the bin is restored, one that was suggested is accepted. Without `x` and `y` a new card gets the
        next free place. `source` is a reference to what it was found in.

        Raises:
            InvalidInput: an argument is malformed, or the board is full. Conflict: as the class says.
        """
        given = {"ref": ref, "note": note, "x": x, "y": y, "conversation": conversation, "source": source}
        return self._card(revision, "pin", **given)

    def suggest(
        self,
        ref: str,
        note: str = "",
        why: str = "",
        x: float | None = None,
        y: float | None = None,
        conversation: str | None = None,
        source: str | None = None,
        revision: int | None = None,
    ) -> Card:
        """A card that waits until the person accepts it. What the person declined is not suggested again."""
        given = {"ref": ref, "note": note, "x": x, "y": y, "conversation": conversation, "source": source}
        return self._card(revision, "suggest", why=why, **given)

    def suggest_bin(self, card: Card | str, why: str = "", revision: int | None = None) -> Card:
        """Suggest that a card goes into the bin."""
        return self._card(revision, "suggest_bin", card=card, why=why)

    def accept(self, card: Card | str, revision: int | None = None) -> Card:
        """Do what is suggested of a card.

        Raises:
            Conflict: nothing is.
        """
        return self._card(revision, "accept", card=card)

    def decline(self, card: Card | str, revision: int | None = None) -> Card:
        """Do not; an agent may take back its own suggestion so.

        Raises:
            Conflict: nothing is suggested.
        """
        return self._card(revision, "decline", card=card)

    def bin(self, card: Card | str, revision: int | None = None) -> Card:
        """Put a card into the bin."""
        return self._card(revision, "bin", card=card)

    def restore(self, card: Card | str, revision: int | None = None) -> Card:
        """Take a card out of the bin; what was declined, too."""
        return self._card(revision, "restore", card=card)

    def remove(self, card: Card | str, revision: int | None = None) -> Board:
        """Take a card off the board for good, and out of its revisions."""
        return self._one(revision, "remove", card=card)[0]

    def move(self, card: Card | str, x: float, y: float, revision: int | None = None) -> Card:
        """Put a card somewhere else."""
        return self._card(revision, "move", card=card, x=x, y=y)

    def resize(self, card: Card | str, w: float, h: float, revision: int | None = None) -> Card:
        """Make a card larger or smaller."""
        return self._card(revision, "resize", card=card, w=w, h=h)

    def annotate(self, card: Card | str, note: str, revision: int | None = None) -> Card:
        """Another note for a card; an empty one takes it away."""
        return self._card(revision, "annotate", card=card, note=note)

    def comment(self, card: Card | str, text: str, revision: int | None = None) -> Card:
        """Say something of a card, after what was said before."""
        return self._card(revision, "comment", card=card, text=text)

    # The board.

    def rename(self, title: str, revision: int | None = None) -> Board:
        """Another title; the name stays."""
        return self._one(revision, "rename", title=title)[0]

    def archive(self, revision: int | None = None) -> Board:
        """Take it out of the list; it can be read and changed all the same."""
        return self._one(revision, "archive")[0]

    def reopen(self, revision: int | None = None) -> Board:
        """Put it into the list again."""
        return self._one(revision, "reopen")[0]

    def attach(self, conversation: str, revision: int | None = None) -> Board:
        """Attach it to a conversation."""
        return self._one(revision, "attach", conversation=conversation)[0]

    def detach(self, conversation: str, revision: int | None = None) -> Board:
        """Detach it from a conversation."""
        return self._one(revision, "detach", conversation=conversation)[0]

    def edit(self, ops: Sequence[Mapping[str, Any]], revision: int | None = None) -> Board:
        """Up to 500 acts at once, all or none, as one revision: `{"op": "move", "card": …, "x": 0, "y": 40}`.

        `op` is the name of a method above, beside it are its arguments.

        Raises:
            InvalidInput, NotFound, Conflict, Forbidden: as the methods; nothing was changed.
        """
        clean = Pass(self._ports.redact).text
        return self._write(orders(ops, self._scope.agent, clean, _token), checking.revision(revision))

    def delete(self) -> Receipt:
        """Remove it from every file of the store, with its revisions; the receipt lists what went."""
        if self._scope.agent is not None:
            raise Forbidden("an agent may not delete a board; the person does, with a handle without agent")
        return self._shelf.delete(self.name)

    # Reading.

    def get(self, revision: int | None = None) -> Board:
        """The board as it is, or as it was at one of its last 100 revisions. What was removed since is not in it.

        Raises:
            NotFound: it is not there, or not at this revision; says which are kept.
        """
        wanted, kept = checking.revision(revision), self._shelf.one(self.name)
        return kept.board if wanted is None else as_it_was(kept, wanted)

    def cards(self, binned: bool = False, suggested: bool = True) -> tuple[Card, ...]:
        """Its cards in the order in which they came; with those in the bin, without those that are only suggested."""
        return self.get().chosen(binned, suggested)

    def history(self, limit: int = 100) -> tuple[BoardRevision, ...]:
        """What became of it: who changed what and when, newest first."""
        steps = self._shelf.one(self.name).steps
        return tuple(step.told for step in reversed(steps[-checking.limit(limit) :]))

    def look(self, size: int = 300, binned: bool = False, suggested: bool = True) -> tuple[Looked, ...]:
        """Its cards with what their objects show at this moment, of each about `size` characters."""
        return look(self._objects, self.cards(binned, suggested), checking.size(size))

    def preview(self, card: Card | str, size: int = 2000) -> Shown:
        """What the object of one card shows at this moment."""
        found = self._there(card)
        return self._objects.describe([found.ref], checking.size(size))[found.ref]

    def open(self, card: Card | str) -> Resolved:
        """The object that a card stands for.

        Raises:
            NotFound: there is no such card, or the object is gone. Forbidden: it is not this scope's to see.
        """
        return self._objects.resolve(self._there(card).ref)

    def render(self, budget: int | None = None) -> RenderedBoard:
        """The board as a text for a model, in the order of reading, in at most `budget` tokens; foreign text is quoted.

        It says what is only suggested and what is gone; what does not fit is counted.
        """
        checking.budget(budget)
        board = self.get()
        return rendered(board, look(self._objects, board.chosen(), _RENDERED), budget)

    # Inside.

    def _there(self, card: Card | str) -> Card:
        return changing.card_on(self.get(), checking.card_id(card))

    def _card(self, revision: int | None, act: str, **given: Any) -> Card:
        board, id_ = self._one(revision, act, **given)
        return changing.card_on(board, id_ or "")

    def _one(self, revision: int | None, act: str, **given: Any) -> tuple[Board, str | None]:
        """One act: the board that it leaves, and which card it was about."""
        made = order(act, given, self._scope.agent, Pass(self._ports.redact).text, _token())
        return self._write((made,), checking.revision(revision)), made.card

    def _write(self, wanted: Sequence[Order], seen: int | None) -> Board:
        agent = self._scope.agent
        writer = Writer("user" if agent is None else "agent", self._ports.clock(), agent)
        return self._shelf.change(self.name, lambda kept: written(kept, wanted, writer, seen))


def _token() -> str:
    """The id of a comment."""
    return secrets.token_hex(6)

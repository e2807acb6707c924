"""Boards as a service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, TypedDict

from msgspec import Meta

from threefold.model.board import Board
from threefold.model.ref import ObjectRef, parse_ref
from threefold.model.resolved import Resolved, Shown
from threefold.realms.cnv import BoardHandle
from threefold.services.calls import Caller, operation
from threefold.services.realms import Limit, Next, Query, RealmService, Size, after_of, next_of
from threefold.services.service import Ref, Service

Name = Annotated[str, "the board's name, or its reference"]
Card = Annotated[str, "the card's id, or the reference that it stands for"]
Pinned = Annotated[str, "what the card stands for: any reference"]
Note = Annotated[str, "why it is here, in a few words"]
Place = Annotated[float | None, "where, in units of the board; the next free place without"]
Found = Annotated[str | None, "a reference to what it was found in"]
Seen = Annotated[int | None, "the revision that was seen: what others changed since is not undone"]
Boards = Annotated[list[str] | None, "only in these boards, by name"]
Ops = Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=500)]


class Page(TypedDict):
    """Boards in a list; `next` is there where more may follow."""

    boards: list[dict[str, Any]]
    next: str | None


class Hits(TypedDict):
    """Cards and boards that were found, best first."""

    hits: list[dict[str, Any]]
    mode: str
    warnings: list[str]


class CnvService(RealmService, Service):
    """What was set aside."""

    namespace = "cnv"
    line = "Boards: what was set aside for something, as cards that stand for objects of any namespace"
    about = (
        "A card is a reference with a place, a note and comments; the object stays with its owner, and is looked up "
        "when the board is read. The person arranges; an agent suggests cards and comments. Every write is a revision; "
        "one that names the revision it saw undoes nothing that others did since."
    )
    kinds: ClassVar[Mapping[str, str]] = {"board": "a board, cnv:<name>; one of its revisions, cnv:<name>@<revision>"}

    def resolve(self, caller: Caller, ref: Ref) -> Resolved:
        """See `Service.resolve`."""
        return self._cnv(caller).resolve(_object(ref))

    def show(self, caller: Caller, refs: Sequence[Ref], size: int) -> Mapping[str, Shown]:
        """See `Service.show`."""
        return self._cnv(caller).show([_object(ref) for ref in refs], size)

    @operation()
    def list(
        self,
        caller: Caller,
        limit: Limit = 20,
        cursor: Next = None,
        archived: Annotated[bool, "archived ones too"] = False,
        attached: Annotated[str | None, "only those attached to this conversation"] = None,
    ) -> Page:
        """List boards, those last changed first, each with how many cards it has."""
        if attached is not None:
            found = self._cnv(caller).attached(attached, limit, archived)
            return {"boards": [_listed(board) for board in found], "next": None}
        found = self._cnv(caller).boards(limit, after_of(cursor), archived)
        return {"boards": [_listed(board) for board in found], "next": next_of(found, limit)}

    @operation()
    def search(
        self,
        caller: Caller,
        query: Query,
        limit: Limit = 10,
        boards: Boards = None,
        archived: Annotated[bool, "archived boards too"] = False,
    ) -> Hits:
        """Find cards by what they show now, by notes and comments, and boards by their titles, the best first."""
        found = self._cnv(caller).search(query, limit, boards, archived)
        return {"hits": [hit.as_json() for hit in found], "mode": found.mode, "warnings": [*found.warnings]}

    @operation()
    def get(
        self,
        caller: Caller,
        board: Name,
        revision: Annotated[int | None, "as it was then"] = None,
        size: Size = 300,
        binned: Annotated[bool, "cards in the bin too"] = False,
    ) -> dict[str, Any]:
        """Get a board: its cards with what each shows now; of an older revision only the cards."""
        handle = self._board(caller, board)
        if revision is not None:
            return handle.get(revision).as_json()
        cards = [each.as_json() for each in handle.look(size, binned)]
        return {**handle.get().as_json(), "cards": cards}

    @operation()
    def render(
        self, caller: Caller, board: Name, budget: Annotated[int | None, "tokens at most"] = None
    ) -> dict[str, Any]:
        """Get a board as a text of few tokens: its cards in the order of reading, quoted, with labels to cite."""
        return self._board(caller, board).render(budget).as_json()

    @operation()
    def history(self, caller: Caller, board: Name, limit: Limit = 20) -> dict[str, Any]:
        """Get what became of a board: who changed what and when, newest first."""
        return {"revisions": [each.as_json() for each in self._board(caller, board).history(limit)]}

    @operation("propose")
    def suggest(
        self,
        caller: Caller,
        board: Name,
        ref: Pinned,
        note: Note = "",
        why: Annotated[str, "why it belongs on the board"] = "",
        source: Found = None,
    ) -> dict[str, Any]:
        """Suggest a card for a board; it waits until the person accepts it."""
        return self._board(caller, board).suggest(ref, note, why, source=source).as_json()

    @operation("propose")
    def suggest_bin(
        self, caller: Caller, board: Name, card: Card, why: Annotated[str, "why it is not needed any more"] = ""
    ) -> dict[str, Any]:
        """Suggest that a card goes into the bin; the person decides."""
        return self._board(caller, board).suggest_bin(card, why).as_json()

    @operation("propose")
    def comment(self, caller: Caller, board: Name, card: Card, text: Annotated[str, "what is said"]) -> dict[str, Any]:
        """Say something of a card."""
        return self._board(caller, board).comment(card, text).as_json()

    @operation("propose", idempotent=True)
    def pin(
        self,
        caller: Caller,
        board: Name,
        ref: Pinned,
        note: Note = "",
        x: Place = None,
        y: Place = None,
        source: Found = None,
        revision: Seen = None,
    ) -> dict[str, Any]:
        """Pin what a reference names to a board, which is made when new. From an agent it is a suggestion.

        The same reference is one card, however often it is pinned.
        """
        return self._board(caller, board).pin(ref, note, x, y, source=source, revision=revision).as_json()

    @operation("write")
    def upsert(
        self,
        caller: Caller,
        board: Name,
        title: Annotated[str | None, "what it is called"] = None,
        archived: Annotated[bool | None, "out of the list, or back into it"] = None,
        revision: Seen = None,
    ) -> dict[str, Any]:
        """Make a board, or change its title, or archive it."""
        name, cnv = name_of(board), self._cnv(caller)
        ops: list[dict[str, Any]] = [] if title is None else [{"op": "rename", "title": title}]
        ops += [] if archived is None else [{"op": "archive" if archived else "reopen"}]
        made = cnv.board(name).edit(ops, revision) if ops else cnv.create(name)
        return _listed(made)

    @operation("write")
    def edit(self, caller: Caller, board: Name, ops: Ops, revision: Seen = None) -> dict[str, Any]:
        """Do several acts at once, all or none, as one revision.

        Each is an object with `op` (pin, suggest, accept, decline, bin, restore, remove, move, resize, annotate,
        comment, rename, archive, reopen, attach, detach) and what it takes, such as {"op": "bin", "card": …}.
        """
        return self._board(caller, board).edit(ops, revision).as_json()

    @operation("write", idempotent=True)
    def move(
        self, caller: Caller, board: Name, card: Card, x: float, y: float, revision: Seen = None
    ) -> dict[str, Any]:
        """Put a card somewhere else."""
        return self._board(caller, board).move(card, x, y, revision).as_json()

    @operation("write", idempotent=True)
    def resize(
        self, caller: Caller, board: Name, card: Card, w: float, h: float, revision: Seen = None
    ) -> dict[str, Any]:
        """Make a card larger or smaller."""
        return self._board(caller, board).resize(card, w, h, revision).as_json()

    @operation("write", idempotent=True)
    def annotate(self, caller: Caller, board: Name, card: Card, note: Note, revision: Seen = None) -> dict[str, Any]:
        """Write another note on a card; an empty one takes it away."""
        return self._board(caller, board).annotate(card, note, revision).as_json()

    @operation("write")
    def accept(self, caller: Caller, board: Name, card: Card, revision: Seen = None) -> dict[str, Any]:
        """Do what is suggested of a card."""
        return self._board(caller, board).accept(card, revision).as_json()

    @operation("propose")
    def decline(self, caller: Caller, board: Name, card: Card, revision: Seen = None) -> dict[str, Any]:
        """Do not do what is suggested of a card; an agent may take back its own suggestion."""
        return self._board(caller, board).decline(card, revision).as_json()

    @operation("write", idempotent=True)
    def bin(self, caller: Caller, board: Name, card: Card, revision: Seen = None) -> dict[str, Any]:
        """Put a card into the bin, from where it can be restored."""
        return self._board(caller, board).bin(card, revision).as_json()

    @operation("write", idempotent=True)
    def restore(self, caller: Caller, board: Name, card: Card, revision: Seen = None) -> dict[str, Any]:
        """Take a card out of the bin."""
        return self._board(caller, board).restore(card, revision).as_json()

    @operation("write", idempotent=True)
    def attach(
        self,
        caller: Caller,
        board: Name,
        conversation: Annotated[str, "the conversation whose contexts show it"],
        attached: Annotated[bool, "or no more"] = True,
    ) -> dict[str, Any]:
        """Attach a board to a conversation, so that its contexts show it; or detach it."""
        handle = self._board(caller, board)
        return _listed(handle.attach(conversation) if attached else handle.detach(conversation))

    @operation("write", destructive=True)
    def remove(self, caller: Caller, board: Name, card: Card, revision: Seen = None) -> dict[str, Any]:
        """Take a card off a board for good, and out of its revisions."""
        return _listed(self._board(caller, board).remove(card, revision))

    @operation("write", destructive=True, idempotent=True)
    def delete(self, caller: Caller, board: Name) -> dict[str, Any]:
        """Remove a board from every file of the store, for good; what its cards stand for stays."""
        return self._board(caller, board).delete().as_json()

    def _board(self, caller: Caller, named: str) -> BoardHandle:
        return self._cnv(caller).board(name_of(named))


def name_of(board: str) -> str:
    """The name of a board that is named by it or by its reference."""
    if not board.startswith("cnv:"):
        return board
    return _object(parse_ref(board)).id


def _listed(board: Board) -> dict[str, Any]:
    """A board without its cards, as plain values."""
    value = {**board.as_json(), "cards": len(board.chosen())}
    return {**value, "suggested": sum(card.state == "suggested" for card in board.cards)}


def _object(ref: Ref) -> ObjectRef:
    assert isinstance(ref, ObjectRef)  # noqa: S101 - of this namespace no other kind is parsed
    return ref

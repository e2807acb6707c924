"""Boards of one scope: made, listed, searched; and the handle of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from threefold.errors import Conflict, Forbidden
from threefold.model.board import Board, BoardRevision, Looked
from threefold.model.paging import Cursor
from threefold.model.ref import ObjectRef
from threefold.model.resolved import Resolved, Shown
from threefold.model.scope import Scope, check_id
from threefold.ports import Objects
from threefold.realms.asking import check_question
from threefold.realms.cnv import checking
from threefold.realms.cnv.board import BoardHandle
from threefold.realms.cnv.keeping import ACTIVE, ARCHIVED, attached_label
from threefold.realms.cnv.merging import Kept, stepped
from threefold.realms.cnv.searching import MAX_BOARDS, BoardHits, search
from threefold.realms.cnv.shelf import Shelf
from threefold.realms.cnv.showing import board_ref, look, resolved, show
from threefold.realms.cnv.writing import not_there
from threefold.realms.redacting import Pass
from threefold.realms.wiring import Ports


class Cnv:
    """What was set aside: the boards of one scope. `objects` shows what their cards stand for."""

    def __init__(self, scope: Scope, ports: Ports, objects: Objects) -> None:
        self._scope, self._ports, self._objects = scope, ports, objects
        self._shelf = Shelf(scope, ports)

    def create(self, name: str, title: str | None = None) -> Board:
        """Make a board. `name` is its address for good, any text; `title` what it is called, the name unless given.

        Raises:
            Conflict: it is there. Forbidden: an agent asks, or the name is another app's.
        """
        check_id(name, "name")
        if self._scope.agent is not None:
            raise Forbidden("an agent may not create a board; suggest something, which makes one, or ask the person")
        called = None if title is None else Pass(self._ports.redact).text(checking.title(title))
        now = self._ports.clock()

        def made(kept: Kept) -> Kept:
            if kept.board.revision:
                raise Conflict(f"board {name!r} is there already; take board({name!r}), or another name")
            board = kept.board if called is None else Board(name, called, now, now, revision=0, app=kept.board.app)
            return stepped(kept, board, (), BoardRevision(1, "user", now, ("create",)))

        return self._shelf.change(name, made)

    def board(self, name: str) -> BoardHandle:
        """The handle of a board, which need not be there yet. See `BoardHandle`."""
        return BoardHandle(self._scope, self._ports, self._objects, name)

    def boards(self, limit: int = 20, after: Board | Cursor | None = None, archived: bool = False) -> tuple[Board, ...]:
        """Boards, those last changed first, with `archived` ones too; `after` is the last one of the page before."""
        cursor = None if after is None else (after.cursor.at, after.cursor.id)
        return self._shelf.page((_listed(archived),), checking.limit(limit), cursor)

    def attached(self, conversation: str, limit: int = 20, archived: bool = False) -> tuple[Board, ...]:
        """Boards that are attached to a conversation, those last changed first."""
        label = attached_label(check_id(conversation, "conversation"))
        return self._shelf.page((_listed(archived), (label,)), checking.limit(limit))

    def look(self, boards: Sequence[Board], size: int = 300) -> tuple[tuple[Looked, ...], ...]:
        """The cards of several boards with what each shows now, but for the bin; each owner is asked once."""
        cards = [card for board in boards for card in board.chosen()]
        seen = iter(look(self._objects, cards, checking.size(size)))
        return tuple(tuple(islice(seen, len(board.chosen()))) for board in boards)

    def resolve(self, ref: ObjectRef) -> Resolved:
        """The board that a parsed reference names, at its revision where it has one.

        Raises:
            NotFound: it is not there, or not at this revision. Forbidden: it belongs to another app.
        """
        return resolved(ref, self._find)

    def editions(self, ref: ObjectRef) -> tuple[str, ...]:
        """References of the revisions of a board that can be read, the oldest first."""
        steps = self._shelf.one(board_ref(ref).id).steps
        return tuple(str(replace(ref, revision=step.revision)) for step in steps)

    def show(self, refs: Sequence[ObjectRef], size: int = 300) -> Mapping[str, Shown]:
        """What parsed references name, by reference, with at most `size` characters of text; see `Shown`."""
        return show(refs, self._find, size)

    def search(
        self, query: str, limit: int = 10, boards: Collection[str] | None = None, archived: bool = False
    ) -> BoardHits:
        """Find cards by what they show at this moment, by their notes and comments, and boards by their titles.

        In the 50 boards that were changed last, with `archived` ones too, or in those that `boards` names, and in at
        most 1,000 cards; `warnings` say what was left out. Cards of what is gone are found by their notes. What is in
        the bin is not found.

        Raises:
            InvalidInput: naming the argument that is off; an empty `query` is. NotFound: a named board is not there.
        """
        text, names = check_question(query), checking.named_boards(boards)
        checking.limit(limit)
        if names is None:
            there = self._shelf.page((_listed(archived),), MAX_BOARDS + 1)
        else:
            found = self._shelf.boards(names)
            if missing := [name for name in names if name not in found]:
                raise not_there(missing[0])
            there = tuple(found.values())
        most = MAX_BOARDS if names is None else len(there)
        return search(self._scope, self._ports, self._objects, there[:most], text, limit, len(there) > most)

    def _find(self, name: str, revision: int | None) -> Board:
        return self.board(name).get(revision)


def _listed(archived: bool) -> tuple[str, ...]:
    return (ACTIVE, ARCHIVED) if archived else (ACTIVE,)

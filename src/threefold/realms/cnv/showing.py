"""What references to boards name, and what cards show.

A board that is shown tells what was written on it, not what its cards show: a board may lie on a board.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from threefold.errors import Forbidden, InvalidInput, NotFound
from threefold.model.board import Board, Card, Looked
from threefold.model.ref import ObjectRef
from threefold.model.resolved import Resolved, Shown
from threefold.ports import Objects
from threefold.realms.cnv.keeping import text_of

# Gives a board by its name, at a revision where one is named; or raises.
Find = Callable[[str, int | None], Board]


def look(objects: Objects, cards: Sequence[Card], size: int) -> tuple[Looked, ...]:
    """Cards with what their objects show now, of each about `size` characters; each owner is asked once."""
    shown = objects.describe(list(dict.fromkeys(card.ref for card in cards)), size) if cards else {}
    return tuple(Looked(card, shown[card.ref]) for card in cards)


def board_ref(ref: ObjectRef) -> ObjectRef:
    """Return a reference to a board.

    Raises:
        InvalidInput: it names something else.
    """
    if ref.namespace != "cnv":
        raise InvalidInput(f"reference {ref} names no board; give one that begins with cnv:")
    return ref


def resolved(ref: ObjectRef, find: Find) -> Resolved:
    """The board that a reference names. Raises as `find`."""
    board = find(board_ref(ref).id, ref.revision)
    return Resolved(str(ref), "board", board.as_json(), text_of(board), title=board.title, at=board.updated)


def show(refs: Sequence[ObjectRef], find: Find, size: int) -> Mapping[str, Shown]:
    """What references name, by reference."""
    shown = {}
    for ref in refs:
        try:
            shown[str(ref)] = resolved(ref, find).shown(size)
        except (NotFound, Forbidden) as error:
            shown[str(ref)] = Shown.missing(str(ref), error)
    return shown

"""Boards that are attached to the thread, for a context: their cards as they show now, in the order of reading."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from threefold.context.gathering import Gathered, Limits
from threefold.context.packing import Forms, Item
from threefold.context.sources import Sources
from threefold.model.board import Board, Looked
from threefold.model.context import Intent
from threefold.model.resolved import cut
from threefold.realms.cnv import read_in_order
from threefold.text.quoting import set_in, spoken

# Characters of an object that are shown: shortened, and whole.
_SHORT, _WHOLE = 160, 800


def gather_boards(gathered: Gathered, intent: Intent, sources: Sources, limits: Limits) -> None:
    """Add the cards of the boards that are attached to the thread. They were set aside for it, whatever the goal is."""
    if intent.thread is None:
        return
    boards = sources.cnv.attached(intent.thread, limits.boards)
    for board, looked in zip(boards, sources.cnv.look(boards, _WHOLE), strict=True):
        gathered.add(_items(board, list(read_in_order(looked))[: limits.cards]))


def _items(board: Board, looked: list[Looked]) -> Iterator[Item]:
    because: Final = f"on the attached board {board.name}"
    for each in looked:
        card, shown = each.card, each.shown
        there = shown.standing == "there"
        # Of what cannot be seen no more is known than what was written on its card.
        if there or card.note:
            head = (board.title, shown.kind, "" if there else shown.standing, _waits(each))
            forms = Forms(partial(_text, each, _SHORT), partial(_text, each, _WHOLE))
            about = {"board": board.name, "card": card.id, "note": card.note, "kind": shown.kind}
            yield Item("board", card.ref, head, forms, shown.text, because, about=about)


def _waits(each: Looked) -> str:
    return "" if each.card.state != "suggested" else "suggested, not accepted yet"


def _text(each: Looked, size: int) -> str:
    shown, note = each.shown, each.card.note
    text = set_in(cut(shown.text or shown.title, size))
    return "\n".join(filter(None, (text, spoken("note", cut(note, size)) if note else "")))

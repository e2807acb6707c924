"""A write: some acts on a board, merged with what the writer did not see, become one revision or nothing. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from threefold.errors import NotFound
from threefold.model.board import BoardRevision
from threefold.realms.cnv.changing import Writer
from threefold.realms.cnv.merging import Kept, check_merge, difference, stepped
from threefold.realms.cnv.orders import Order


def written(kept: Kept, wanted: Sequence[Order], writer: Writer, seen: int | None) -> Kept:
    """A board after some acts, if revision `seen` allows for them; itself where nothing changes.

    Raises:
        NotFound: it is not there, and none of the acts makes one. Conflict, InvalidInput: as `check_merge`, the acts.
    """
    before = kept.board
    if not before.revision and (seen or not any(each.makes for each in wanted)):
        raise not_there(before.name)
    after = before
    for each in wanted:
        after = each.apply(after, writer)
    gone = frozenset(each.card for each in wanted if each.act == "remove" and each.card is not None)
    if seen is not None and before.revision:
        check_merge(kept, after, gone, seen)
    change = difference(before, after, gone)
    if before.revision and not (change.fields or change.cards or gone):
        return kept
    acts = tuple(dict.fromkeys(each.act for each in wanted))
    # No revision is older than the one before it, whatever the clocks of two machines say.
    at = max(writer.at, before.updated)
    return stepped(kept, after, gone, BoardRevision(before.revision + 1, writer.by, at, acts, writer.agent))


def not_there(name: str) -> NotFound:
    """The error of who asks for a board that is not there."""
    return NotFound(f"board {name!r} does not exist; pin something, or create() it")

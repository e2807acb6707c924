"""Another edition of a turn: which of its rows say what a row said."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from threefold.model.rows import Row

# Author and text.
Said = tuple[str | None, str]


def kept_rows(before: Mapping[int, Said], rows: Sequence[Row]) -> dict[int, int]:
    """The rows of an edition that say what one said before, by their numbers in the turn: number now → number then.

    No two are the same row: where several say the same, each stays in its place, and the others follow in order.
    """
    kept = {row.seq: row.seq for row in rows if before.get(row.seq) == (row.author, row.text)}
    free: defaultdict[Said, list[int]] = defaultdict(list)
    for seq in sorted(before.keys() - kept.keys(), reverse=True):
        free[before[seq]].append(seq)
    for row in rows:
        said = (row.author, row.text)
        if row.seq not in kept and free.get(said):
            kept[row.seq] = free[said].pop()
    return kept

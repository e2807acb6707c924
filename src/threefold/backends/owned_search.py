"""What one owner has in memory, handed to the scan that finds candidates in it."""

from __future__ import annotations

from threefold.backends.owned import Kept, Owned
from threefold.model.candidates import Candidates
from threefold.model.query import Filter, Query
from threefold.model.rows import Row
from threefold.model.scope import Scope
from threefold.search.scanning import Scanned, scan

Model = tuple[str, int]


def candidates(owner: Owned, query: Query, model: Model | None) -> Candidates:
    """Answer a query; `model` made the vectors."""
    warnings = _warnings(query, model)
    rows = [
        Scanned(
            key,
            row.role,
            row.at,
            kept.first_position + row.seq,
            row.text,
            row.terms,
            row.author,
            None if warnings else owner.vectors.get(key),
            _passes(kept, row, query.where, query.scope),
        )
        for kept, row, key in owner.rows()
    ]
    return scan(rows, query, warnings)


def _warnings(query: Query, model: Model | None) -> tuple[str, ...]:
    """What keeps the vectors from being asked."""
    if "semantic" not in query.lists or query.vector is None:
        return ()
    asked = (query.model, int(query.vector.shape[0]))
    if model in (None, asked):
        return ()
    return (
        f"semantic search is off: the store was embedded by {model}, this program uses {asked}; "
        "run `threefold reembed`",
    )


def _passes(kept: Kept, row: Row, where: Filter, scope: Scope) -> bool:
    record = kept.record
    return (
        kept.live(where.now)
        and scope.app in (None, record.app)
        and (where.roles is None or row.role in where.roles)
        and where.conversation in (None, record.conversation)
        and where.agent in (None, record.agent)
        and (where.since is None or row.at >= where.since)
        and (where.until is None or row.at < where.until)
        and all(not kept.labels.isdisjoint(group) for group in where.labels)
    )

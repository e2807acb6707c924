"""Lists: turns in order of their start, conversations by their last activity."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from threefold.backends.postgres.connection import Db, fetch
from threefold.backends.postgres.filtering import labelled
from threefold.backends.postgres.keys import given, owner_key
from threefold.backends.postgres.records import LIVE
from threefold.model.record import CatalogEntry, Conversation
from threefold.model.scope import Scope
from threefold.model.times import from_micros, to_micros
from threefold.model.titles import ABOUT_SIZE
from threefold.ports import CatalogQuery

# What a turn was about, and where its first row stands.
_LOOKED_UP = f"""
    LEFT JOIN LATERAL (
        SELECT left(r.text, {2 * ABOUT_SIZE}) AS text FROM threefold.rows AS r
        WHERE r.owner = %(owner)s AND r.turn = t.number AND r.role IN ('summary', 'user', 'assistant')
        ORDER BY CASE r.role WHEN 'summary' THEN 0 WHEN 'user' THEN 1 ELSE 2 END, r.seq LIMIT 1
    ) AS about ON true
    CROSS JOIN LATERAL (
        SELECT coalesce(min(r.position), 0) AS first FROM threefold.rows AS r
        WHERE r.owner = %(owner)s AND r.turn = t.number) AS place"""


def catalog(db: Db, scope: Scope, query: CatalogQuery) -> tuple[CatalogEntry, ...]:
    """Turns in order of their start, newest first where asked; ordinals count within each conversation."""
    mine: dict[str, Any] = {"owner": owner_key(scope), "now": to_micros(query.now), "limit": query.limit}
    conditions = ["t.owner = %(owner)s", LIVE]
    if query.conversation is not None:
        mine["conversation"] = query.conversation
        conditions.append(
            """t.conversation = (SELECT number FROM threefold.conversations
                                 WHERE owner = %(owner)s AND name = %(conversation)s)"""
        )
    if query.ordinal is not None:
        _nth(query.ordinal, conditions, mine)
    _window(scope, query, conditions, mine)
    order = "DESC" if query.newest_first else "ASC"
    told, looked_up = ("NULL, 0", "") if query.bare else ("about.text, place.first", _LOOKED_UP)
    found = fetch(
        db,
        f"""SELECT t.conversation, c.name, t.name, t.started, t.ended, t.status, t.state, {told}, t.agent, t.app
            FROM threefold.turns AS t
            JOIN threefold.conversations AS c ON c.owner = %(owner)s AND c.number = t.conversation
            {looked_up}
            WHERE {" AND ".join(conditions)}
            ORDER BY t.started {order}, c.name {order}, t.name {order} LIMIT %(limit)s""",
        mine,
    )
    if query.bare:
        return tuple(_entry(0, *turn[1:]) for turn in found)
    return _numbered(db, scope, query, found)


def _nth(ordinal: int, conditions: list[str], mine: dict[str, Any]) -> None:
    """Only the turn with the ordinal: counted over the conversation, whatever window or app narrows the answer."""
    order = "DESC" if ordinal < 0 else "ASC"
    counted = " AND ".join(conditions)
    conditions.append(
        f"""t.number = (SELECT t.number FROM threefold.turns AS t WHERE {counted}
                       ORDER BY t.started {order}, t.name {order} LIMIT 1 OFFSET %(offset)s)"""
    )
    mine["offset"] = abs(ordinal) - 1


def _window(scope: Scope, query: CatalogQuery, conditions: list[str], mine: dict[str, Any]) -> None:
    for name, condition, moment in (("since", "t.started >=", query.since), ("until", "t.started <", query.until)):
        if moment is not None:
            conditions.append(f"{condition} %({name})s")
            mine[name] = to_micros(moment)
    if scope.app is not None:
        conditions.append("t.app = %(app)s")
        mine["app"] = scope.app
    for i, group in enumerate(query.labels):
        conditions.append(labelled("t.number", i))
        mine[f"labels{i}"] = list(group)
    if query.after is not None:
        comparison = "<" if query.newest_first else ">"
        conditions.append(
            f"(t.started, c.name, t.name) {comparison} (%(after_started)s, %(after_conversation)s, %(after_turn)s)"
        )
        started, mine["after_conversation"], mine["after_turn"] = query.after
        mine["after_started"] = to_micros(started)


def _numbered(db: Db, scope: Scope, query: CatalogQuery, found: Sequence[tuple[Any, ...]]) -> tuple[CatalogEntry, ...]:
    """Entries with their ordinals: counted for the first of each conversation, and from there on in steps of one."""
    step = -1 if query.newest_first else 1
    counted: dict[int, tuple[int, str]] = {}  # conversation → start and name of the turn to count up to
    for parent, _, name, started, *_ in found:
        counted.setdefault(parent, (started, name))
    # Where an app sees only some of the turns, each is counted.
    asked = (
        [(parent, started, name) for parent, _, name, started, *_ in found]
        if scope.app is not None
        else [(parent, *place) for parent, place in counted.items()]
    )
    ordinals = _ordinals(db, owner_key(scope), query.now, asked)
    seen: dict[int, int] = {}
    entries = []
    for parent, *turn in found:
        known = ordinals.get((parent, turn[2], turn[1]))
        seen[parent] = known if known is not None else seen[parent] + step
        entries.append(_entry(seen[parent], *turn))
    return tuple(entries)


def _entry(
    ordinal: int, conversation: str, name: str, started: int, ended: int, status: Any, state: Any, about: str | None,
    position: int, agent: str | None, app: str | None,
) -> CatalogEntry:  # fmt: skip
    told = (given(about) or "")[:ABOUT_SIZE]
    return CatalogEntry(
        conversation, name, ordinal, from_micros(started), from_micros(ended), status, state, told, position, agent, app
    )


def _ordinals(
    db: Db, owner: UUID, now: datetime, places: Sequence[tuple[int, int, str]]
) -> dict[tuple[int, int, str], int]:
    """How many live turns of its conversation start no later than each place."""
    if not places:
        return {}
    found = fetch(
        db,
        f"""SELECT p.conversation, p.started, p.name, counted.n
            FROM unnest(%(parents)s::integer[], %(starts)s::bigint[], %(names)s::text[])
                AS p (conversation, started, name)
            CROSS JOIN LATERAL (
                SELECT count(*) AS n FROM threefold.turns AS t WHERE t.owner = %(owner)s
                AND t.conversation = p.conversation AND (t.started, t.name) <= (p.started, p.name) AND {LIVE}
            ) AS counted""",
        {
            "owner": owner,
            "now": to_micros(now),
            "parents": [p for p, _, _ in places],
            "starts": [s for _, s, _ in places],
            "names": [n for _, _, n in places],
        },
    )
    return {(parent, started, name): n for parent, started, name, n in found}


def conversations(
    db: Db, scope: Scope, now: datetime, limit: int, after: tuple[datetime, str] | None
) -> tuple[Conversation, ...]:
    """Conversations with at least one live turn, the last active first."""
    mine: dict[str, Any] = {"owner": owner_key(scope), "now": to_micros(now), "limit": limit}
    conditions = ["c.owner = %(owner)s"]
    if scope.app is not None:
        conditions.append("c.app = %(app)s")
        mine["app"] = scope.app
    if after is not None:
        conditions.append("(c.last_activity, c.name) < (%(last)s, %(name)s)")
        mine["last"], mine["name"] = to_micros(after[0]), after[1]
    found = fetch(
        db,
        f"""SELECT c.name, c.title, c.started, c.last_activity, c.turns, c.app FROM threefold.conversations AS c
            WHERE {" AND ".join(conditions)}
              AND EXISTS (SELECT 1 FROM threefold.turns AS t WHERE t.owner = %(owner)s
                          AND t.conversation = c.number AND {LIVE})
            ORDER BY c.last_activity DESC, c.name DESC LIMIT %(limit)s""",
        mine,
    )
    return tuple(
        Conversation(name, given(title), from_micros(started), from_micros(last), turns, app)
        for name, title, started, last, turns, app in found
    )


def having_label(
    db: Db, realm: str, label: str, now: datetime, before: datetime | None, limit: int
) -> tuple[tuple[Scope, str, str], ...]:
    """Turns of a realm that have a label, of all owners: each owner is looked up by its label, which few have."""
    found = fetch(
        db,
        f"""SELECT o.tenant, o.name, o.realm, c.name, t.name FROM threefold.owners AS o
            CROSS JOIN LATERAL (SELECT l.turn FROM threefold.labels AS l
                WHERE l.owner = o.owner AND l.label = %(label)s OFFSET 0) AS l
            CROSS JOIN LATERAL (SELECT * FROM threefold.turns AS t
                WHERE t.owner = o.owner AND t.number = l.turn OFFSET 0) AS t
            CROSS JOIN LATERAL (SELECT c.name FROM threefold.conversations AS c
                WHERE c.owner = o.owner AND c.number = t.conversation OFFSET 0) AS c
            WHERE o.realm = %(realm)s AND {LIVE} AND (%(before)s::bigint IS NULL OR t.started < %(before)s::bigint)
            ORDER BY t.started, o.tenant, o.name, c.name, t.name LIMIT %(limit)s""",
        {
            "label": label,
            "realm": realm,
            "now": to_micros(now),
            "before": None if before is None else to_micros(before),
            "limit": limit,
        },
    )
    return tuple((Scope.of(*key), conversation, turn) for *key, conversation, turn in found)

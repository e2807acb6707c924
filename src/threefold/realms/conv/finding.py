"""One question, two reads: candidates from the store, ranked by pure rooms, then the rows that are shown."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal, NamedTuple, get_args

from threefold.errors import InvalidInput
from threefold.model.candidates import Candidates
from threefold.model.kinds import ROLES
from threefold.model.query import Filter, ListName, Query
from threefold.model.ref import ConvRef, parse_ref
from threefold.model.scope import Scope, check_id
from threefold.model.times import Moment, parse_moment
from threefold.realms.asking import MAX_QUERY, check_question, question_for
from threefold.realms.conv.hits import Presentation, Results, present
from threefold.realms.wiring import Ports
from threefold.search.rank import Group, Placing, Ranking, by_conversation, by_turn, depth_for, rank
from threefold.search.relevance import Gauge
from threefold.text.dates import periods

MAX_LIMIT = 10_000
# The longest text of a hit that may be asked for, in characters, but for the whole one.
MAX_SIZE = 1_000_000
# How often a search asks for longer lists where these gave fewer hits than wanted, and how much longer: a power of 2.
MAX_DEEPER, DEEPER = 3, 4
# Turns of a conversation that come with a hit that is grouped by conversation, the best one included.
MAX_TURNS = 3
SearchScope = Literal["user", "agent", "conversation"]
Grouping = Literal["turn", "conversation"]


class Request(NamedTuple):
    """The arguments of `Conv.search`, unchecked."""

    text: str
    roles: Collection[str] | None
    conversation: str | None
    scope: SearchScope | None
    agent: str | None
    since: Moment
    until: Moment
    limit: int
    offset: int
    snippets: Collection[str]
    neighbours: int
    group: Grouping
    lists: Sequence[ListName]
    ranking: Ranking | None
    explain: bool
    size: int | None
    without: Collection[str]


def find(scope: Scope, ports: Ports, request: Request) -> Results:
    """Answer a search; see `Conv.search`."""
    text = check_question(request.text)
    where = _filter(scope, request, ports.clock())
    check_limit(request.limit, MAX_LIMIT)
    _check_offset(request.offset)
    if request.group not in get_args(Grouping):
        raise InvalidInput(f"group {request.group!r} must be turn or conversation")
    snippets = _roles(request.snippets, "snippets") or ()
    neighbours = _count(request.neighbours, "neighbours")
    if request.size is not None:
        check_limit(request.size, MAX_SIZE, "size")
    ranking = request.ranking or ports.ranking

    known = {(ref.conversation, ref.turn) for ref in map(_turn_of, request.without)}
    wanted = request.offset + request.limit
    query, warnings = question_for(scope, ports, text, where, request.lists, depth_for(2 * wanted, ranking))
    only_one = request.group == "conversation" and where.conversation is not None
    named = periods(text[:MAX_QUERY], where.now) if ranking.learned else ()
    for _ in range(MAX_DEEPER):
        found = ports.store.candidates(query)
        placing = rank(found, query, ranking, named)
        groups = [group for group in by_turn(placing) if not known or not _among(placing, group, known)]
        if request.group == "conversation":
            groups = [(score, turns[:MAX_TURNS]) for score, turns in by_conversation(placing, groups)]
        cut = any(len(hits) >= query.depth for hits in found.lists.values())
        if len(groups) >= (1 if only_one else wanted) or not cut:
            break
        # A few turns or conversations with many rows fill the lists: others may stand behind them.
        query = replace(query, depth=query.depth * DEEPER)
    else:
        warnings += ("a few turns or conversations fill the lists: others may stand deeper; narrow the search",)
    groups = groups[request.offset : wanted]
    keys = [placing.rows.key(turn[0]) for _, turns in groups for turn in turns]
    # A hit shows its best row alone; what else its turn and those around it say is for snippets.
    around = neighbours if snippets else 0
    rows = ports.store.rows(scope, keys, where.now, around, whole=bool(snippets)) if keys else ()

    shown = Presentation(query.terms + _variants(found), snippets, neighbours, request.explain, request.size)
    hits = present(placing, groups, rows, shown)
    gauge = Gauge((placing,), ports.unrelated)
    return Results(hits, _mode(query, found), (*warnings, *found.warnings), gauge, found.corrections)


def _turn_of(ref: str) -> ConvRef:
    parsed = parse_ref(ref)
    if not isinstance(parsed, ConvRef) or parsed.conversation is None:
        raise InvalidInput(f"without: {ref!r} is no reference into the record in its long form")
    return parsed


def _among(placing: Placing, group: Group, known: Collection[tuple[str | None, str]]) -> bool:
    key = placing.rows.key(group[1][0][0])
    return (key.conversation, key.turn) in known


def _mode(query: Query, found: Candidates) -> str:
    """Which kinds of lists took part: without any vector in the store the semantic one does not."""
    if query.lists == ("semantic",) and query.vector is None:
        return "none"
    if not found.lists.get("semantic"):
        return "lexical" if len(query.lists) > 1 or "semantic" not in query.lists else "semantic"
    return "hybrid" if len(query.lists) > 1 else "semantic"


def _variants(found: Candidates) -> tuple[str, ...]:
    return tuple(term for variants in found.corrections.values() for term, _ in variants)


def _filter(scope: Scope, request: Request, now: datetime) -> Filter:
    kind, conversation, agent = request.scope, request.conversation, request.agent
    if kind is not None and kind not in get_args(SearchScope):
        raise InvalidInput(f"scope {kind!r} must be user, agent or conversation")
    if conversation is not None:
        check_id(conversation, "conversation")
    elif kind == "conversation":
        raise InvalidInput("scope='conversation' needs the argument conversation")
    if kind == "user" and (conversation is not None or agent is not None):
        raise InvalidInput("scope='user' searches the whole history; leave conversation and agent out")
    if kind == "agent" and agent is None:
        agent = scope.agent
        if agent is None:
            raise InvalidInput("scope='agent' needs the argument agent, or a handle with an agent")
    return Filter(
        now=now,
        roles=_roles(request.roles, "roles"),
        conversation=conversation,
        agent=None if agent is None else check_id(agent, "agent"),
        since=None if request.since is None else parse_moment(request.since, "since"),
        until=None if request.until is None else parse_moment(request.until, "until"),
    )


def _roles(roles: Collection[str] | None, name: str) -> tuple[str, ...] | None:
    if roles is None:
        return None
    chosen = (roles,) if isinstance(roles, str) else tuple(roles)
    unknown = [role for role in chosen if role not in ROLES]
    if unknown or (name == "roles" and not chosen):
        raise InvalidInput(f"{name} must name some of {', '.join(ROLES)}, not {unknown or 'nothing'}")
    return chosen


def _count(value: int, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 100:
        raise InvalidInput(f"{name} {value!r} must be a whole number from 0 to 100")
    return value


def check_limit(limit: int, most: int, name: str = "limit") -> None:
    """Refuse a limit that is not from 1 to `most`."""
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= most:
        raise InvalidInput(f"{name} {limit!r} must be a whole number from 1 to {most}")


def _check_offset(offset: int) -> None:
    if not isinstance(offset, int) or isinstance(offset, bool) or not 0 <= offset <= MAX_LIMIT:
        raise InvalidInput(f"offset {offset!r} must be a whole number from 0 to {MAX_LIMIT}")


def check_text(value: object, name: str) -> str:
    """Refuse what is not text."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be text, not {type(value).__name__}")
    return value

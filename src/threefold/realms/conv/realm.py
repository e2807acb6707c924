"""The record of one scope: record, search, catalog, materialise, forget. Ports at the edges, pure rooms between."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from threefold.errors import Expired, InvalidInput, NotFound, Purged, ThreefoldError
from threefold.model.clean import storable
from threefold.model.commit import Commit, Outcome, PutFeedback, RecordTurn
from threefold.model.query import LISTS, Candidates, Filter, ListName, Query
from threefold.model.record import CatalogEntry, Conversation, Feedback, StoredTurn, Timeline
from threefold.model.ref import ConvRef, parse_ref
from threefold.model.retention import Receipt, Target
from threefold.model.scope import Scope, check_id
from threefold.model.times import parse_moment
from threefold.model.turn import ROLES, Turn
from threefold.ports import Blobs, CatalogQuery, Embedder, Store
from threefold.realms.conv.fold import fold
from threefold.realms.conv.hits import Presentation, Results, present
from threefold.realms.conv.recorder import Moment, TurnHandle
from threefold.realms.conv.refs import turn_ref
from threefold.realms.conv.view import TurnView, materialise
from threefold.search.rank import Ranking, by_conversation, by_turn, rank
from threefold.text.terms import query_terms

MAX_LIMIT = 10_000
MAX_QUERY = 10_000
MAX_ALSO = 3
SearchScope = Literal["user", "agent", "conversation"]
Grouping = Literal["turn", "conversation"]
Reaction = Literal["ok", "not_ok", "neutral"]


@dataclass(frozen=True, slots=True)
class Ports:
    """What a realm is wired to."""

    store: Store
    blobs: Blobs
    embedder: Embedder | None
    clock: Callable[[], datetime]
    ttl: timedelta | None
    ranking: Ranking
    committed: Callable[[], None]
    warm: Callable[[], None]


class Conv:
    """What happened, when, in what context: the record of one scope."""

    def __init__(self, scope: Scope, ports: Ports) -> None:
        self._scope, self._ports = scope, ports

    def open_turn(
        self, conversation: str, turn: str | None = None, title: str | None = None, started: Moment = None
    ) -> TurnHandle:
        """A new turn handle of the conversation, which is made when new. See `TurnHandle`."""
        return TurnHandle(conversation, self._record_handle, self._ports.clock, turn, title, started)

    def _record_handle(self, turn: Turn) -> tuple[str, str]:
        return turn_ref(turn.conversation, turn.id), self.record(turn)

    def record(self, turn: Turn) -> Outcome:
        """Record a whole turn: its blobs first, then everything else in one transaction.

        Returns `created`, `unchanged` (it is recorded already) or `replaced` (this is a fuller edition).

        Raises:
            InvalidInput: something in it cannot be kept. Conflict: the id is taken by another turn.
            Forbidden: the conversation belongs to another app. Unavailable: the store is busy or full.
        """
        (outcome,) = self.record_all((turn,))
        return outcome

    def record_all(self, turns: Sequence[Turn]) -> tuple[Outcome, ...]:
        """Record several turns in one transaction, all or none; one outcome for each. Raises as `record`."""
        writes = []
        for turn in turns:
            folded = fold(self._scope, turn, self._ports.ttl)
            for data in folded.blobs.values():
                self._ports.blobs.put(self._scope, data)
            writes.append(RecordTurn(folded.record))
        outcomes = self._ports.store.commit(Commit(self._scope, tuple(writes)))
        if any(outcome != "unchanged" for outcome in outcomes):
            self._ports.committed()
        return outcomes

    def search(
        self,
        query: str,
        roles: Collection[str] | None = None,
        conversation: str | None = None,
        scope: SearchScope | None = None,
        agent: str | None = None,
        since: Moment = None,
        until: Moment = None,
        limit: int = 5,
        snippets: Collection[str] = (),
        neighbours: int = 0,
        group: Grouping = "turn",
        lists: Sequence[ListName] = LISTS,
        ranking: Ranking | None = None,
        explain: bool = False,
    ) -> Results:
        """Find turns, or conversations, by what was said in them; the best first.

        Args:
            query: a question, words, part of an identifier; in any language.
            roles: only these of user, assistant, summary, note, attachment.
            conversation: only this one.
            scope: `user` (the whole history), `agent` (what the handle's agent recorded) or `conversation`; by
                default what the other arguments say.
            agent: only what this agent recorded.
            since, until: a window over the time of the words; the end is exclusive.
            limit: how many hits, up to 10,000.
            snippets: roles whose texts of the matched turn come with each hit.
            neighbours: of how many turns before and after they come too.
            group: one hit for each `turn`, or for each `conversation` by its best turns (up to two more in `also`).
            lists: which candidate lists to use.
            ranking: other constants than the store's.
            explain: show with each hit how its score came about.

        Raises:
            InvalidInput: naming the argument that is off.
        """
        words = storable(_text(query, "query"))[:MAX_QUERY]
        where = self._filter(roles, conversation, scope, agent, since, until)
        check_limit(limit, MAX_LIMIT)
        if group not in get_args(Grouping):
            raise InvalidInput(f"group {group!r} must be turn or conversation")
        how = Presentation(
            query_terms(words), _roles(snippets, "snippets") or (), _count(neighbours, "neighbours"), explain
        )
        used = ranking or self._ports.ranking
        found, mode = self._candidates(words, how.terms, where, lists, max(used.depth, 2 * limit))
        groups = by_turn(rank(found, used, where.now))
        if group == "conversation":
            groups = [(score, members[:MAX_ALSO]) for score, members in by_conversation(groups)]
        groups = groups[:limit]
        keys = [best.row.key for _, members in groups for best, _ in members]
        rows = self._ports.store.rows(self._scope, keys, where.now, how.neighbours) if keys else ()
        corrected = tuple(v for variants in found.corrections.values() for v, _ in variants)
        shown = replace(how, terms=how.terms + corrected)
        return Results(present(groups, rows, shown), mode, found.warnings, found.corrections)

    def _filter(
        self,
        roles: Collection[str] | None,
        conversation: str | None,
        scope: SearchScope | None,
        agent: str | None,
        since: Moment,
        until: Moment,
    ) -> Filter:
        if scope is not None and scope not in get_args(SearchScope):
            raise InvalidInput(f"scope {scope!r} must be user, agent or conversation")
        if conversation is not None:
            check_id(conversation, "conversation")
        elif scope == "conversation":
            raise InvalidInput("scope='conversation' needs the argument conversation")
        if scope == "user" and (conversation is not None or agent is not None):
            raise InvalidInput("scope='user' searches the whole history; leave conversation and agent out")
        if scope == "agent" and agent is None:
            agent = self._scope.agent
            if agent is None:
                raise InvalidInput("scope='agent' needs the argument agent, or a handle with an agent")
        return Filter(
            now=self._ports.clock(),
            roles=_roles(roles, "roles"),
            conversation=conversation,
            agent=None if agent is None else check_id(agent, "agent"),
            since=None if since is None else parse_moment(since, "since"),
            until=None if until is None else parse_moment(until, "until"),
        )

    def _candidates(
        self, words: str, terms: tuple[str, ...], where: Filter, lists: Sequence[ListName], depth: int
    ) -> tuple[Candidates, str]:
        """Ask the store once; the mode says which kinds of lists took part."""
        unknown = [name for name in lists if name not in LISTS]
        if unknown or not lists:
            raise InvalidInput(f"lists must name some of {', '.join(LISTS)}, not {unknown or 'nothing'}")
        wanted = tuple(name for name in LISTS if name in lists)
        vector, warning = self._vector(words) if "semantic" in wanted else (None, None)
        embedder = self._ports.embedder
        query = Query(self._scope, where, terms, wanted, vector, None if embedder is None else embedder.name, depth)
        found = self._ports.store.candidates(query)
        if warning:
            found = replace(found, warnings=(*found.warnings, warning))
        semantic = vector is not None and not found.warnings
        mode = "hybrid" if semantic and len(wanted) > 1 else "semantic" if wanted == ("semantic",) else "lexical"
        return found, mode

    def _vector(self, words: str) -> tuple[Any, str | None]:
        """The question's vector; or why there is none. A model that is still loading is never waited for."""
        embedder = self._ports.embedder
        if embedder is None:
            return None, "semantic search is off: the store was opened without an embedder"
        if not embedder.ready:
            self._ports.warm()
            return None, f"semantic search is off for the moment: the model {embedder.name!r} is being loaded"
        try:
            return embedder.embed([words])[0], None
        except ThreefoldError as error:
            return None, f"semantic search is off: the embedder failed: {error}"

    def conversations(self, limit: int = 20, after: Conversation | None = None) -> tuple[Conversation, ...]:
        """Conversations, the last active first; `after` is the last one of the page before."""
        check_limit(limit, MAX_LIMIT)
        cursor = None if after is None else (after.last_activity, after.id)
        return self._ports.store.conversations(self._scope, self._ports.clock(), limit, cursor)

    def turns(
        self,
        conversation: str | None = None,
        ordinal: int | None = None,
        since: Moment = None,
        until: Moment = None,
        order: Literal["oldest", "newest"] = "oldest",
        limit: int = 20,
        after: CatalogEntry | None = None,
    ) -> tuple[CatalogEntry, ...]:
        """The catalog: turns in order with what each was about.

        Args:
            conversation: of one conversation; else of all.
            ordinal: only the n-th turn of the conversation, 1 = first, -1 = last. Windows do not shift ordinals.
            since, until: a window over the start of turns; the end is exclusive.
            order: `oldest` or `newest` first.
            limit: how many, up to 10,000.
            after: the last entry of the page before.
        """
        if conversation is not None:
            check_id(conversation, "conversation")
        if ordinal is not None and (conversation is None or not isinstance(ordinal, int) or ordinal == 0):
            raise InvalidInput("ordinal counts turns of a conversation from 1, or from -1 at the end; give both")
        if order not in ("oldest", "newest"):
            raise InvalidInput(f"order {order!r} must be oldest or newest")
        check_limit(limit, MAX_LIMIT)
        query = CatalogQuery(
            now=self._ports.clock(),
            conversation=conversation,
            ordinal=ordinal,
            since=None if since is None else parse_moment(since, "since"),
            until=None if until is None else parse_moment(until, "until"),
            newest_first=order == "newest",
            limit=limit,
            after=None if after is None else (after.started, after.conversation, after.turn),
        )
        return self._ports.store.catalog(self._scope, query)

    def timeline(self, conversation: str) -> Timeline:
        """`conv.timeline.v1` of a conversation.

        Raises:
            NotFound: there is no such conversation.
        """
        turns = self.turns(conversation, limit=MAX_LIMIT)
        if not turns:
            raise NotFound(f"conversation {conversation!r} is not recorded")
        title = self.stored(ConvRef("ar", turns[0].turn, "turn.log", conversation)).record.title or conversation
        last = max(turn.ended for turn in turns)
        return Timeline(conversation, title, turns[0].started, last, tuple(turn.turn for turn in turns))

    def turn(self, ref: str, conversation: str | None = None) -> TurnView:
        """A known turn as the person saw it; `ref` is any reference into it, short where `conversation` is given.

        Raises:
            InvalidInput: no reference into the record. NotFound (Expired, Purged): it is not there (any more).
            Forbidden: it belongs to another app of the user.
        """
        return materialise(self.stored(self.parse(ref, conversation)))

    def feedback(
        self, ref: str, reaction: Reaction | None, text: str | None = None, origin: Literal["user", "machine"] = "user"
    ) -> None:
        """Put a reaction (`ok`, `not_ok`, `neutral`) on a turn; None takes the user's back. A user has one, machines add."""
        if reaction is not None and reaction not in get_args(Reaction):
            raise InvalidInput(f"reaction {reaction!r} must be {', '.join(get_args(Reaction))} or None")
        if origin not in ("user", "machine"):
            raise InvalidInput(f"origin {origin!r} must be user or machine")
        found = self.stored(self.parse(ref)).record
        kept = None if text is None else storable(_text(text, "text"))
        given = None if reaction is None else Feedback(reaction, self._ports.clock(), kept, origin)
        self._ports.store.commit(Commit(self._scope, (PutFeedback(found.conversation, found.turn, given),)))

    def forget(self, conversation: str | None = None, turn: str | None = None) -> Receipt:
        """Remove a turn, a conversation, or all of the user, from every file of the store; the receipt lists them."""
        for name, value in (("conversation", conversation), ("turn", turn)):
            if value is not None:
                check_id(value, name)
        if turn is not None and conversation is None:
            raise InvalidInput("a turn is forgotten within its conversation; give both")
        return self._ports.store.purge(self._scope, Target(conversation, turn), self._ports.clock())

    def parse(self, ref: str, conversation: str | None = None) -> ConvRef:
        """The reference as a value with its conversation.

        Raises:
            InvalidInput: it is malformed, of another realm, or short without a known conversation.
        """
        parsed = parse_ref(ref, conversation)
        if not isinstance(parsed, ConvRef):
            raise InvalidInput(f"reference {ref!r} is not into the record; give one that begins with conv:")
        if parsed.conversation is None:
            raise InvalidInput(f"reference {ref!r} is short; give the conversation too, or the long form")
        return parsed

    def stored(self, ref: ConvRef) -> StoredTurn:
        """The stored turn of a reference.

        Raises:
            NotFound (Expired, Purged): it is not there (any more). Forbidden: it belongs to another app of the user.
        """
        found = self._ports.store.turn(self._scope, ref.conversation or "", ref.turn, self._ports.clock())
        if found == "expired":
            raise Expired(f"{ref}: its time to live is over")
        if found == "purged":
            raise Purged(f"{ref}: it was removed")
        if not isinstance(found, StoredTurn):
            raise NotFound(f"{ref}: no such turn")
        return found


def check_limit(limit: int, most: int) -> None:
    """Refuse a limit that is not from 1 to `most`."""
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= most:
        raise InvalidInput(f"limit {limit!r} must be a whole number from 1 to {most}")


def _count(value: int, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 100:
        raise InvalidInput(f"{name} {value!r} must be a whole number from 0 to 100")
    return value


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be text, not {type(value).__name__}")
    return value


def _roles(roles: Collection[str] | None, name: str) -> tuple[str, ...] | None:
    if roles is None:
        return None
    chosen = (roles,) if isinstance(roles, str) else tuple(roles)
    unknown = [role for role in chosen if role not in ROLES]
    if unknown or (name == "roles" and not chosen):
        raise InvalidInput(f"{name} must name some of {', '.join(ROLES)}, not {unknown or 'nothing'}")
    return chosen

"""The record of one scope: record, search, catalog, materialise, forget. Ports at the edges, pure rooms between."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, get_args

from threefold.errors import BytesGone, InvalidInput, NotFound
from threefold.model.clean import storable
from threefold.model.query import LISTS, ListName
from threefold.model.ref import ConvRef, ObjectRef, parse_ref
from threefold.model.scope import Scope, check_id
from threefold.model.times import Moment, parse_moment
from threefold.ports import CatalogQuery
from threefold.realms.conv.finding import MAX_LIMIT, Grouping, Request, SearchScope, check_limit, check_text, find
from threefold.realms.conv.hits import Results
from threefold.realms.conv.refs import turn_ref
from threefold.realms.redacting import Pass
from threefold.realms.wiring import Ports
from threefold.search.rank import Ranking
from threefold.text.excerpt import EXCERPT_SIZE

if TYPE_CHECKING:
    # Loaded where they are used: who searches need not wait for what records, and for the values it is made of.
    from threefold.model.commit import Commit, Outcome
    from threefold.model.paging import Cursor
    from threefold.model.record import CatalogEntry, Conversation, StoredTurn, Timeline
    from threefold.model.resolved import Resolved, Shown
    from threefold.model.retention import Receipt
    from threefold.model.turn import Turn
    from threefold.realms.conv.recorder import TurnHandle
    from threefold.realms.conv.view import TurnView

# How often bytes are put, should a purge or a collector with a wrong clock remove them before the commit.
TRIES = 3
Reaction = Literal["ok", "not_ok", "neutral"]


class Conv:
    """What happened, when, in what context: the record of one scope."""

    def __init__(self, scope: Scope, ports: Ports) -> None:
        self._scope, self._ports = scope, ports

    def open_turn(
        self,
        conversation: str,
        turn: str | None = None,
        title: str | None = None,
        started: Moment = None,
        once: bool = False,
    ) -> TurnHandle:
        """A new turn handle of the conversation, which is made when new. See `TurnHandle`.

        With `once` a turn that is recorded under the id already stays as it is, and recording this one is a `Conflict`.
        """
        from threefold.realms.conv.recorder import TurnHandle

        record = partial(self._record_handle, once=once)
        return TurnHandle(conversation, record, self._ports.clock, turn, title, started)

    def _record_handle(self, turn: Turn, once: bool) -> tuple[str, str, Mapping[str, int]]:
        from threefold.realms.conv.redacting import redact

        kept = redact(turn, self._ports.redact)
        (outcome,) = self._record_kept((kept,), "" if once else None)
        return turn_ref(turn.conversation, turn.id), outcome, kept.redacted

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
        from threefold.realms.conv.redacting import redact

        return self._record_kept([redact(turn, self._ports.redact) for turn in turns])

    def _record_kept(self, turns: Sequence[Turn], replaces: str | None = None) -> tuple[Outcome, ...]:
        from threefold.model.commit import Commit, RecordTurn
        from threefold.realms.conv.fold import fold

        expires = self._ports.expires()
        folded = [fold(self._scope, turn, expires) for turn in turns]
        blobs = [data for each in folded for data in each.blobs.values()]
        writes = tuple(RecordTurn(each.record, replaces) for each in folded)
        outcomes = self._commit(Commit(self._scope, writes), blobs)
        if any(outcome != "unchanged" for outcome in outcomes):
            self._ports.committed()
        if "replaced" in outcomes:
            from threefold.realms.conv.threads.forgetting import replaced

            for turn, outcome in zip(turns, outcomes, strict=True):
                if outcome == "replaced":
                    replaced(self._ports.store, self._scope, turn.conversation, turn.id, self._ports.clock())
        return outcomes

    def _commit(self, commit: Commit, blobs: Sequence[bytes], tries: int = TRIES) -> tuple[Outcome, ...]:
        """Put the bytes, then commit; where they were removed in between, once more."""
        for data in blobs:
            self._ports.blobs.put(self._scope, data)
        try:
            return self._ports.store.commit(commit)
        except BytesGone:
            if tries == 1:
                raise
        return self._commit(commit, blobs, tries - 1)

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
        offset: int = 0,
        size: int | None = EXCERPT_SIZE,
        without: Collection[str] = (),
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
            neighbours: of how many turns before and after those texts come too.
            group: one hit for each `turn`, or for each `conversation` by its best turns (up to two more in `also`).
            lists: which candidate lists to use.
            ranking: other constants than the store's.
            explain: show with each hit how its score came about.
            offset: how many of the best to leave out; the next page begins at this `offset` plus `limit`.
            size: about how many characters of each text are shown, around what matched; None for all,
                in which the matching words are not looked for.
            without: references of turns to leave out, such as those that are shown already.

        Raises:
            InvalidInput: naming the argument that is off; an empty `query` is.
        """
        return find(
            self._scope,
            self._ports,
            Request(
                text=query,
                roles=roles,
                conversation=conversation,
                scope=scope,
                agent=agent,
                since=since,
                until=until,
                limit=limit,
                offset=offset,
                snippets=snippets,
                neighbours=neighbours,
                group=group,
                lists=lists,
                ranking=ranking,
                explain=explain,
                size=size,
                without=without,
            ),
        )

    def conversations(self, limit: int = 20, after: Conversation | Cursor | None = None) -> tuple[Conversation, ...]:
        """Conversations, the last active first; `after` is the last one of the page before."""
        check_limit(limit, MAX_LIMIT)
        cursor = None if after is None else (after.cursor.at, after.cursor.id)
        return self._ports.store.conversations(self._scope, self._ports.clock(), limit, cursor)

    def turns(
        self,
        conversation: str | None = None,
        ordinal: int | None = None,
        since: Moment = None,
        until: Moment = None,
        order: Literal["oldest", "newest"] = "oldest",
        limit: int = 20,
        after: CatalogEntry | Cursor | None = None,
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
            after=None if after is None else after.cursor,
        )
        return self._ports.store.catalog(self._scope, query)

    def timeline(self, conversation: str) -> Timeline:
        """`conv.timeline.v1` of a conversation.

        Raises:
            NotFound: there is no such conversation.
        """
        from threefold.model.record import Timeline

        turns = list(self.turns(conversation, limit=MAX_LIMIT))
        while (
            len(turns) % MAX_LIMIT == 0
            and turns
            and (more := self.turns(conversation, limit=MAX_LIMIT, after=turns[-1]))
        ):
            turns += more
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
        from threefold.realms.conv.view import materialise

        return materialise(self.stored(self.parse(ref, conversation)))

    def feedback(
        self,
        ref: str,
        reaction: Reaction | None,
        text: str | None = None,
        origin: Literal["user", "machine"] = "user",
        conversation: str | None = None,
    ) -> None:
        """Put a reaction (`ok`, `not_ok`, `neutral`) on a turn; None takes the user's back.

        A user has one, the last; machines (`origin="machine"`) add theirs.
        """
        from threefold.model.commit import Commit, PutFeedback
        from threefold.model.record import Feedback

        if reaction is not None and reaction not in get_args(Reaction):
            raise InvalidInput(f"reaction {reaction!r} must be {', '.join(get_args(Reaction))} or None")
        if origin not in ("user", "machine") or (origin == "machine" and reaction is None):
            raise InvalidInput(
                f"origin {origin!r} must be user, or machine with a reaction: only a user takes one back"
            )
        found = self.stored(self.parse(ref, conversation)).record
        said = Pass(self._ports.redact).optional(None if text is None else check_text(text, "text"))
        kept = None if said is None else storable(said)
        given = None if reaction is None else Feedback(reaction, self._ports.clock(), kept, origin)
        self._ports.store.commit(Commit(self._scope, (PutFeedback(found.conversation, found.turn, given),)))

    def forget(self, conversation: str | None = None, turn: str | None = None) -> Receipt:
        """Remove a turn, a conversation, or all of the user, from every file of the store; the receipt lists them.

        What threads hold of it goes with it.
        """
        from threefold.model.retention import Target
        from threefold.realms.conv.threads.forgetting import forget

        for name, value in (("conversation", conversation), ("turn", turn)):
            if value is not None:
                check_id(value, name)
        if turn is not None and conversation is None:
            raise InvalidInput("a turn is forgotten within its conversation; give both")
        return forget(self._ports.store, self._scope, Target(conversation, turn), self._ports.clock())

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
        from threefold.realms.conv.showing import stored

        return stored(self._ports.store, self._scope, ref, self._ports.clock())

    def resolve(self, ref: ConvRef | ObjectRef) -> Resolved:
        """The object that a parsed reference names: something of a turn, or a whole conversation.

        Raises:
            NotFound (Expired, Purged): it is not there (any more). Forbidden: it belongs to another app of the user.
        """
        from threefold.realms.conv.resolve import resolve
        from threefold.realms.conv.showing import conversation

        if isinstance(ref, ObjectRef):
            return conversation(self._ports.store, self._scope, ref, self._ports.clock())
        return resolve(ref, self.stored(ref))

    def show(self, refs: Sequence[ConvRef | ObjectRef], size: int = 300) -> Mapping[str, Shown]:
        """What parsed references name, by reference, with at most `size` characters of text; see `Shown`."""
        from threefold.realms.conv.showing import show

        return show(self._ports.store, self._scope, refs, size, self._ports.clock())

    def editions(self, ref: ConvRef) -> tuple[str, ...]:
        """References of all editions of a file in its conversation, the oldest first; of all else the one given."""
        from threefold.realms.conv.showing import editions

        return editions(self._ports.store, self._scope, ref, self._ports.clock())

"""A store at a desk: shorthand for what the tests of the contract say often."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from threefold.errors import ThreefoldError
from threefold.model.candidates import Candidates
from threefold.model.codec import digest_of
from threefold.model.commit import Commit, Outcome, PutFeedback, RecordTurn
from threefold.model.query import Filter, ListName, Query
from threefold.model.record import CatalogEntry, Feedback, StoredTurn, TurnRecord
from threefold.model.retention import Receipt, Target
from threefold.model.rows import RowKey
from threefold.model.scope import Scope
from threefold.model.turn import Attachment, Completion, Note, PublishedFile, Submission, Summary, Turn
from threefold.ports import Backend, Blobs, CatalogQuery, Embedder
from threefold.realms.conv.fold import fold
from threefold.search.embedding import embed
from threefold.text.terms import query_terms

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
ALICE = Scope("alice")


class OpenStore(Protocol):
    """What the fixture `open_store` gives: a factory over one place that is fresh in every test.

    Calling it opens the place; calling it again opens the same place once more, where `durable` says that the place
    outlives its handles. Handles that a test forgets are closed by the fixture.
    """

    durable: bool

    def __call__(self) -> tuple[Backend, Blobs]:
        """Open the place, or open it once more."""
        ...


def own(i: int) -> str:
    """A word that nothing else has."""
    return f"own{chr(97 + i // 676 % 26)}{chr(97 + i // 26 % 26)}{chr(97 + i % 26)}q"


def make_turn(
    conversation: str = "trip",
    turn: str = "1",
    prompt: str | Sequence[str] | None = None,
    answer: str | None = None,
    at: datetime = NOW,
    **more: Any,
) -> Turn:
    """A turn that starts at `at` and ends a second later; `prompt` may be several submissions."""
    prompts = [prompt] if isinstance(prompt, str) else list(prompt or ())
    values: dict[str, Any] = {
        "ended": at + timedelta(seconds=1),
        "submissions": tuple(
            Submission("prompt" if i == 0 else "followup", text, at, author=more.pop("author", None))
            for i, text in enumerate(prompts)
        ),
        "completion": None if answer is None else Completion(answer, at + timedelta(seconds=1)),
    }
    return Turn(conversation, turn, at, **(values | more))


def full_turn(conversation: str, turn: str, mark: str, at: datetime = NOW, data: bytes | None = None) -> Turn:
    """A turn that has something in every place a turn can have it; `mark` stands in each text."""
    bytes_ = mark.encode() if data is None else data
    return make_turn(
        conversation,
        turn,
        f"asked {mark}",
        f"answered {mark}",
        at,
        attachments=(Attachment("in.txt", bytes_, at, "text/plain", f"attached {mark}"),),
        files=(PublishedFile("out/plan.md", b"published " + bytes_, at),),
        notes=(Note(f"noted {mark}", at, "decision"),),
        summary=Summary(f"summed {mark}", at, (), (f"anchored {mark}",)),
        tokens={"input": 3},
    )


def enrich(record: TurnRecord) -> TurnRecord:
    """The record as an agent with its own log would have made it: state `rich`, other content."""
    return replace(record, state="rich", digest=digest_of([record.digest, "rich"]))


@dataclass
class Desk:
    """A store with shorthand. Everything goes through the public ports."""

    backend: Backend
    blobs: Blobs
    now: datetime = NOW

    def fold(self, turn: Turn, scope: Scope = ALICE, ttl: timedelta | None = None) -> TurnRecord:
        """The record of a turn, its blobs kept already."""
        folded = fold(scope, turn, None if ttl is None else turn.ended + ttl)
        for data in folded.blobs.values():
            self.blobs.put(scope, data)
        return folded.record

    def record(self, turn: Turn, scope: Scope = ALICE, ttl: timedelta | None = None, rich: bool = False) -> Outcome:
        """Record one turn."""
        record = self.fold(turn, scope, ttl)
        return self.commit(RecordTurn(enrich(record) if rich else record), scope=scope)[0]

    def say(self, conversation: str, turn: str, prompt: str, scope: Scope = ALICE, **more: Any) -> Outcome:
        """Record a turn of one prompt."""
        ttl = more.pop("ttl", None)
        return self.record(make_turn(conversation, turn, prompt, **more), scope, ttl)

    def commit(self, *writes: RecordTurn | PutFeedback, scope: Scope = ALICE) -> tuple[Outcome, ...]:
        """Commit writes together."""
        return self.backend.commit(Commit(scope, writes))

    def react(self, conversation: str, turn: str, reaction: Any, scope: Scope = ALICE, **more: Any) -> None:
        """Put feedback on a turn, or take it back with None."""
        given = None if reaction is None else Feedback(reaction, self.now, **more)
        self.commit(PutFeedback(conversation, turn, given), scope=scope)

    def turn(self, conversation: str, turn: str, scope: Scope = ALICE, now: datetime | None = None) -> Any:
        """What `Store.turn` says."""
        return self.backend.turn(scope, conversation, turn, now or self.now)

    def stored(self, conversation: str, turn: str, scope: Scope = ALICE) -> StoredTurn:
        """A turn that must be there."""
        found = self.turn(conversation, turn, scope)
        assert isinstance(found, StoredTurn), f"{conversation}/{turn} is {found}"
        return found

    def ask(
        self,
        text: str,
        *lists: ListName,
        scope: Scope = ALICE,
        depth: int = 200,
        now: datetime | None = None,
        embedder: Embedder | None = None,
        **where: Any,
    ) -> Candidates:
        """Candidates for a question; only the lexical list unless others are named."""
        vector = embed(embedder, [text])[0] if embedder else None
        model = embedder.name if embedder else None
        wanted = lists or ("lexical",)
        query = Query(scope, Filter(now or self.now, **where), query_terms(text), wanted, vector, model, depth)
        return self.backend.candidates(query)

    def find(self, text: str, name: ListName = "lexical", **more: Any) -> list[tuple[str, str, int]]:
        """(conversation, turn, seq) of one candidate list, best first."""
        return listed(self.ask(text, name, **more), name)

    def turns(self, text: str, name: ListName = "lexical", **more: Any) -> set[tuple[str, str]]:
        """(conversation, turn) of the turns that one candidate list has."""
        return {(conversation, turn) for conversation, turn, _ in self.find(text, name, **more)}

    def catalog(self, conversation: str | None = None, scope: Scope = ALICE, **more: Any) -> tuple[CatalogEntry, ...]:
        """Catalog entries."""
        values: dict[str, Any] = {"now": self.now, "conversation": conversation, "limit": 100}
        return self.backend.catalog(scope, CatalogQuery(**(values | more)))

    def conversations(self, scope: Scope = ALICE, limit: int = 100) -> list[str]:
        """Ids of conversations, newest first."""
        return [c.id for c in self.backend.conversations(scope, self.now, limit)]

    def purge(
        self, conversation: str | None = None, turn: str | None = None, scope: Scope = ALICE, tenant: bool = False
    ) -> Receipt:
        """Purge a turn, a conversation, a user or a tenant."""
        return self.backend.purge(scope, Target(conversation, turn, tenant))

    def rows(
        self, *keys: tuple[str, str, int], scope: Scope = ALICE, around: int = 0, whole: bool = True
    ) -> list[tuple[str, str, int]]:
        """Keys of the rows that come back for these keys."""
        found = self.backend.rows(scope, [RowKey(*key) for key in keys], self.now, around, whole)
        return [(row.key.conversation, row.key.turn, row.key.seq) for row in found]

    def embed(self, embedder: Embedder, limit: int = 1000) -> int:
        """Claim what waits and store its vectors; returns how many were stored."""
        rows = self.backend.claim(limit, self.now, 60)
        vectors = embedder.embed([row.text for row in rows])
        return self.backend.put_vectors(embedder.name, list(zip(rows, vectors, strict=True)))

    def close(self) -> None:
        """Close the store."""
        self.backend.close()


def listed(found: Candidates, name: ListName) -> list[tuple[str, str, int]]:
    """(conversation, turn, seq) of one candidate list, best first."""
    keys = [found.rows.key(index) for index, _ in found.lists.get(name, ())]
    return [(key.conversation, key.turn, key.seq) for key in keys]


@contextmanager
def refused(*errors: type[ThreefoldError]) -> Iterator[None]:
    """The block must raise one of these; plain `with`, so that it can be used outside pytest too."""
    try:
        yield
    except errors as error:
        assert str(error), "an error says what was wrong"
    else:
        names = " or ".join(error.__name__ for error in errors)
        raise AssertionError(f"nothing was raised where {names} should be")


def closing(*desks: Desk) -> Callable[[], None]:
    """A function that closes desks, whatever happened to them."""

    def close() -> None:
        for desk in desks:
            with suppress(ThreefoldError):
                desk.close()

    return close

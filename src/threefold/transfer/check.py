"""Proof that a store holds what another does: turn by turn, blob by blob, and by asking both the same questions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import datetime

from threefold.errors import IntegrityError, NotFound, ThreefoldError
from threefold.model.moving import MovedTurn
from threefold.model.query import LISTS, Filter, Query
from threefold.model.record import Conversation, TurnRecord
from threefold.model.retention import tombstone
from threefold.model.scope import Scope
from threefold.ports import Embedder
from threefold.search.embedding import embed
from threefold.text.terms import query_terms
from threefold.transfer.copy import Names, Place, arrived_blobs, groups, names
from threefold.transfer.questions import Questions, answers_differ

# Scores that are this near count as equal: engines add in another order.
EQUAL = 1e-4
# How long the candidate lists are that are compared.
DEPTH = 50
# Differences that are told one by one: a single cause may show in every turn.
MAX_TOLD = 50
_PAGE = 500


@dataclass(frozen=True, slots=True)
class Comparison:
    """How much was compared, and what differs, in a sentence each; none: the same questions find the same rows.

    Turns that only the target has are no difference; no questions are asked of their owners.
    """

    turns: int
    blobs: int
    questions: int
    differences: tuple[str, ...] = ()


def compare(
    source: Place,
    target: Place,
    now: datetime,
    embedder: Embedder | None = None,
    deep: bool = False,
    questions: int = 200,
    on_turn: Callable[[int], None] | None = None,
) -> Comparison:
    """Whether the target has all that the source has, and finds the same rows for questions made of the texts.

    `deep` reads every blob and checks its hash; otherwise it must be there.
    """
    check = _Check(source, target, now, Questions(questions))
    for scope in source.store.scopes():
        check.owner(scope, on_turn)
    blobs = sum(check.blob(scope, digest, deep) for scope, digest in arrived_blobs(source, target))
    asked = check.ask(embedder)
    return Comparison(check.turns, blobs, asked, check.told())


class _Check:
    """The two places, what was seen, and what differs."""

    def __init__(self, source: Place, target: Place, now: datetime, questions: Questions) -> None:
        self._source, self._target, self._now, self._questions = source, target, now, questions
        self.turns = 0
        self._differences: list[str] = []
        self._more = 0

    def note(self, scope: Scope, difference: str) -> None:
        """Keep a difference."""
        if len(self._differences) < MAX_TOLD:
            self._differences.append(f"tenant {scope.tenant!r}, user {scope.user!r}: {difference}")
        else:
            self._more += 1

    def told(self) -> tuple[str, ...]:
        """The differences, the many cut short."""
        return (*self._differences, *((f"and {self._more} differences more",) if self._more else ()))

    def owner(self, scope: Scope, on_turn: Callable[[int], None] | None) -> None:
        """Compare everything of one owner."""
        mine, there = names(self._source, scope), names(self._target, scope)
        self._compare_removed(scope, mine, there)
        whole = mine.keys() == there.keys()
        common = [key for name, key in mine.items() if name in there]
        for turns in groups(self._source, scope, common):
            held = self._target.store.moved(scope, [there[_name(turn)] for turn in turns])
            found = {_name(turn): turn for turn in held}
            for turn in turns:
                other = found.get(_name(turn))
                unlike = ["everything"] if other is None else list(_unlike(turn, other, whole))
                if unlike:
                    self.note(scope, f"{_called(*_name(turn))} differs in {', '.join(unlike)}")
                for row in turn.record.rows if whole else ():
                    self._questions.offer(scope, row.text)
            self.turns += len(turns)
            if on_turn is not None:
                on_turn(len(turns))
        if whole:
            self._compare_conversations(scope)

    def _compare_removed(self, scope: Scope, mine: Names, there: Names) -> None:
        """A turn that is missing was removed in the target, or is a difference; what was removed is removed in both."""
        removed, removed_there = self._source.store.tombstones(scope), self._target.store.tombstones(scope)
        for name in mine.keys() - there.keys():
            if tombstone(*name) not in removed_there:
                self.note(scope, f"{_called(*name)} is missing")
        alive = {tombstone(*name): name for name in there}
        for buried in removed:
            if buried in alive:
                name = alive[buried]
                if name not in mine:
                    self.note(scope, f"{_called(*name)} was removed in the source; forget it in the target too")
            elif buried not in removed_there:
                self.note(scope, "a removed turn is not remembered")

    def _compare_conversations(self, scope: Scope) -> None:
        listed, listed_there = (self._conversations(place, scope) for place in (self._source, self._target))
        for name in listed.keys() | listed_there.keys():
            if listed.get(name) != listed_there.get(name):
                self.note(scope, f"conversation {name!r} has another title, time or app in the target")

    def _conversations(self, place: Place, scope: Scope) -> dict[str, Conversation]:
        found: dict[str, Conversation] = {}
        after = None
        while page := place.store.conversations(scope, self._now, _PAGE, after):
            found |= {conversation.id: conversation for conversation in page}
            after = (page[-1].last_activity, page[-1].id)
        return found

    def blob(self, scope: Scope, digest: str, deep: bool) -> bool:
        """Compare a blob; False where the source has lost it."""
        if not _has(self._source, scope, digest, deep):
            return False
        if not _has(self._target, scope, digest, deep):
            self.note(scope, f"the file with SHA-256 {digest} is missing or damaged")
        return True

    def ask(self, embedder: Embedder | None) -> int:
        """Ask both the sampled questions; returns how many."""
        asked = list(self._questions)
        for scope, question in asked:
            query = self._query(scope, question, embedder)
            if unlike := answers_differ(query, self._source.store, self._target.store, EQUAL):
                self.note(scope, f"asked {question!r}: {unlike}")
        return len(asked)

    def _query(self, scope: Scope, question: str, embedder: Embedder | None) -> Query:
        vector = model = None
        if embedder is not None:
            with suppress(ThreefoldError):  # then the lists of words are compared alone
                vector, model = embed(embedder, [question])[0], embedder.name
        return Query(scope, Filter(self._now), query_terms(question), LISTS, vector, model, DEPTH)


def _name(turn: MovedTurn) -> tuple[str, str]:
    return turn.record.conversation, turn.record.turn


def _called(conversation: str, turn: str) -> str:
    return f"turn {turn!r} of conversation {conversation!r}"


def _unlike(one: MovedTurn, other: MovedTurn, whole: bool) -> Iterable[str]:
    """The parts that differ. A conversation that has other turns too has had more rows."""
    for part in fields(TurnRecord):
        if getattr(one.record, part.name) != getattr(other.record, part.name):
            yield part.name
    for name in ("position", "made_by", "feedback", *(("positions",) if whole else ())):
        if getattr(one, name) != getattr(other, name):
            yield name
    if _bytes(one) != _bytes(other):
        yield "vectors"


def _bytes(turn: MovedTurn) -> dict[int, bytes]:
    """Vectors as exact as every store keeps them."""
    return {row: vector.astype("<f2").tobytes() for row, vector in turn.vectors.items()}


def _has(place: Place, scope: Scope, digest: str, deep: bool) -> bool:
    if not deep:
        return place.blobs.has(scope, digest)
    try:
        place.blobs.get(scope, digest)
    except (NotFound, IntegrityError):
        return False
    return True

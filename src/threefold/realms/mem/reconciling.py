"""Reconciling: which memories may be alike, the proposal, and applying it in one transaction, to be undone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from threefold.errors import Conflict, NotFound, ThreefoldError
from threefold.model.codec import digest_of, log_to_json
from threefold.model.commit import Commit, RecordTurn
from threefold.model.memory import HELD
from threefold.model.record import TurnLog, TurnRecord
from threefold.model.scope import Scope
from threefold.model.times import iso
from threefold.realms.mem import changing, places
from threefold.realms.mem.changing import Writer
from threefold.realms.mem.decaying import decays
from threefold.realms.mem.judging import Judge, judged
from threefold.realms.mem.keeping import Kept, to_record
from threefold.realms.mem.likeness import Likeness, Note, compare, note_of
from threefold.realms.mem.planning import Step, changes, comparable, plan
from threefold.realms.mem.recalling import Wanted
from threefold.realms.mem.shelf import Shelf
from threefold.realms.places import Place
from threefold.realms.wiring import Ports
from threefold.search.embedding import embed
from threefold.text.stop import STOP_WORDS
from threefold.text.terms import index_terms

if TYPE_CHECKING:
    import numpy as np

# The memories last touched that are looked at; more are reconciled as they come.
MOST: Final = 2_000
# Of each memory the nearest by meaning are compared, and those that share a word which few have.
_NEAREST: Final = 8
_FEW: Final = 20
_PAGE: Final = 500
CONVERSATION: Final = "reconciled"


@dataclass(frozen=True, slots=True)
class Proposal:
    """What the reconciler would do, or did: `applied` is when. `seen` are the digests of the memories it looked at.

    `warnings` say what of a judge's word was refused, and where only memories that share a word were compared.
    """

    id: str
    at: datetime
    steps: tuple[Step, ...]
    seen: Mapping[str, str]
    applied: datetime | None = None
    warnings: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.steps)

    def as_json(self) -> dict[str, Any]:
        """The proposal as plain JSON values."""
        applied = None if self.applied is None else iso(self.applied)
        steps = [step.as_json() for step in self.steps]
        return {"id": self.id, "at": iso(self.at), "applied": applied, "steps": steps, "warnings": list(self.warnings)}


def propose(scope: Scope, ports: Ports, place: Place, judge: Judge | None = None) -> Proposal:
    """What is to be done about the memories of one place; a `judge` is asked where the rules are unsure."""
    now, where = ports.clock(), places.place_of(scope, place)
    kept = _held(Shelf(scope, ports), where, place)
    vectors = _vectors(ports, [each.record.memory for each in kept])
    notes = [note_of(each.record.memory) for each in kept]
    number = {each.record.id: i for i, each in enumerate(kept)}

    def alike(one: Kept, other: Kept) -> Likeness:
        return compare(notes[number[one.record.id]], notes[number[other.record.id]])

    near = _near(vectors)
    pairs = [(a, b) for a, b in sorted({*near, *_sharing(notes)}) if comparable(kept[a], kept[b])]
    found: Mapping[tuple[int, int], Likeness] = {(a, b): alike(kept[a], kept[b]) for a, b in pairs}
    warnings: tuple[str, ...] = ()
    if judge is not None:
        try:
            asked = [(each.record.id, each.record.memory) for each in kept]
            found, warnings = judged(asked, found, near, judge)
        except ThreefoldError as error:
            warnings = (f"the judge failed, and the rules decided alone: {error}",)
    if vectors is None and len(kept) > 1:
        warnings = (*warnings, "without vectors only memories that share a word which few have were compared")
    steps = plan(kept, found, alike, now, decays(ports.store, now))
    touched = {id_ for step in steps for id_ in (step.give, step.keep) if id_ is not None}
    seen = {each.record.id: each.digest for each in kept if each.record.id in touched}
    return Proposal(digest_of([[step.as_json() for step in steps], seen])[:20], now, steps, seen, warnings=warnings)


def apply_proposal(scope: Scope, ports: Ports, place: Place, proposal: Proposal) -> Proposal:
    """Do what was proposed, all of it in one transaction.

    Raises:
        Conflict: one of the memories was changed since.
    """
    if not proposal.steps:
        return proposal
    now, shelf = ports.clock(), Shelf(scope, ports)
    kept = shelf.read(proposal.seen)
    changed = [id_ for id_, digest in proposal.seen.items() if id_ not in kept or kept[id_].digest != digest]
    if changed:
        raise Conflict(f"memory {changed[0]!r} was changed since the proposal; reconcile again")
    after = changes(proposal.steps, kept, Writer("reconciler", now))
    revisions = {id_: each.record.revision for id_, each in after.items()}
    done = _noted(proposal, now, revisions)
    writes = [RecordTurn(to_record(each), replaces=kept[id_].digest) for id_, each in after.items()]
    try:
        ports.store.commit(Commit(places.place_of(scope, place), (*writes, RecordTurn(done, replaces=""))))
    except Conflict:
        raise Conflict("a memory was changed in this moment; reconcile again") from None
    ports.committed()
    return replace(proposal, applied=now)


def undo_proposal(scope: Scope, ports: Ports, place: Place, id_: str) -> tuple[str, ...]:
    """Take back what a proposal did; the ids of the memories that stand as they did before.

    Raises:
        NotFound: no such proposal was applied. Conflict: one of the memories was changed since.
    """
    where, now = places.place_of(scope, place), ports.clock()
    found = ports.store.records(where, [(CONVERSATION, id_)], now)
    if not found or found[0].replay.get("undone"):
        raise NotFound(f"reconciliation {id_!r}: none was applied, or it was undone already")
    revisions: Mapping[str, int] = found[0].replay["revisions"]
    kept = Shelf(scope, ports).read(revisions)
    moved = [each for each, revision in revisions.items() if each not in kept or kept[each].record.revision != revision]
    if moved:
        raise Conflict(f"memory {moved[0]!r} was changed since; undo that first")
    writer = Writer("reconciler", now)
    after = {each: changing.undone(kept[each], writer, f"reconciliation {id_} undone") for each in revisions}
    writes = [RecordTurn(to_record(each), replaces=kept[name].digest) for name, each in after.items()]
    body = {**found[0].replay, "undone": iso(now)}
    done = _record(id_, now, body)
    ports.store.commit(Commit(where, (*writes, RecordTurn(done, replaces=found[0].digest))))
    ports.committed()
    return tuple(revisions)


def _noted(proposal: Proposal, now: datetime, revisions: Mapping[str, int]) -> TurnRecord:
    return _record(proposal.id, now, {**proposal.as_json(), "applied": iso(now), "revisions": dict(revisions)})


def _record(id_: str, now: datetime, body: Mapping[str, Any]) -> TurnRecord:
    log = TurnLog(id_, now, now, "completed", ())
    digest = digest_of([log_to_json(log), body])
    return TurnRecord(CONVERSATION, id_, "minimal", log, (), (), body, digest, "")


def _held(shelf: Shelf, where: Scope, place: Place) -> list[Kept]:
    """The memories of a place that are held, those last touched first."""
    wanted = Wanted(places.LAYERS_OF[place], statuses=tuple(HELD))
    layers, states, *_ = wanted.labels(False, place)
    ids: list[str] = []
    after = None
    while len(ids) < MOST:
        page = shelf.newest(where, (layers, states), _PAGE, after)
        if not page:
            break
        ids += page
        kept = shelf.one(page[-1])
        after = (kept.record.touched, kept.record.id)
    found = shelf.read(ids[:MOST])
    return [found[id_] for id_ in ids[:MOST] if id_ in found]


def _vectors(ports: Ports, texts: Sequence[str]) -> np.ndarray | None:
    if ports.embedder is None or not ports.embedder.ready or not texts:
        return None
    return embed(ports.embedder, texts)


def _sharing(notes: Sequence[Note]) -> Iterable[tuple[int, int]]:
    """Pairs of memories that share a word which few others have."""
    by_term: dict[str, list[int]] = {}
    for number, note in enumerate(notes):
        for term in set(index_terms(note.text)) - STOP_WORDS:
            by_term.setdefault(term, []).append(number)
    for numbers in by_term.values():
        if len(numbers) <= _FEW:
            yield from ((a, b) for i, a in enumerate(numbers) for b in numbers[i + 1 :])


def _near(vectors: np.ndarray | None) -> Mapping[tuple[int, int], float]:
    """Of each memory the nearest by meaning, as pairs with their cosine."""
    import numpy as np

    count = 0 if vectors is None else min(_NEAREST, len(vectors) - 1)
    if vectors is None or count < 1:
        return {}
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -1.0)
    nearest = np.argpartition(-scores, count - 1, axis=1)[:, :count].tolist()
    return {
        (min(one, other), max(one, other)): float(scores[one, other])
        for one, others in enumerate(nearest)
        for other in others
    }

"""Copying: owner by owner, page by page, in order of arrival. What the target has already is left alone.

Nothing is noted on the way: a copy that was interrupted is resumed by making it again, since the target itself says
what has arrived.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from threefold.errors import Conflict, IntegrityError, NotFound
from threefold.model.commit import Recorded, supersede
from threefold.model.moving import MovedTurn, TurnKey
from threefold.model.record import TurnRecord
from threefold.model.retention import tombstone
from threefold.model.rows import Row
from threefold.model.scope import Scope
from threefold.ports import Backend, Blobs
from threefold.text.terms import index_terms

# Keys that are read at once, and turns that are moved in one transaction.
PAGE, GROUP = 1000, 64
Names = dict[tuple[str, str], TurnKey]


@dataclass(frozen=True, slots=True)
class Place:
    """A store with its blobs."""

    store: Backend
    blobs: Blobs


@dataclass(frozen=True, slots=True)
class Copied:
    """How many turns and blobs the target got that it did not have, and how many turns it had already.

    `removed` counts turns that the target itself removed since an earlier copy: they stay removed. `lost` are the
    digests of files that are lost or damaged in the source.
    """

    turns: int
    blobs: int
    unchanged: int
    removed: int = 0
    lost: tuple[str, ...] = ()


def copy(source: Place, target: Place, now: datetime, on_turn: Callable[[int], None] | None = None) -> Copied:
    """Give the target everything that the source has; the source is only read.

    Raises:
        Conflict: the target holds another turn under one of the ids (nothing of that owner was written then), or
            vectors of another model.
    """
    model = source.store.state(now).embedder
    counts, lost = Counter[str](), set[str]()
    for scope in source.store.scopes():
        there = names(target, scope)
        _refuse_conflicts(source, target, scope, there)
        buried = target.store.tombstones(scope)
        for page in pages(source, scope):
            wanted = [key for key in page if not _same(key, there.get(key.name))]
            gone = {key for key in wanted if key.name not in there and tombstone(*key.name) in buried}
            wanted = [key for key in wanted if key not in gone]
            for turns in groups(source, scope, wanted):
                for turn in turns:
                    _put_blobs(source, target, scope, [file.digest for file in turn.record.files], counts, lost)
                if model is None and any(turn.vectors for turn in turns):  # embedding began meanwhile
                    model = source.store.state(now).embedder
                counts["turns"] += target.store.receive(scope, [_with_terms(turn) for turn in turns], model)
            counts["removed"] += len(gone)
            counts["seen"] += len(page) - len(gone)
            if on_turn is not None:
                on_turn(len(page))
        alive = {tombstone(*name) for name in there}
        remembered = source.store.tombstones(scope)
        target.store.bury(scope, {buried: why for buried, why in remembered.items() if buried not in alive})
    if model is not None and source.store.state(now).embedder != model:
        raise Conflict("the source was embedded anew during the copy; run `threefold reembed --all` in the target")
    for scope, digest in arrived_blobs(source, target):  # also of turns that arrived with an earlier copy
        _put_blobs(source, target, scope, [digest], counts, lost)
    unchanged = counts["seen"] - counts["turns"]
    return Copied(counts["turns"], counts["blobs"], unchanged, counts["removed"], tuple(sorted(lost)))


def pages(place: Place, scope: Scope) -> Iterator[tuple[TurnKey, ...]]:
    """The keys of an owner's turns in order of arrival."""
    after = 0
    while page := place.store.turn_keys(scope, after, PAGE):
        yield page
        after = page[-1].arrival


def names(place: Place, scope: Scope) -> Names:
    """Everything that a place has of an owner, by conversation and turn."""
    return {key.name: key for page in pages(place, scope) for key in page}


def arrived_blobs(source: Place, target: Place) -> Iterator[tuple[Scope, str]]:
    """What the target's turns refer to, of owners that the source has: not what the target has removed."""
    owners = set(source.store.scopes())
    return ((scope, digest) for scope, digest in target.store.blob_refs() if scope in owners)


def groups(place: Place, scope: Scope, keys: Sequence[TurnKey]) -> Iterator[tuple[MovedTurn, ...]]:
    """Turns whole, few at a time."""
    for start in range(0, len(keys), GROUP):
        yield place.store.moved(scope, keys[start : start + GROUP])


def _same(key: TurnKey, there: TurnKey | None) -> bool:
    return there is not None and there._replace(arrival=key.arrival) == key


def _refuse_conflicts(source: Place, target: Place, scope: Scope, there: Names) -> None:
    """Compare the turns whose content differs before anything is written: few or none, if not by accident."""
    if not there:
        return
    for page in pages(source, scope):
        other = [key for key in page if key.name in there and there[key.name].digest != key.digest]
        for turns in groups(source, scope, other):
            held = target.store.moved(scope, [there[turn.record.conversation, turn.record.turn] for turn in turns])
            records = {(turn.record.conversation, turn.record.turn): turn.record for turn in held}
            for turn in turns:
                stored = records.get((turn.record.conversation, turn.record.turn))
                supersede(None if stored is None else _recorded(stored), turn.record)


def _recorded(record: TurnRecord) -> Recorded:
    return Recorded(record.state, record.digest, record.head, record.log.ended)


def _put_blobs(
    source: Place, target: Place, scope: Scope, digests: Sequence[str], counts: Counter[str], lost: set[str]
) -> None:
    for digest in digests:
        if digest in lost or target.blobs.has(scope, digest):
            continue
        try:
            target.blobs.put(scope, source.blobs.get(scope, digest))
            counts["blobs"] += 1
        except (NotFound, IntegrityError):
            lost.add(digest)


def _with_terms(turn: MovedTurn) -> MovedTurn:
    return replace(turn, record=replace(turn.record, rows=tuple(_indexed(row) for row in turn.record.rows)))


def _indexed(row: Row) -> Row:
    return row._replace(terms=index_terms(f"{row.author}\n{row.text}" if row.author else row.text))

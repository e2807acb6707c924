"""The memory back end: the plainest statement of what a store does. For tests, trials and `open(":memory:")`."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from threefold.backends import owned_moving, owned_search
from threefold.backends.owned import Kept, Owned, Waiting, without_rows
from threefold.errors import BytesGone, Conflict, Forbidden, NotFound, Unavailable
from threefold.model.candidates import Candidates
from threefold.model.commit import Commit, Outcome, PutFeedback, RecordTurn, Write, outcome_of
from threefold.model.moving import MovedTurn, TurnKey
from threefold.model.query import Query
from threefold.model.record import CatalogEntry, Conversation, Feedback, StoredTurn, TurnRecord
from threefold.model.retention import Gone, Receipt, Target, tombstone
from threefold.model.rows import RowKey, StoredRow
from threefold.model.scope import Scope
from threefold.model.titles import ABOUT_SIZE
from threefold.ports import Blobs, CatalogQuery, PendingRow, StoreState

if TYPE_CHECKING:
    import numpy as np

Owner = tuple[str, str, str]


class MemoryStore:
    """`Store` and `Upkeep` over dictionaries; one lock, nothing survives the process."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._owners: dict[Owner, Owned] = {}
        self._lock = threading.RLock()
        self._model: tuple[str, int] | None = None
        self._closed = False
        self._identity = uuid4().hex

    @contextmanager
    def _usable(self) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise Unavailable("the store is closed; open it again")
            yield

    def _owner(self, scope: Scope) -> Owned:
        return self._owners.get(scope.key, Owned())

    def commit(self, commit: Commit) -> tuple[Outcome, ...]:
        """See `Store.commit`. Each write sees those before it; they are made on a copy that is kept if all succeed."""
        with self._usable():
            owner = self._owner(commit.scope)
            if len(commit.writes) > 1:
                owner = owner.copy()
            outcomes = tuple(self._apply(commit.scope, owner, write) for write in commit.writes)
            if owner.turns or owner.gone:
                self._owners[commit.scope.key] = owner
            self._delete_doomed(commit.scope, owner)
            return outcomes

    def _apply(self, scope: Scope, owner: Owned, write: Write) -> Outcome:
        outcome = self._plan(scope, owner, write)
        if isinstance(write, PutFeedback):
            _put_feedback(owner.turns[write.conversation, write.turn], write.feedback)
        elif outcome != "unchanged":
            owner.put(write.record, write.record.app)
        return outcome

    def _plan(self, scope: Scope, owner: Owned, write: Write) -> Outcome:
        target = write.record if isinstance(write, RecordTurn) else write
        parent = owner.conversations.get(target.conversation)
        if parent is not None and scope.app is not None and parent.app != scope.app:
            raise Forbidden(f"conversation {target.conversation!r} belongs to another app; use another conversation id")
        kept = owner.turns.get((target.conversation, target.turn))
        if isinstance(write, PutFeedback):
            if kept is None:
                raise NotFound(f"turn {write.turn!r} of conversation {write.conversation!r} is not recorded")
            return "created" if write.feedback else "replaced"
        for file in write.record.files:
            if not self._blobs.has(scope, file.digest):
                raise BytesGone(f"the bytes of {file.path!r} are not kept; record the turn again")
        return outcome_of(None if kept is None else kept.recorded, write)

    def candidates(self, query: Query) -> Candidates:
        """See `Store.candidates`."""
        with self._usable():
            owner = self._owner(query.scope)
            return owned_search.candidates(owner, query, self._model)

    def rows(
        self, scope: Scope, keys: Sequence[RowKey], now: datetime, around: int = 0, whole: bool = True
    ) -> tuple[StoredRow, ...]:
        """See `Store.rows`."""
        with self._usable():
            owner = self._owner(scope)
            wanted: dict[tuple[str, str], Kept] = {}
            named = set(keys)
            turns_named = {(key.conversation, key.turn) for key in keys}
            for conversation in {key.conversation for key in keys}:
                turns = owner.in_order(conversation)
                for i, kept in enumerate(turns):
                    if kept.key in turns_named:
                        wanted.update({k.key: k for k in turns[max(0, i - around) : i + around + 1]})
            found = [
                StoredRow(
                    RowKey(*key, row.seq), row._replace(terms=()), kept.first_position + row.seq, kept.record.agent
                )
                for key, kept in wanted.items()
                if kept.live(now) and scope.app in (None, kept.record.app)
                for row in kept.record.rows
                if whole or RowKey(*key, row.seq) in named
            ]
            return tuple(sorted(found, key=lambda r: (r.key.conversation, r.position)))

    def turn(self, scope: Scope, conversation: str, turn: str, now: datetime) -> StoredTurn | Gone | None:
        """See `Store.turn`."""
        with self._usable():
            owner = self._owner(scope)
            kept = owner.turns.get((conversation, turn))
            if kept is None:
                return owner.gone.get(tombstone(conversation, turn))
            _check_app(scope, kept)
            if not kept.live(now):
                return "expired"
            record = replace(_as_read(kept), title=owner.conversations[conversation].title)
            ordinal, _ = _ordinals(k for k in owner.in_order(conversation) if k.live(now))[kept.key]
            return StoredTurn(record, ordinal, tuple(kept.feedback))

    def records(
        self, scope: Scope, keys: Sequence[tuple[str, str]], now: datetime, rows: bool = True
    ) -> tuple[TurnRecord, ...]:
        """See `Store.records`."""
        with self._usable():
            own = self._owner(scope).turns
            found = [own[key] for key in dict.fromkeys(keys) if key in own]
            for kept in found:
                _check_app(scope, kept)
            records = [replace(_as_read(k), title=k.record.title or None) for k in found if k.live(now)]
            return tuple(records if rows else map(without_rows, records))

    def replays(
        self, scope: Scope, keys: Sequence[tuple[str, str]], now: datetime
    ) -> Mapping[tuple[str, str], Mapping[str, Any]]:
        """See `Store.replays`."""
        return {(each.conversation, each.turn): each.replay for each in self.records(scope, keys, now)}

    def catalog(self, scope: Scope, query: CatalogQuery) -> tuple[CatalogEntry, ...]:
        """See `Store.catalog`."""
        with self._usable():
            owner = self._owner(scope)
            turns = [
                kept
                for kept in owner.turns.values()
                if kept.live(query.now) and query.conversation in (None, kept.record.conversation)
            ]
            turns.sort(key=lambda k: k.order)
            ordinals = {} if query.bare and query.ordinal is None else _ordinals(turns)
            if query.newest_first:
                turns.reverse()
            if query.ordinal is not None:
                turns = [kept for kept in turns if query.ordinal in ordinals[kept.key]]
            shown = [
                kept
                for kept in turns
                if scope.app in (None, kept.record.app)
                and (query.since is None or kept.record.log.started >= query.since)
                and (query.until is None or kept.record.log.started < query.until)
                and all(not kept.labels.isdisjoint(group) for group in query.labels)
            ]
            if query.after is not None:
                shown = [k for k in shown if (k.order < query.after if query.newest_first else k.order > query.after)]
            entries = (_entry(kept, 0 if query.bare else ordinals[kept.key][0]) for kept in shown[: query.limit])
            return tuple(replace(e, about="", position=0) if query.bare else e for e in entries)

    def conversations(
        self, scope: Scope, now: datetime, limit: int, after: tuple[datetime, str] | None = None
    ) -> tuple[Conversation, ...]:
        """See `Store.conversations`."""
        with self._usable():
            owner = self._owner(scope)
            found = []
            for name, parent in owner.conversations.items():
                turns = owner.in_order(name)
                if scope.app in (None, parent.app) and any(kept.live(now) for kept in turns):
                    started = min(kept.record.log.started for kept in turns)
                    last = max(kept.record.log.ended for kept in turns)
                    found.append(Conversation(name, parent.title, started, last, len(turns), parent.app))
            found.sort(key=lambda c: (c.last_activity, c.id), reverse=True)
            return tuple([c for c in found if after is None or (c.last_activity, c.id) < after][:limit])

    def purge(self, scope: Scope, target: Target) -> Receipt:
        """See `Store.purge`."""
        with self._usable():
            if target.tenant:
                gone = [self._purge_owner(Scope.of(*key)) for key in list(self._owners) if key[0] == scope.tenant]
                return Receipt("tenant", _added(gone))
            if target.conversation is None and scope.app is None:
                mine = {key for key in self._owners if key[:2] == scope.key[:2]} | {scope.key}
                return Receipt("user", _added([self._purge_owner(Scope.of(*key)) for key in mine]))
            owner = self._owner(scope)
            aimed = [
                key
                for key in owner.turns
                if target.conversation in (None, key[0])
                and target.turn in (None, key[1])
                and (target.conversation is not None or owner.conversations[key[0]].app == scope.app)
            ]
            parent = owner.conversations.get(target.conversation or "")
            if parent is not None and scope.app not in (None, parent.app):
                raise Forbidden(f"conversation {target.conversation!r} belongs to another app")
            stores = owner.remove(aimed)
            owner.bury(aimed, "purged")
            owner.settle()
            stores["blobs"] = self._delete_doomed(scope, owner)
            return Receipt(target.kind, stores)

    def _purge_owner(self, scope: Scope) -> dict[str, int]:
        owner = self._owner(scope)
        stores = owner.remove(list(owner.turns))
        stores["blobs"] = self._delete_doomed(scope, owner) + self._blobs.sweep(scope, ())
        self._owners.pop(scope.key, None)
        return stores

    def _delete_doomed(self, scope: Scope, owner: Owned) -> int:
        """Delete the blobs of removed turns that no turn has any more; returns how many went."""
        doomed, owner.doomed = owner.doomed, set()
        held = {file.digest for kept in owner.turns.values() for file in kept.record.files} if doomed else set()
        return sum(self._blobs.delete(scope, digest) for digest in doomed - held)

    def claim(self, limit: int, now: datetime, lease_seconds: float) -> tuple[PendingRow, ...]:
        """See `Upkeep.claim`."""
        with self._usable():
            claimed: list[PendingRow] = []
            for whose, owner in self._owners.items():
                texts = {key: row.spoken for _, row, key in owner.rows()}
                for key, waiting in owner.waiting.items():
                    if len(claimed) < limit and (waiting.due is None or waiting.due <= now):
                        waiting.due = now + timedelta(seconds=lease_seconds)
                        claimed.append(PendingRow(Scope.of(*whose), key, texts[key], waiting.attempts))
            return tuple(claimed)

    def put_vectors(self, model: str, done: Sequence[tuple[PendingRow, np.ndarray]]) -> int:
        """See `Upkeep.put_vectors`."""
        with self._usable():
            count = 0
            for row, vector in done:
                made_by = (model, int(vector.shape[0]))
                if self._model not in (None, made_by):
                    raise Conflict(
                        f"the store holds vectors of {self._model}, not of {made_by}; run `threefold reembed`"
                    )
                owner = self._owner(row.scope)
                place = owner.place_of(row)
                if place is not None:
                    self._model = made_by
                    del owner.waiting[place]
                    owner.vectors[place] = vector.astype("<f2").astype("<f4")  # as exact as the others keep it
                    count += 1
            return count

    def embedding_failed(self, rows: Sequence[PendingRow], why: str, retry_at: datetime) -> None:
        """See `Upkeep.embedding_failed`."""
        with self._usable():
            for row in rows:
                owner = self._owner(row.scope)
                place = owner.place_of(row)
                if place is not None:
                    waiting = owner.waiting[place]
                    waiting.attempts, waiting.error, waiting.due = waiting.attempts + 1, why, retry_at

    def reset_vectors(self) -> int:
        """See `Upkeep.reset_vectors`."""
        with self._usable():
            self._model = None
            for owner in self._owners.values():
                owner.vectors.clear()
                owner.waiting = {key: Waiting() for _, _, key in owner.rows()}
            return sum(len(owner.waiting) for owner in self._owners.values())

    def expire(self, now: datetime, limit: int = 1000) -> int:
        """See `Upkeep.expire`."""
        with self._usable():
            count = 0
            for whose, owner in self._owners.items():
                over = [key for key, kept in owner.turns.items() if not kept.live(now)][: limit - count]
                owner.remove(over)
                owner.bury(over, "expired")
                owner.settle()
                self._delete_doomed(Scope.of(*whose), owner)
                count += len(over)
            return count

    def blob_refs(self) -> Iterator[tuple[Scope, str]]:
        """See `Upkeep.blob_refs`."""
        with self._usable():
            return iter(
                [
                    (Scope.of(*whose), file.digest)
                    for whose, owner in self._owners.items()
                    for kept in owner.turns.values()
                    for file in kept.record.files
                ]
            )

    def collect(self, scope: Scope, digests: Collection[str], before: datetime) -> int:
        """See `Upkeep.collect`."""
        with self._usable():
            held = {file.digest for kept in self._owner(scope).turns.values() for file in kept.record.files}
            return self._blobs.discard(self._blobs.key(scope), set(digests) - held, before)

    def collect_strays(self, found: Mapping[str, Collection[str]], before: datetime) -> int:
        """See `Upkeep.collect_strays`."""
        with self._usable():
            known = {self._blobs.key(Scope.of(*key)) for key in self._owners}
            return sum(self._blobs.discard(key, found[key], before) for key in found.keys() - known)

    def scopes(self) -> Iterator[Scope]:
        """See `Upkeep.scopes`."""
        with self._usable():
            return iter([Scope.of(*key) for key in self._owners])

    def labelled(
        self, realm: str, label: str, now: datetime, before: datetime | None, limit: int
    ) -> tuple[tuple[Scope, str, str], ...]:
        """See `Upkeep.labelled`."""
        with self._usable():
            found = [
                (kept.record.log.started, whose, kept.key)
                for whose, owner in self._owners.items()
                if whose[2] == realm
                for kept in owner.turns.values()
                if label in kept.labels and kept.live(now) and (before is None or kept.record.log.started < before)
            ]
            return tuple((Scope.of(*whose), *key) for _, whose, key in sorted(found)[:limit])

    def state(self, now: datetime, check: bool = False) -> StoreState:  # noqa: ARG002 - nothing to check
        """See `Upkeep.state`."""
        with self._usable():
            owners = self._owners.values()
            waiting = [w for owner in owners for w in owner.waiting.values()]
            errors = [w.error for w in waiting if w.error]
            counts = {
                "owners": len(self._owners),
                "conversations": sum(len(o.conversations) for o in owners),
                "turns": sum(len(o.turns) for o in owners),
                "rows": sum(len(list(o.rows())) for o in owners),
                "vectors": sum(len(o.vectors) for o in owners),
            }
            model, dimensions = self._model or (None, None)
            return StoreState(counts, model, dimensions, len(waiting), len(errors), errors[-1] if errors else None)

    def reindex(self) -> int:
        """See `Upkeep.reindex`. Terms are kept with the rows here, so there is nothing to rebuild."""
        with self._usable():
            return sum(len(list(owner.rows())) for owner in self._owners.values())

    def identity(self) -> str:
        """See `Upkeep.identity`."""
        return self._identity

    def scrub(self) -> tuple[str, ...]:
        """See `Upkeep.scrub`. There are no files."""
        with self._usable():
            return ()

    def turn_keys(self, scope: Scope, after: int = 0, limit: int = 1000) -> tuple[TurnKey, ...]:
        """See `Upkeep.turn_keys`."""
        with self._usable():
            keys = owned_moving.turn_keys(self._owner(scope))
            return tuple([key for key in keys if key.arrival > after][:limit])

    def moved(self, scope: Scope, keys: Sequence[TurnKey]) -> tuple[MovedTurn, ...]:
        """See `Upkeep.moved`."""
        with self._usable():
            return owned_moving.moved(self._owner(scope), keys)

    def receive(self, scope: Scope, turns: Sequence[MovedTurn], model: str | None) -> int:
        """See `Upkeep.receive`. On a copy that is kept if all goes well."""
        with self._usable():
            made_by = self._model
            for size in {int(vector.shape[0]) for turn in turns for vector in turn.vectors.values()}:
                made_by = made_by or (str(model), size)
                if made_by != (model, size):
                    raise Conflict(
                        f"the store holds vectors of {made_by}, not of {(model, size)}; run `threefold reembed`"
                    )
            owner = self._owner(scope).copy()
            count = sum(owned_moving.receive(owner, turn) for turn in turns)
            if turns:
                self._model, self._owners[scope.key] = made_by, owner
            self._delete_doomed(scope, owner)
            return count

    def tombstones(self, scope: Scope) -> Mapping[bytes, Gone]:
        """See `Upkeep.tombstones`."""
        with self._usable():
            return dict(self._owner(scope).gone)

    def bury(self, scope: Scope, tombstones: Mapping[bytes, Gone]) -> None:
        """See `Upkeep.bury`."""
        with self._usable():
            if tombstones:
                owner = self._owners.setdefault(scope.key, Owned())
                owner.gone = dict(tombstones) | owner.gone

    def close(self) -> None:
        """See `Upkeep.close`."""
        self._closed = True


def _put_feedback(kept: Kept, feedback: Feedback | None) -> None:
    if feedback is None or feedback.origin == "user":
        kept.feedback = [f for f in kept.feedback if f.origin != "user"]
    if feedback is not None:
        kept.feedback.append(feedback)


def _check_app(scope: Scope, kept: Kept) -> None:
    if scope.app not in (None, kept.record.app):
        raise Forbidden(
            f"turn {kept.record.turn!r} of conversation {kept.record.conversation!r} belongs to another app"
        )


def _as_read(kept: Kept) -> TurnRecord:
    rows = tuple(row._replace(terms=()) for row in kept.record.rows)
    return replace(kept.record, rows=rows, files=tuple(sorted(kept.record.files, key=lambda f: f.path)))


def _ordinals(live: Iterable[Kept]) -> dict[tuple[str, str], tuple[int, int]]:
    """Where each turn stands in its conversation, from 1 and from -1; given all that are live, in order."""
    conversations: dict[str, list[Kept]] = {}
    for kept in live:
        conversations.setdefault(kept.record.conversation, []).append(kept)
    return {
        kept.key: (place + 1, place - len(turns))
        for turns in conversations.values()
        for place, kept in enumerate(turns)
    }


def _entry(kept: Kept, ordinal: int) -> CatalogEntry:
    record, log = kept.record, kept.record.log
    by_role = {
        role: row.text for role in ("assistant", "user", "summary") for row in reversed(record.rows) if row.role == role
    }
    about = next((by_role[role] for role in ("summary", "user", "assistant") if role in by_role), "")
    return CatalogEntry(
        record.conversation, record.turn, ordinal, log.started, log.ended, log.status, record.state,
        about[:ABOUT_SIZE], kept.first_position if record.rows else 0, record.agent, record.app,
    )  # fmt: skip


def _added(parts: Sequence[dict[str, int]]) -> dict[str, int]:
    return {name: sum(part.get(name, 0) for part in parts) for name in dict.fromkeys(n for part in parts for n in part)}

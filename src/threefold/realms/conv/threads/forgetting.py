"""What is derived goes with its source: the summary of a thread with what it was made of.

It goes first, so that a crash in between leaves no more than a summary that is missing and is made anew. And once more
afterwards, since another process may have kept one in the meantime; one that has read what is being removed and keeps
its summary later still is refused, since it names a state of the thread that is no more (`State.removals`).

What a lane holds of a conversation goes too: a turn that runs there is then not recorded when it ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from threefold.errors import Conflict
from threefold.model.commit import Commit, RecordTurn
from threefold.model.retention import Receipt, Target
from threefold.model.scope import Scope
from threefold.ports import CatalogQuery, Store
from threefold.realms.conv.lanes.keeping import REALM as LANES
from threefold.realms.conv.lanes.keeping import log_turn
from threefold.realms.conv.threads.keeping import STATE, place_of, state_record, to_state

_TRIES, _PAGE = 20, 100


def forget(store: Store, scope: Scope, target: Target, now: datetime) -> Receipt:
    """Remove turns of the record with what threads and lanes hold of them. What may be removed is up to the record.

    Raises:
        Forbidden: the conversation belongs to another app. Unavailable: the store is busy.
    """
    threads, lanes = place_of(scope), replace(scope, realm=LANES)
    if target.conversation is None:
        if scope.app is None:
            return store.purge(scope, target)  # all realms at once
        before = store.purge(threads, target)
        receipt = _with_lanes(store.purge(scope, target), store.purge(lanes, target))
        return _with(receipt, before, store.purge(threads, target))
    threads = threads.owner
    gone = list(_drop(store, threads, target.conversation, now))
    receipt = store.purge(scope, target)
    live = None if target.turn is None else log_turn(target.turn)
    receipt = _with_lanes(receipt, store.purge(lanes.owner, Target(target.conversation, live)))
    if target.turn is not None:
        _renew(store, threads, target.conversation, now)
        return _with(receipt, *gone, *_drop(store, threads, target.conversation, now))
    if _kept(store, threads, target.conversation, now):
        gone.append(store.purge(threads, target))
    return _with(receipt, *gone)


def replaced(store: Store, scope: Scope, conversation: str, turn: str, now: datetime) -> None:
    """Another edition of a turn was recorded: a summary may have words of the one before, and is made anew.

    No summary has the last turn of a conversation, which is the one that is recorded again while it goes on. A crash
    before this leaves a summary of the edition before, whose words the user said too, until the next one is recorded.
    """
    threads = place_of(scope).owner
    if not store.records(threads, [(conversation, STATE)], now):
        return
    last = store.catalog(scope.owner, CatalogQuery(now, conversation, newest_first=True, limit=1))
    if last and last[0].turn != turn:
        _renew(store, threads, conversation, now)
        for _ in _drop(store, threads, conversation, now):
            pass


def _kept(store: Store, threads: Scope, conversation: str, now: datetime) -> list[str]:
    """Ids of what is kept of a thread."""
    return [entry.turn for entry in store.catalog(threads, CatalogQuery(now, conversation, limit=_PAGE))]


def _drop(store: Store, threads: Scope, conversation: str, now: datetime) -> Iterator[Receipt]:
    """Remove every summary of a thread."""
    for turn in _kept(store, threads, conversation, now):
        if turn != STATE:
            yield store.purge(threads, Target(conversation, turn))


def _renew(store: Store, threads: Scope, conversation: str, now: datetime) -> None:
    """Have whoever read the thread before now not keep what was made of it."""
    for _ in range(_TRIES):
        stored = store.records(threads, [(conversation, STATE)], now)
        if not stored:
            return
        state = to_state(stored[0])
        renewed = state_record(replace(state, removals=state.removals + 1), now)
        try:
            store.commit(Commit(threads, (RecordTurn(renewed, replaces=state.digest),)))
        except Conflict:
            continue  # changed by another, and so renewed or to be renewed
        return
    raise Conflict(f"the thread {conversation!r} is being changed by many at once; forget again")


def _with_lanes(receipt: Receipt, lanes: Receipt) -> Receipt:
    """The receipt with what went from lanes."""
    return _with(receipt, lanes, name="lanes")


def _with(receipt: Receipt, *others: Receipt, name: str = "threads") -> Receipt:
    """The receipt with what went from threads."""
    stores: Mapping[str, int] = receipt.stores
    records: Final = sum(other.stores.get("turns", 0) for other in others)
    if records:
        stores = {**stores, name: records}
    leftovers = [left for each in (receipt, *others) for left in each.leftovers]
    return Receipt(receipt.kind, stores, tuple(dict.fromkeys(leftovers)))

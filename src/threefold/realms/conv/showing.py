"""What references into the record name, several at once, and whole conversations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from threefold.errors import Expired, Forbidden, NotFound, Purged, ThreefoldError
from threefold.model.record import CatalogEntry, StoredTurn
from threefold.model.ref import ConvRef, ObjectRef
from threefold.model.resolved import Resolved, Shown, cut
from threefold.model.scope import Scope
from threefold.model.times import iso
from threefold.ports import CatalogQuery, Store
from threefold.realms.conv.refs import LOG_PATH, turn_ref
from threefold.realms.conv.resolve import resolve, spoken

# Of a conversation its last turns are shown.
_LAST: Final = 3
# A conversation that is resolved lists at most so many turns, the last ones.
_LISTED: Final = 1_000


def stored(store: Store, scope: Scope, ref: ConvRef, now: datetime) -> StoredTurn:
    """The stored turn of a reference.

    Raises:
        NotFound (Expired, Purged): it is not there (any more). Forbidden: it belongs to another app of the user.
    """
    found = store.turn(scope, ref.conversation or "", ref.turn, now)
    if found == "expired":
        raise Expired(f"{ref}: its time to live is over")
    if found == "purged":
        raise Purged(f"{ref}: it was removed")
    if not isinstance(found, StoredTurn):
        raise NotFound(f"{ref}: no such turn")
    return found


def show(
    store: Store, scope: Scope, refs: Sequence[ConvRef | ObjectRef], size: int, now: datetime
) -> Mapping[str, Shown]:
    """What references name, by reference: all turns in one read, what is not there one by one for the reason."""
    named = [ref for ref in refs if isinstance(ref, ConvRef)]
    turns = _turns(store, scope, named, now)
    shown = {}
    for ref in refs:
        try:
            if isinstance(ref, ObjectRef):
                shown[str(ref)] = conversation(store, scope, ref, now, _LAST).shown(size)
            else:
                turn = turns.get((ref.conversation or "", ref.turn)) or stored(store, scope, ref, now)
                shown[str(ref)] = _shown(ref, turn, size)
        except (NotFound, Forbidden) as error:
            shown[str(ref)] = Shown.missing(str(ref), error)
    return shown


def _turns(store: Store, scope: Scope, refs: Iterable[ConvRef], now: datetime) -> dict[tuple[str, str], StoredTurn]:
    """The turns that are there; none where one is another app's, which is then told of that one."""
    keys = list(dict.fromkeys((ref.conversation or "", ref.turn) for ref in refs))
    try:
        records = store.records(scope, keys, now) if keys else ()
    except Forbidden:
        return {}
    return {(record.conversation, record.turn): StoredTurn(record, 0, ()) for record in records}


def _shown(ref: ConvRef, turn: StoredTurn, size: int) -> Shown:
    found = resolve(ref, turn)
    whole = ref.family == "ar" and ref.body == LOG_PATH
    shown = (replace(found, text=spoken(turn.record)) if whole else found).shown(size)
    return replace(shown, more={"conversation": turn.record.conversation, **shown.more})


def conversation(store: Store, scope: Scope, ref: ObjectRef, now: datetime, last: int = _LISTED) -> Resolved:
    """A whole conversation: its title, times, and its `last` turns with what each was about.

    Raises:
        NotFound: nothing of it is recorded. Forbidden: it belongs to another app of the user.
    """
    query = CatalogQuery(now, ref.id, newest_first=True, limit=last)
    turns = tuple(reversed(store.catalog(scope, query)))
    if not turns:
        raise _missing(store, scope, ref, now)
    newest = turns[-1]
    title = stored(store, scope, ConvRef("ar", newest.turn, LOG_PATH, ref.id), now).record.title or ref.id
    value = {
        "conversation": ref.id,
        "title": title,
        "last_activity": iso(newest.ended),
        "turns": newest.ordinal,
        "listed": [
            {"ref": turn_ref(each.conversation, each.turn), "ordinal": each.ordinal, "started": iso(each.started),
             "status": each.status, "about": each.about}
            for each in turns
        ],
    }  # fmt: skip
    return Resolved(
        str(ref), "conversation", value, "\n".join(_line(each) for each in turns), None, title, newest.ended
    )


def _line(turn: CatalogEntry) -> str:
    return f"{turn.ordinal}. {cut(' '.join(turn.about.split()), 200)}"


def _missing(store: Store, scope: Scope, ref: ObjectRef, now: datetime) -> ThreefoldError:
    if scope.app is not None and store.catalog(scope.owner, CatalogQuery(now, ref.id, limit=1)):
        return Forbidden(f"{ref}: the conversation belongs to another app")
    return NotFound(f"{ref}: no such conversation")


def editions(store: Store, scope: Scope, ref: ConvRef, now: datetime) -> tuple[str, ...]:
    """References of the files of a path in a conversation, the oldest first; of what is no file that one alone."""
    if ref.family != "fi":
        return (str(ref),)
    found: list[str] = []
    after = None
    while True:
        query = CatalogQuery(now, ref.conversation, limit=_LISTED, after=after, bare=True)
        page = store.catalog(scope, query)
        records = store.records(scope, [(each.conversation, each.turn) for each in page], now, rows=False)
        having = (record for record in records if any(file.path == ref.body for file in record.files))
        found += [str(replace(ref, turn=record.turn)) for record in having]
        if len(page) < _LISTED:
            return tuple(found)
        after = page[-1].cursor

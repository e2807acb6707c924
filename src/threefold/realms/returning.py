"""Records that come back from an archive: each must be what its realm can read. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

import msgspec

from threefold.errors import IntegrityError, InvalidInput, ThreefoldError
from threefold.model.codec import log_to_json
from threefold.model.record import StoredTurn, TurnRecord
from threefold.model.ref import parse_ref
from threefold.model.scope import RECORD
from threefold.ports import Redactor
from threefold.realms.cnv import keeping as boards
from threefold.realms.conv.refs import ref_for
from threefold.realms.conv.threads import keeping as threads
from threefold.realms.conv.view import materialise, view_to_json
from threefold.realms.doc import keeping as documents
from threefold.realms.doc import places as document_places
from threefold.realms.mem import keeping as memories
from threefold.realms.mem import places as memory_places
from threefold.realms.mem import policy, reconciling
from threefold.realms.mem.policy import Rule
from threefold.realms.redacting import Pass


def _turn(stored: StoredTurn) -> object:
    record = stored.record
    for path in (*(row.path for row in record.rows), *(block.path for block in record.log.blocks)):
        parse_ref(ref_for(record.conversation, record.turn, path))
    view_to_json(view := materialise(stored))
    return view


def _thread(stored: StoredTurn) -> object:
    record = stored.record
    return threads.to_state(record) if record.turn == threads.STATE else threads.to_summary(record)


class _Policy(msgspec.Struct):
    rule: Rule
    kinds: list[str]


class _Reconciled(msgspec.Struct):
    revisions: dict[str, int]


# What lies among memories and is none.
_BESIDE: Final[Mapping[str, type]] = {policy.CONVERSATION: _Policy, reconciling.CONVERSATION: _Reconciled}


def _memory(stored: StoredTurn) -> object:
    record = stored.record
    if record.conversation in _BESIDE:
        _check(not record.labels and not record.rows)
        return msgspec.convert(record.replay, _BESIDE[record.conversation])
    kept = memories.from_record(record)
    layers = memory_places.LAYERS_OF["own"]
    own = memory_places.of_id(record.conversation) == "own" and kept.record.layer in layers
    _check(own and kept.record.id == record.conversation and record.turn == memories.TURN)
    return kept


def _board(stored: StoredTurn) -> object:
    _check(stored.record.turn == boards.TURN)
    return boards.from_record(stored.record)


def _document(stored: StoredTurn) -> object:
    record = stored.record
    _check(document_places.of_id(record.conversation) == "own" and record.turn == documents.TURN)
    for row in record.rows:
        documents.passage_of(record.conversation, row)
    return documents.from_record(record)


_READ: Final[Mapping[str, Callable[[StoredTurn], object]]] = {
    RECORD: _turn,
    "thread": _thread,
    "mem": _memory,
    "doc": _document,
    "cnv": _board,
}


def _check(fits: bool) -> None:
    if not fits:
        raise ValueError("its ids are not those of a user's own")


def admitted(realm: str, stored: StoredTurn, where: str) -> TurnRecord:
    """The record as it is kept.

    Raises:
        IntegrityError: its realm could not read it.
    """
    try:
        read = _READ[realm](stored)
        # What was read has the types that it is said to have.
        msgspec.convert(msgspec.to_builtins(read), type(read))
    except (ThreefoldError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise IntegrityError(f"{where}: not a record of {realm!r}: {error}") from None
    return stored.record


def admitted_of_others(rule: Redactor | None, until: datetime | None) -> Callable[[str, StoredTurn, str], TurnRecord]:
    """As `admitted`, for archives that a user brings along: what holds in a store holds for them too.

    A turn is kept no longer than one that is recorded now; what the store's rule takes out must be out already.
    """

    def admit(realm: str, stored: StoredTurn, where: str) -> TurnRecord:
        record = admitted(realm, stored, where)
        _check_redacted(record, rule, where)
        if realm == RECORD and until is not None and (record.expires is None or record.expires > until):
            return replace(record, expires=until)
        return record

    return admit


def _check_redacted(record: TurnRecord, rule: Redactor | None, where: str) -> None:
    if rule is None:
        return
    done = Pass(rule)
    texts = [record.title, *(row.text for row in record.rows)]
    given = json.loads(json.dumps([texts, log_to_json(record.log), dict(record.replay)]))
    if done.json(given) != given:
        kinds = ", ".join(sorted(done.counts))
        raise InvalidInput(f"{where} has what this store takes out before it keeps anything: {kinds}")

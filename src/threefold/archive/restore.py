"""Reading an archive back: idempotent, every byte checked before it is kept."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import IO

from threefold.archive.layout import BLOBS, FORMAT, MANIFEST, TURNS, turn_from_json
from threefold.archive.packed import Bounds, Packed, opened
from threefold.errors import IntegrityError, InvalidInput
from threefold.model.commit import Commit, PutFeedback, RecordTurn
from threefold.model.record import FileEntry, StoredTurn, TurnRecord
from threefold.model.scope import PERSONAL, RECORD, Scope
from threefold.ports import Blobs, Store

Admit = Callable[[str, StoredTurn, str], TurnRecord]
"""What is kept of a record of a realm, or an error of ours that names the place it is given."""


@dataclass(frozen=True, slots=True)
class Restored:
    """How many turns were created, replaced or unchanged, and how many blobs were put."""

    created: int
    replaced: int
    unchanged: int
    blobs: int


def _manifest(archive: Packed) -> dict[str, object]:
    try:
        manifest = json.loads(archive.read(MANIFEST))
        if manifest["format"] == FORMAT:
            return dict(manifest)
        raise IntegrityError(f"{archive.name} has the format {manifest['format']!r}; this program reads {FORMAT}")
    except InvalidInput:
        raise
    except (KeyError, ValueError, TypeError, RecursionError):
        raise IntegrityError(f"{archive.name} is no export of Threefold: it has no valid {MANIFEST}") from None


def read_owner(source: Path | IO[bytes], bounds: Bounds | None = None) -> Scope:
    """Whose export it is.

    Raises:
        NotFound, IntegrityError, Unavailable: the file is not there, no export, or cannot be read.
        InvalidInput: it goes beyond the bounds.
    """
    with opened(source, bounds) as archive:
        manifest = _manifest(archive)
        return Scope(str(manifest.get("user", "")), str(manifest.get("tenant", "")))


def restore_user(
    store: Store,
    blobs: Blobs,
    scope: Scope,
    source: Path | IO[bytes],
    now: datetime,
    admit: Admit,
    on_turn: Callable[[int], None] | None = None,
    bounds: Bounds | None = None,
) -> Restored:
    """Record every turn of the archive for `scope`; turns that are there already are left as they are.

    Raises:
        NotFound, IntegrityError, Unavailable: as `read_owner`, or a line or blob is damaged; turns before it are kept.
        Conflict: another turn is recorded under one of the ids. InvalidInput: it goes beyond the bounds.
    """
    counts: Counter[str] = Counter()
    put = set[tuple[str, str]]()
    with opened(source, bounds) as archive:
        missing = set(_missing(_manifest(archive)))
        for number, line in enumerate(archive.lines(TURNS), 1):
            where = f"{archive.name}, line {number}"
            value = _json(line, where)
            record, feedback = turn_from_json(value, where)
            realm = _realm(value, where)
            place = replace(scope, realm=realm)
            record = replace(record, files=tuple(file for file in record.files if file.digest not in missing))
            record = admit(realm, StoredTurn(record, number, feedback), where)
            for file in record.files:
                if (realm, file.digest) not in put:
                    put.add((realm, file.digest))
                    counts["blobs"] += _put_blob(archive, blobs, place, file, where)
            there = isinstance(store.turn(place, record.conversation, record.turn, now), StoredTurn)
            given = () if there else feedback
            reactions = [PutFeedback(record.conversation, record.turn, f) for f in given]
            outcome, *_ = store.commit(Commit(place, (RecordTurn(record), *reactions)))
            counts[outcome] += 1
            if on_turn is not None:
                on_turn(1)
    return Restored(counts["created"], counts["replaced"], counts["unchanged"], counts["blobs"])


def _realm(value: dict[str, object], where: str) -> str:
    realm = value.get("realm", RECORD)
    if realm not in PERSONAL:
        raise IntegrityError(f"{where}: realm {realm!r} is unknown; a newer threefold may read this archive")
    return str(realm)


def _missing(manifest: dict[str, object]) -> list[str]:
    """Digests of files that were lost already when the archive was written."""
    found = manifest.get("missing", [])
    return [digest for digest in found if isinstance(digest, str)] if isinstance(found, list) else []


def _json(line: bytes, where: str) -> dict[str, object]:
    try:
        value = json.loads(line, parse_constant=_constant)
        if b"\\u" in line:
            json.dumps(value, ensure_ascii=False).encode()  # half a character has no bytes
    except RecursionError:
        raise IntegrityError(f"{where}: not a turn of an export: it is nested too deeply") from None
    except ValueError as error:
        raise IntegrityError(f"{where}: broken JSON: {error}") from None
    if not isinstance(value, dict):
        raise IntegrityError(f"{where}: not a turn of an export")
    return value


def _constant(name: str) -> object:
    raise ValueError(f"{name} is no number of JSON")


def _put_blob(archive: Packed, blobs: Blobs, scope: Scope, file: FileEntry, where: str) -> int:
    """Put the bytes, also where they are: what was just put is not taken for something left over."""
    try:
        data = archive.read(BLOBS + file.digest)
    except KeyError:
        raise IntegrityError(f"{where}: the bytes of {file.path!r} are not in the archive") from None
    if hashlib.sha256(data).hexdigest() != file.digest or len(data) != file.size:
        raise IntegrityError(f"{where}: the bytes of {file.path!r} are not those that were exported")
    new = not blobs.has(scope, file.digest)
    blobs.put(scope, data)
    return int(new)

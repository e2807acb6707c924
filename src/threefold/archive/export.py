"""Writing an archive: streamed, and under its name only when it is whole."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from threefold.archive.layout import BLOBS, FORMAT, MANIFEST, TURNS, turn_to_json
from threefold.errors import IntegrityError, NotFound, Unavailable
from threefold.model.record import CatalogEntry, StoredTurn
from threefold.model.scope import PERSONAL, RECORD, Scope
from threefold.model.times import iso
from threefold.ports import Blobs, CatalogQuery, Store

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export holds. `missing` are the digests of files that turns name and that are lost or damaged."""

    path: Path
    turns: int
    blobs: int
    missing: tuple[str, ...] = ()


def export_user(
    store: Store,
    blobs: Blobs,
    scope: Scope,
    path: Path,
    now: datetime,
    on_turn: Callable[[int], None] | None = None,
) -> Exported:
    """Write everything of the scope's user into a zip file at `path`, replacing one that is there.

    Raises:
        Unavailable: the file cannot be written; what stood there before is untouched.
    """
    turns, digests, missing = 0, dict[str, Scope](), []
    try:
        handle, name = tempfile.mkstemp(suffix=".part", dir=path.parent)
        os.close(handle)
    except (OSError, ValueError) as error:
        raise Unavailable(f"export {str(path)!r} cannot be written: {error}") from None
    unfinished = Path(name)
    try:
        with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
            with archive.open(TURNS, "w", force_zip64=True) as lines:
                for realm, stored in _everything(store, scope, now):
                    lines.write(json.dumps(turn_to_json(stored, realm), ensure_ascii=False).encode() + b"\n")
                    # The same bytes may be kept in several realms.
                    digests.update(dict.fromkeys((f.digest for f in stored.record.files), replace(scope, realm=realm)))
                    turns += 1
                    if on_turn is not None:
                        on_turn(1)
            for digest, where in sorted(digests.items(), key=lambda found: found[0]):
                try:
                    archive.writestr(BLOBS + digest, blobs.get(where, digest))
                except (NotFound, IntegrityError):
                    missing.append(digest)
            whose = {"format": FORMAT, "tenant": scope.tenant, "user": scope.user, "exported": iso(now)}
            manifest = {**whose, "turns": turns, "blobs": len(digests) - len(missing), "missing": missing}
            archive.writestr(MANIFEST, json.dumps(manifest, ensure_ascii=False, indent=2))
        unfinished.replace(path)
    except OSError as error:
        raise Unavailable(f"export {path}: {error.strerror or error}; check the folder and its space") from None
    finally:
        unfinished.unlink(missing_ok=True)
    return Exported(path, turns, len(digests) - len(missing), tuple(missing))


def _everything(store: Store, scope: Scope, now: datetime) -> Iterator[tuple[str, StoredTurn]]:
    """What belongs to the user in every realm."""
    for realm in PERSONAL:
        where = replace(scope, realm=realm)
        for stored in _turns(store, where, now) if realm == RECORD else _records(store, where, now):
            yield realm, stored


def _records(store: Store, scope: Scope, now: datetime) -> Iterator[StoredTurn]:
    """Every live record of a realm whose conversations hold one each."""
    after = None
    while page := store.catalog(scope, CatalogQuery(now, limit=_PAGE, after=after)):
        for entry in page:
            stored = store.turn(scope, entry.conversation, entry.turn, now)
            if isinstance(stored, StoredTurn):
                yield stored
        after = (page[-1].started, page[-1].conversation, page[-1].turn)


def _turns(store: Store, scope: Scope, now: datetime) -> Iterator[StoredTurn]:
    """Every live turn: conversations by last activity, the oldest first; within one, in order of arrival."""
    for conversation in reversed(_conversations(store, scope, now)):
        entries = _entries(store, scope, conversation, now)
        entries.sort(key=lambda entry: (entry.position, entry.ordinal))
        for entry in entries:
            stored = store.turn(scope, conversation, entry.turn, now)
            if isinstance(stored, StoredTurn):  # not removed in the meantime
                yield stored


def _conversations(store: Store, scope: Scope, now: datetime) -> list[str]:
    names: list[str] = []
    after = None
    while page := store.conversations(scope, now, _PAGE, after):
        names += [conversation.id for conversation in page]
        after = (page[-1].last_activity, page[-1].id)
    return names


def _entries(store: Store, scope: Scope, conversation: str, now: datetime) -> list[CatalogEntry]:
    entries: list[CatalogEntry] = []
    after = None
    while page := store.catalog(scope, CatalogQuery(now, conversation, limit=_PAGE, after=after)):
        entries += page
        after = (page[-1].started, page[-1].conversation, page[-1].turn)
    return entries

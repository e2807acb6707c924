"""Reading an archive back: idempotent, every byte checked before it is kept."""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from threefold.archive.layout import BLOBS, FORMAT, MANIFEST, TURNS, turn_from_json
from threefold.errors import IntegrityError, NotFound, ThreefoldError, Unavailable
from threefold.model.commit import Commit, PutFeedback, RecordTurn
from threefold.model.record import FileEntry, StoredTurn
from threefold.model.scope import PERSONAL, RECORD, Scope
from threefold.ports import Blobs, Store


@dataclass(frozen=True, slots=True)
class Restored:
    """How many turns were created, replaced or unchanged, and how many blobs were put."""

    created: int
    replaced: int
    unchanged: int
    blobs: int


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except FileNotFoundError:
        raise NotFound(f"archive {path} does not exist") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError, RuntimeError, ValueError) as error:
        if isinstance(error, ThreefoldError):
            raise
        raise IntegrityError(f"archive {path} is damaged or no zip file: {error}") from None
    except OSError as error:
        raise Unavailable(f"archive {path} cannot be read: {error.strerror or error}") from None


def _manifest(archive: zipfile.ZipFile, path: Path) -> dict[str, object]:
    try:
        manifest = json.loads(archive.read(MANIFEST))
        if manifest["format"] == FORMAT:
            return dict(manifest)
        raise IntegrityError(f"archive {path} has the format {manifest['format']!r}; this program reads {FORMAT}")
    except (KeyError, ValueError, TypeError):
        raise IntegrityError(f"archive {path} is no export of Threefold: it has no valid {MANIFEST}") from None


def read_owner(path: Path) -> Scope:
    """Whose export it is.

    Raises:
        NotFound, IntegrityError, Unavailable: the file is not there, no export, or cannot be read.
    """
    with _opened(path) as archive:
        manifest = _manifest(archive, path)
        return Scope(str(manifest.get("user", "")), str(manifest.get("tenant", "")))


def restore_user(
    store: Store, blobs: Blobs, scope: Scope, path: Path, now: datetime, on_turn: Callable[[int], None] | None = None
) -> Restored:
    """Record every turn of the archive for `scope`; turns that are there already are left as they are.

    Raises:
        NotFound, IntegrityError, Unavailable: as `read_owner`, or a line or blob is damaged; turns before it are kept.
        Conflict: another turn is recorded under one of the ids.
    """
    counts: Counter[str] = Counter()
    with _opened(path) as archive:
        missing = set(_missing(_manifest(archive, path)))
        with archive.open(TURNS) as lines:
            for number, line in enumerate(lines, 1):
                where = f"archive {path}, line {number}"
                value = _json(line, where)
                record, feedback = turn_from_json(value, where)
                place = replace(scope, realm=_realm(value, where))
                record = replace(record, files=tuple(file for file in record.files if file.digest not in missing))
                for file in record.files:
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
        value = json.loads(line)
    except ValueError as error:
        raise IntegrityError(f"{where}: broken JSON: {error}") from None
    if not isinstance(value, dict):
        raise IntegrityError(f"{where}: not a turn of an export")
    return value


def _put_blob(archive: zipfile.ZipFile, blobs: Blobs, scope: Scope, file: FileEntry, where: str) -> int:
    """Put the bytes, also where they are: what was just put is not taken for something left over."""
    new = not blobs.has(scope, file.digest)
    try:
        data = archive.read(BLOBS + file.digest)
    except KeyError:
        raise IntegrityError(f"{where}: the bytes of {file.path!r} are not in the archive") from None
    if hashlib.sha256(data).hexdigest() != file.digest:
        raise IntegrityError(f"{where}: the bytes of {file.path!r} are not those that were exported")
    blobs.put(scope, data)
    return int(new)

"""Blobs in a folder: `<owner's hash>/<first two digits>/<SHA-256>`, written durably before they get their name."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from threefold.errors import IntegrityError, InvalidInput, NotFound, Unavailable
from threefold.model.scope import Scope

_DIGEST = re.compile("[0-9a-f]{64}")
_UNFINISHED = ".part"


class LocalBlobs:
    """`Blobs` as files. An owner's folder is named by a hash, so no id can leave it or collide."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _owner(self, scope: Scope) -> Path:
        identity = f"{len(scope.tenant)}:{scope.tenant}{scope.user}"
        return self._folder / hashlib.sha256(identity.encode()).hexdigest()[:32]

    def _file(self, scope: Scope, digest: str) -> Path:
        if not _DIGEST.fullmatch(digest):
            raise InvalidInput(f"digest {digest!r} must be 64 lower-case hex digits of a SHA-256")
        return self._owner(scope) / digest[:2] / digest

    def put(self, scope: Scope, data: bytes) -> str:
        """See `Blobs.put`. Synced with its folder, so that it survives what the commit that follows survives."""
        digest = hashlib.sha256(data).hexdigest()
        file = self._file(scope, digest)
        with _file_errors(file):
            if file.exists() and file.stat().st_size == len(data):
                return digest
            handle, unfinished = _make_unfinished(file.parent)
            try:
                with os.fdopen(handle, "wb") as out:
                    out.write(data)
                    out.flush()
                    os.fsync(out.fileno())
                Path(unfinished).replace(file)
            finally:
                Path(unfinished).unlink(missing_ok=True)
            for folder in (file.parent, file.parent.parent, self._folder):
                _sync_folder(folder)
        return digest

    def get(self, scope: Scope, digest: str) -> bytes:
        """See `Blobs.get`."""
        file = self._file(scope, digest)
        with _file_errors(file):
            try:
                data = file.read_bytes()
            except FileNotFoundError:
                raise NotFound(f"no bytes with SHA-256 {digest}") from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise IntegrityError(f"the file of blob {digest} was changed or damaged; restore it from an export")
        return data

    def has(self, scope: Scope, digest: str) -> bool:
        """See `Blobs.has`."""
        return self._file(scope, digest).exists()

    def delete(self, scope: Scope, digest: str) -> bool:
        """See `Blobs.delete`. Folders that are empty now go too."""
        file = self._file(scope, digest)
        with _file_errors(file):
            try:
                file.unlink()
            except FileNotFoundError:
                return False
            _remove_empty(file.parent, file.parent.parent)
        return True

    def sweep(self, scope: Scope, keep: Collection[str]) -> int:
        """See `Blobs.sweep`."""
        gone = 0
        owner = self._owner(scope)
        with _file_errors(owner):
            for file in owner.glob("??/*"):
                if file.name not in keep:
                    file.unlink(missing_ok=True)
                    gone += 1
            _remove_empty(*owner.glob("??"), owner)
        return gone

    def digests(self, scope: Scope) -> Iterator[tuple[str, datetime]]:
        """See `Blobs.digests`."""
        for file in sorted(self._owner(scope).glob("??/*")):
            if _DIGEST.fullmatch(file.name):
                with suppress(FileNotFoundError):  # deleted meanwhile
                    yield file.name, datetime.fromtimestamp(file.stat().st_mtime, UTC)


def _make_unfinished(folder: Path) -> tuple[int, str]:
    """Handle and name of a new file; a deletion at the same time may take the folder away, so it is tried again."""
    for _ in range(99):
        with suppress(FileNotFoundError, FileExistsError):
            folder.mkdir(parents=True, exist_ok=True)
            return tempfile.mkstemp(suffix=_UNFINISHED, dir=folder)
    folder.mkdir(parents=True, exist_ok=True)
    return tempfile.mkstemp(suffix=_UNFINISHED, dir=folder)


def _remove_empty(*folders: Path) -> None:
    for folder in folders:
        with suppress(OSError):  # not empty, or another thread or process is at it
            folder.rmdir()


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":  # other systems cannot open a folder
        try:
            handle = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:  # what was put is deleted again already
            return
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _file_errors(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(f"blob file {file}: {error.strerror}; check the folder's rights and space") from None

"""Blobs in a folder: `<owner's hash>/<first two digits>/<SHA-256>`, written durably before they get their name."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from threefold.backends.blobs.claimed import MARK
from threefold.backends.blobs.keys import blob_path, is_digest, owner_key, split_path
from threefold.errors import IntegrityError, NotFound, Unavailable
from threefold.model.scope import Scope


class LocalBlobs:
    """`Blobs` as files. An owner's folder is named by a hash, so no id can leave it or collide."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def place(self) -> str:
        """See `Blobs.place`."""
        return str(self._folder)

    def mark(self, identity: str) -> str:
        """See `claimed.Place.mark`."""
        file = self._folder / MARK
        with _file_errors(file):
            if not file.exists():
                mine = self._folder / f"{MARK}.{identity}.part"
                _write(mine, identity.encode())
                with suppress(FileExistsError):
                    os.link(mine, file)  # whole, and only if there is none
                mine.unlink()
                _sync_folder(self._folder)
            return file.read_text("utf-8")

    def key(self, scope: Scope) -> str:
        """See `Blobs.key`."""
        return owner_key(scope)

    def _owner(self, scope: Scope) -> Path:
        return self._folder / owner_key(scope)

    def _file(self, scope: Scope, digest: str) -> Path:
        return self._folder / blob_path(owner_key(scope), digest)

    def put(self, scope: Scope, data: bytes) -> str:
        """See `Blobs.put`. Synced with its folder, so that it survives what the commit that follows survives."""
        digest = hashlib.sha256(data).hexdigest()
        file = self._file(scope, digest)
        with _file_errors(file):
            with suppress(FileNotFoundError):
                if file.stat().st_size == len(data):
                    os.utime(file)
                    return digest
            _write(file, data)
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

    def link(self, scope: Scope, digest: str, seconds: int) -> str | None:  # noqa: ARG002 - a folder signs nothing
        """See `Blobs.link`."""
        return None

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
            for folder in _inside(owner):
                for file in _inside(folder):
                    if file.name not in keep:
                        file.unlink(missing_ok=True)
                        gone += 1
                _remove_empty(folder)
            _remove_empty(owner)
        return gone

    def digests(self, scope: Scope) -> Iterator[tuple[str, datetime]]:
        """See `Blobs.digests`."""
        for name, at in self._listed(self._owner(scope)):
            if is_digest(name):
                yield name, at

    def _listed(self, owner: Path) -> Iterator[tuple[str, datetime]]:
        """Name and time of writing of an owner's blobs, unfinished ones too; what is not ours is passed over."""
        with _file_errors(owner):
            for file in (file for folder in _inside(owner) for file in _inside(folder)):
                if split_path(file.relative_to(self._folder).as_posix()):
                    with suppress(FileNotFoundError):  # deleted meanwhile
                        yield file.name, _written(file)

    def stale(self, before: datetime) -> Iterator[tuple[str, str]]:
        """See `Blobs.stale`."""
        with _file_errors(self._folder):
            owners = _inside(self._folder)
        return ((owner.name, name) for owner in owners for name, at in self._listed(owner) if at < before)

    def discard(self, owner: str, names: Collection[str], before: datetime) -> int:
        """See `Blobs.discard`."""
        gone = 0
        for file in [self._folder / blob_path(owner, name) for name in names]:
            with _file_errors(file), suppress(FileNotFoundError):
                if _written(file) < before:
                    file.unlink()
                    gone += 1
                    _remove_empty(file.parent, file.parent.parent)
        return gone


def _inside(folder: Path) -> list[Path]:
    """What is in a folder, in order; nothing where it was deleted meanwhile, or is none."""
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _written(file: Path) -> datetime:
    return datetime.fromtimestamp(file.stat().st_mtime, UTC)


def _write(file: Path, data: bytes, tries: int = 100) -> None:
    """Write a whole file under its name. What deletes at the same time may take its folder away, or its beginnings."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        import tempfile  # only where bytes are written: it is slow to load

        handle, unfinished = tempfile.mkstemp(prefix=f"{file.name}.", suffix=".part", dir=file.parent)
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            Path(unfinished).replace(file)
        finally:
            Path(unfinished).unlink(missing_ok=True)
    except (FileNotFoundError, FileExistsError):
        if tries == 1:
            raise
        _write(file, data, tries - 1)


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

"""Blobs in an object store: S3 and what speaks like it, Google Cloud Storage, Azure. Needs the extra `s3`.

Credentials, endpoint and region are read by the driver from the usual variables, such as `AWS_ACCESS_KEY_ID`,
`AWS_ENDPOINT` and `AWS_REGION`. A bucket that is dead costs seconds: few tries, short waits.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import ClassVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import AzureStore, GCSStore, ObjectStore, S3Store, from_url

from threefold.backends.blobs.claimed import MARK
from threefold.backends.blobs.keys import blob_path, is_digest, owner_key, split_path
from threefold.errors import IntegrityError, InvalidInput, NotFound, Unavailable
from threefold.model.scope import Scope
from threefold.model.times import now

# Bytes that are put again are written again where they are older than this: far younger than what is collected.
REFRESH_AFTER = timedelta(hours=1)
_PARALLEL, _PAGE = 16, 1000
_RETRIES = {
    "max_retries": 3,
    "retry_timeout": timedelta(seconds=10),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=1), "base": 2},
}


def open_objects(url: str) -> ObjectBlobs:
    """Blobs under a URL such as `s3://bucket/prefix`, `gs://bucket` or `az://container`. Asks nothing of it yet.

    Raises:
        InvalidInput: the URL names no bucket, or has credentials or a query in it.
    """
    if re.match(r"\w+://[^/]*@|.*[?#]", url):
        raise InvalidInput(
            f"blobs {url.partition('://')[0]}://…: give bucket and prefix only; credentials belong into the "
            "environment, such as AWS_ACCESS_KEY_ID"
        )
    plain = any("ENDPOINT" in name and value.startswith("http://") for name, value in os.environ.items())
    client = {"allow_http": plain, "connect_timeout": timedelta(seconds=3), "timeout": timedelta(seconds=30)}
    try:
        store = from_url(url, client_options=client, retry_config=_RETRIES)  # type: ignore[call-overload]
    except (BaseError, ValueError) as error:
        raise InvalidInput(f"blobs {url!r}: {_reason(error)}; give a URL such as s3://bucket/prefix") from None
    return ObjectBlobs(store, url)


class ObjectBlobs:
    """`Blobs` as objects of any store that obstore knows; `place` is how errors and `doctor` name it."""

    # The driver's threads do not live on in a forked child, where it would wait for them forever.
    _used_in: ClassVar[int | None] = None

    def __init__(self, store: ObjectStore, place: str) -> None:
        self._store, self.place = store, place

    def mark(self, identity: str) -> str:
        """See `claimed.Place.mark`."""
        with self._errors():
            with suppress(AlreadyExistsError):
                self._store.put(MARK, identity.encode(), mode="create", use_multipart=False)
            return bytes(self._store.get(MARK).bytes()).decode()

    def key(self, scope: Scope) -> str:
        """See `Blobs.key`."""
        return owner_key(scope)

    @staticmethod
    def _path(scope: Scope, digest: str) -> str:
        return blob_path(owner_key(scope), digest)

    def put(self, scope: Scope, data: bytes) -> str:
        """See `Blobs.put`."""
        digest = hashlib.sha256(data).hexdigest()
        path = self._path(scope, digest)
        with self._errors():
            try:
                self._store.put(path, bytes(data), mode="create", use_multipart=False)
            except AlreadyExistsError:
                if self._older(path, now() - REFRESH_AFTER) is not False:
                    self._store.put(path, bytes(data), use_multipart=False)
        return digest

    def _older(self, path: str, before: datetime) -> bool | None:
        """Whether the object was written before that moment; None where there is none."""
        try:
            return self._store.head(path)["last_modified"] < before
        except FileNotFoundError:
            return None

    def get(self, scope: Scope, digest: str) -> bytes:
        """See `Blobs.get`."""
        path = self._path(scope, digest)
        with self._errors():
            try:
                data = bytes(self._store.get(path).bytes())
            except FileNotFoundError:
                raise NotFound(f"no bytes with SHA-256 {digest}") from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise IntegrityError(f"the object of blob {digest} was changed or damaged; restore it from an export")
        return data

    def has(self, scope: Scope, digest: str) -> bool:
        """See `Blobs.has`."""
        with self._errors():
            return self._older(self._path(scope, digest), now()) is not None

    def link(self, scope: Scope, digest: str, seconds: int) -> str | None:
        """See `Blobs.link`."""
        if not isinstance(self._store, S3Store | GCSStore | AzureStore):
            return None
        if not self.has(scope, digest):
            raise NotFound(f"no bytes with SHA-256 {digest}")
        with self._errors():
            return obstore.sign(self._store, "GET", self._path(scope, digest), timedelta(seconds=seconds))

    def delete(self, scope: Scope, digest: str) -> bool:
        """See `Blobs.delete`."""
        there = self.has(scope, digest)
        return there and self._remove([self._path(scope, digest)]) > 0

    def _remove(self, paths: Sequence[str]) -> int:
        with self._errors():
            try:
                if paths:
                    self._store.delete(paths)
            except FileNotFoundError:  # some stores say so of what another has deleted meanwhile
                return sum(self._remove([path]) for path in paths) if len(paths) > 1 else 0
        return len(paths)

    def sweep(self, scope: Scope, keep: Collection[str]) -> int:
        """See `Blobs.sweep`."""
        found = [digest for digest, _ in self.digests(scope)]
        return self._remove([self._path(scope, digest) for digest in found if digest not in keep])

    def digests(self, scope: Scope) -> Iterator[tuple[str, datetime]]:
        """See `Blobs.digests`."""
        return ((name, at) for _, name, at in self._listed(owner_key(scope)) if is_digest(name))

    def _listed(self, prefix: str | None = None) -> Iterator[tuple[str, str, datetime]]:
        """(owner's key, digest, time of writing) of all, or of one owner; what is not ours is passed over."""
        with self._errors():
            for page in self._store.list(prefix, chunk_size=_PAGE):
                for entry in page:
                    found = split_path(entry["path"])
                    if found is not None:
                        yield *found, entry["last_modified"]

    def stale(self, before: datetime) -> Iterator[tuple[str, str]]:
        """See `Blobs.stale`."""
        return ((owner, name) for owner, name, at in self._listed() if at < before)

    def discard(self, owner: str, names: Collection[str], before: datetime) -> int:
        """See `Blobs.discard`."""
        paths = [blob_path(owner, name) for name in names]
        with self._errors(), ThreadPoolExecutor(_PARALLEL) as pool:
            old = list(pool.map(lambda path: self._older(path, before), paths))
        return self._remove([path for path, is_old in zip(paths, old, strict=True) if is_old])

    @contextmanager
    def _errors(self) -> Iterator[None]:
        ObjectBlobs._used_in = ObjectBlobs._used_in or os.getpid()
        if ObjectBlobs._used_in != os.getpid():
            raise Unavailable(f"blobs at {self.place} cannot be used after a fork; start processes by spawning them")
        try:
            yield
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise Unavailable(
                f"blobs at {self.place}: {_reason(error)}; check the credentials and what they may do"
            ) from None
        except (BaseError, OSError) as error:
            raise Unavailable(
                f"blobs at {self.place}: {_reason(error)}; check bucket, credentials, endpoint and network"
            ) from None


def _reason(error: Exception) -> str:
    """What the driver says, in a few words: the server's error code where there is one."""
    text = str(error)
    code = re.search(r"<Code>(\w+)</Code>", text)
    return code[1] if code else text.partition("\n")[0].rpartition(" - ")[2].strip()

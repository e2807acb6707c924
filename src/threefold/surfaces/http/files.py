"""Documents and histories as files, in; everything of the user, out."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from functools import partial
from mimetypes import guess_type
from pathlib import Path
from shutil import copyfileobj
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

import threefold
from threefold.archive import Bounds, read_owner
from threefold.errors import Conflict, Forbidden, IntegrityError, InvalidInput
from threefold.services import Caller
from threefold.surfaces.http.desk import Visit, desk_of
from threefold.surfaces.http.operations import request_of, respond
from threefold.surfaces.http.routing import Exact
from threefold.surfaces.http.uploads import Upload, chosen, received

_DOCUMENT: Final = ("source", "title", "metadata", "strategy", "chunk_tokens", "overlap")
_HISTORY: Final = ("kind",)
_ARCHIVE: Final = ("foreign",)
_EXPORT: Final = "threefold-export.zip"
# What an archive unpacks to is at most so many times what may be sent.
_PACKED: Final = 8
# An export has everything of these.
_REALMS: Final = ("conv", "mem", "doc", "cnv")


def routes() -> list[Route]:
    """The routes."""
    return [
        Exact("/v1/doc/files", _document, ["POST"]),
        Exact("/v1/import", _history, ["POST"]),
        Exact("/v1/export", _export, ["GET"]),
        Exact("/v1/restore", _archive, ["POST"]),
    ]


async def _document(request: Request) -> Response:
    desk = desk_of(request)
    guest = await desk.admit(request)
    guest.caller.need("doc:write")
    async with received(request, desk.settings.file_bytes) as upload:
        told = request_of(request, await asyncio.to_thread(upload.digest))
        return await respond(request, guest, partial(_ingest, upload), told, slow=True)


def _ingest(upload: Upload, visit: Visit) -> dict[str, Any]:
    """Take a document in."""
    fields = chosen(upload.fields, _DOCUMENT)
    metadata = _object(fields["metadata"]) if "metadata" in fields else None
    settings: dict[str, Any] = {"strategy": fields.get("strategy", "recursive")}
    settings |= {name: _whole(name, fields[name]) for name in ("chunk_tokens", "overlap") if name in fields}
    source = fields.get("source", upload.name)
    # Of a source that is no file, such as a URL, the name tells what it is.
    mime = guess_type(upload.name, strict=False)[0] or upload.mime
    done = visit.handle.doc.ingest(upload.content(), source, metadata, title=fields.get("title"), mime=mime, **settings)
    return done.as_json()


def _object(text: str) -> Mapping[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise InvalidInput(f"metadata: {text[:60]!r} is no JSON object") from None


def _whole(name: str, text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise InvalidInput(f"{name} {text[:20]!r} must be a whole number")
    return int(text)


async def _history(request: Request) -> Response:
    desk = desk_of(request)
    guest = await desk.admit(request)
    guest.caller.need("conv:write")
    async with received(request, desk.settings.import_bytes) as upload:
        told = request_of(request, await asyncio.to_thread(upload.digest))
        return await respond(request, guest, partial(_import, upload), told, slow=True)


def _import(upload: Upload, visit: Visit) -> dict[str, Any]:
    """Record a history of another tool."""
    kind = chosen(upload.fields, _HISTORY).get("kind", "auto")
    with tempfile.TemporaryDirectory(prefix="threefold-import-") as folder:
        # A history without ids of its own is known by the file's name.
        path = Path(folder) / upload.name
        upload.file.seek(0)
        try:
            with path.open("wb") as copy:
                copyfileobj(upload.file, copy)
        except (OSError, ValueError) as error:
            raise InvalidInput(f"name {upload.name[:100]!r} cannot be kept here: {error}; use a shorter one") from None
        done = visit.handle.import_history([path], kind)
    skipped = [{"where": each.where, "why": each.why} for each in done.skipped]
    return {"imported": done.imported, "unchanged": done.unchanged, "skipped": skipped}


async def _archive(request: Request) -> Response:
    desk = desk_of(request)
    guest = await desk.admit(request)
    _check_whole(guest.caller, "write")
    most = desk.settings.import_bytes
    async with received(request, most, _EXPORT) as upload:
        told = request_of(request, await asyncio.to_thread(upload.digest))
        return await respond(request, guest, partial(_restore, upload, Bounds(_PACKED * most)), told, slow=True)


def _restore(upload: Upload, bounds: Bounds, visit: Visit) -> dict[str, Any]:
    """Take an export in, into the scope of the one who asks and no other."""
    foreign = chosen(upload.fields, _ARCHIVE).get("foreign", "0")
    if foreign not in ("0", "1"):
        raise InvalidInput(f"foreign {foreign[:20]!r} must be 1 to take in an export of somebody else, or 0")
    scope = visit.caller.scope
    try:
        with upload.kept() as file:
            owner = read_owner(file, bounds)
            if foreign == "0" and owner.key != scope.owner.key:
                raise Conflict(
                    f"the archive is an export of user {owner.user!r} of tenant {owner.tenant!r}, and you are "
                    f"{scope.user!r} of {scope.tenant!r}; send foreign=1 to take it in as yours"
                )
            done = threefold.restore(file, visit.db, scope.user, scope.tenant, bounds=bounds)
    except IntegrityError as error:
        raise InvalidInput(str(error)) from None
    counts = {"created": done.created, "replaced": done.replaced, "unchanged": done.unchanged, "files": done.blobs}
    whose = {"user": owner.user, "tenant": owner.tenant}
    return {"user": scope.user, "tenant": scope.tenant, "from": whose, **counts}


def _check_whole(caller: Caller, act: str) -> None:
    """Refuse who may not see or write all that is a user's.

    Raises:
        Forbidden: a grant lacks, or it is an app's or agent's token that would write as the person.
    """
    for realm in _REALMS:
        caller.need(f"{realm}:{act}")
    if act == "write" and (caller.scope.app is not None or caller.scope.agent is not None):
        raise Forbidden("a token of an app or agent restores nothing: an archive is taken in as the person's own word")


async def _export(request: Request) -> Response:
    desk = desk_of(request)
    guest = await desk.admit(request)
    _check_whole(guest.caller, "read")
    folder = await asyncio.to_thread(partial(tempfile.TemporaryDirectory, prefix="threefold-export-"))
    path = Path(folder.name) / _EXPORT
    try:
        await desk.do(guest, lambda visit: visit.handle.export(path), slow=True)
    except BaseException:
        folder.cleanup()
        raise
    return _Archive(path, folder)


class _Archive(FileResponse):
    """A file that is gone once it was sent, or could not be."""

    def __init__(self, path: Path, folder: tempfile.TemporaryDirectory[str]) -> None:
        super().__init__(path, media_type="application/zip", filename=path.name)
        self._folder = folder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._folder.cleanup()

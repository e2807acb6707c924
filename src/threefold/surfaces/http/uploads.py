"""Files as they come in: one for each request, as a form or as the body itself, never whole in memory on the way."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import PurePosixPath
from typing import IO, Any, Final, NamedTuple

from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from threefold.errors import InvalidInput
from threefold.surfaces.http.desk import desk_of, media_of
from threefold.surfaces.http.limits import chunks, too_large
from threefold.surfaces.http.problems import Refused

_IN_MEMORY: Final = 2**20
_CHUNK: Final = 2**16
_FIELDS: Final = 20
# What a form takes beside the file, in bytes.
_ROOM: Final = 2**18
_PLAIN_FORM: Final = "application/x-www-form-urlencoded"


class Upload(NamedTuple):
    """A file that came in: its name, its type where it was told, what was said beside it, and its bytes on disk."""

    name: str
    mime: str | None
    fields: Mapping[str, str]
    file: IO[bytes]

    def content(self) -> bytes:
        """All of its bytes."""
        self.file.seek(0)
        return self.file.read()

    @contextmanager
    def kept(self) -> Iterator[IO[bytes]]:
        """The file for a thread that may work on when the request is over, which closes its own."""
        with os.fdopen(os.dup(self.file.fileno()), "rb") as file:
            self.file.flush()
            file.seek(0)
            yield file

    def digest(self) -> bytes:
        """What tells it from others."""
        self.file.seek(0)
        told = repr([self.name, self.mime, sorted(self.fields.items())]).encode()
        return told + hashlib.file_digest(self.file, "sha256").digest()  # type: ignore[arg-type]  # it is a file


@asynccontextmanager
async def received(request: Request, most: int, name: str = "") -> AsyncIterator[Upload]:
    """The file that comes with a request, which is gone afterwards; `name` is what it is called where nothing says so.

    Raises:
        Refused: 413: it is larger than `most`; 408: too slow; 400: the form is broken; 415: it is one without files.
            InvalidInput: there is none.
    """
    if media_of(request) == "multipart/form-data":
        async with _form(request, most) as upload:
            yield upload
        return
    seconds = desk_of(request).settings.long_seconds
    fields = {name: value for name, value in request.query_params.items() if name != "name"}
    mime, name = media_of(request) or None, request.query_params.get("name", name)
    if mime == _PLAIN_FORM:
        if not name:
            raise Refused(415, "send the file as the body, with its name in the address, or as multipart/form-data")
        mime = None  # it is what programs send that were told no type
    name = plain_name(name)
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
        size = 0
        async for chunk in chunks(request, most, seconds):
            size += file.write(chunk)
        if not size:
            raise InvalidInput("the body is empty; send the file as the body, or as the part 'file' of a form")
        yield Upload(name, mime, fields, file)


@asynccontextmanager
async def _form(request: Request, most: int) -> AsyncIterator[Upload]:
    async with form_of(request, most, 1, _FIELDS) as form:
        given: dict[str, Any] = dict(form.multi_items())
        files = [value for value in given.values() if isinstance(value, UploadFile)]
        if not files:
            raise InvalidInput("the form has no file; send it as the part 'file', with its filename")
        (file,) = files
        if (file.size or 0) > most:
            raise too_large(most)
        fields = {**request.query_params, **{n: v for n, v in given.items() if isinstance(v, str)}}
        yield Upload(plain_name(file.filename or ""), file.content_type or None, fields, file.file)


class _Whole(MultiPartParser):
    """A parser that knows whether it saw the end of the form."""

    ended = False

    def on_end(self) -> None:
        """See `MultiPartParser.on_end`."""
        self.ended = True


@asynccontextmanager
async def form_of(request: Request, most: int, files: int, fields: int) -> AsyncIterator[FormData]:
    """A form with files, which are gone afterwards.

    Raises:
        Refused: 413: there is more than `most` in it; 408: too slow; 400: it is broken, or does not end.
    """

    async def pieces() -> AsyncGenerator[bytes, None]:
        async for chunk in chunks(request, most + _ROOM, desk_of(request).settings.long_seconds):
            yield chunk
        if not parser.ended:
            raise MultiPartException("")

    parser = _Whole(request.headers, pieces(), max_files=files, max_fields=fields, max_part_size=_ROOM)
    try:
        form = await parser.parse()
        for name, value in form.multi_items():
            f"{name}{value if isinstance(value, str) else value.filename}".encode()
    except (MultiPartException, UnicodeError):  # the latter of a charset that gives no text
        said = f"the form is broken, or has more than {files} files or {fields} fields; send it whole, in UTF-8"
        raise Refused(400, said) from None
    try:
        yield form
    finally:
        await form.close()


def plain_name(name: str) -> str:
    """The last part of a file's name, whatever system it comes from.

    Raises:
        InvalidInput: there is none.
    """
    last = PurePosixPath(name.replace("\\", "/")).name
    if not last or last in (".", "..") or "\x00" in last:
        raise InvalidInput(
            "name is missing; say what the file is called, such as ?name=guide.md or filename= of the part"
        )
    return last


def chosen(fields: Mapping[str, str], known: tuple[str, ...]) -> Mapping[str, str]:
    """What was said beside a file.

    Raises:
        InvalidInput: something else is there too.
    """
    for name in fields:
        if name not in known:
            raise InvalidInput(f"{name[:100]} is unknown here; known are {', '.join(known)}")
    return fields

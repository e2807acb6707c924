"""What references name, under their own addresses: as JSON, or the exact bytes."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from threefold.errors import InvalidInput
from threefold.model.ref import ConvRef, parse_ref
from threefold.model.resolved import Resolved, cut
from threefold.model.times import iso
from threefold.services.realms import SIZE, object_of
from threefold.surfaces.http.desk import Visit, desk_of
from threefold.surfaces.http.operations import respond
from threefold.surfaces.http.problems import Refused
from threefold.surfaces.http.routing import Exact

INLINE: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "text/plain"})
"""What a browser may show by itself; all else it is to keep as a file."""
_MIME: Final = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}")
_RANGE: Final = re.compile(r"bytes=(?:(\d{1,18})-(\d{0,18})|-(\d{1,18}))")
_MOST: Final = 100_000
_HIDDEN: Final = ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp")
_LOCKED: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "Cache-Control": "private, no-cache",
    "Vary": "Accept, Authorization",
}


class Bytes(NamedTuple):
    """Exact bytes with what is told of them."""

    content: bytes
    digest: str
    mime: str
    name: str


def routes() -> list[Route]:
    """The routes."""
    return [Exact("/v1/refs/{ref:path}/editions", _editions), Exact("/v1/refs/{ref:path}", _view)]


async def _view(request: Request) -> Response:
    ref = request.path_params["ref"]
    guest = await desk_of(request).admit(request)
    if not _wants_bytes(request):
        size = _size(request.query_params.get("size", str(SIZE)))
        answered = await respond(request, guest, lambda visit: view(visit, ref, size), "")
        answered.headers["Vary"] = "Accept, Authorization"
        return answered
    found = await desk_of(request).do(guest, lambda visit: read(visit, ref))
    return _of_bytes(request, found)


async def _editions(request: Request) -> Response:
    ref = request.path_params["ref"]
    if not _is_ref(ref) and _is_ref(f"{ref}/editions"):  # a file of this name
        request.path_params["ref"] = f"{ref}/editions"
        return await _view(request)
    guest = await desk_of(request).admit(request)
    return await respond(request, guest, lambda visit: editions(visit, ref), "")


def _is_ref(text: str) -> bool:
    try:
        parse_ref(text)
    except InvalidInput:
        return False
    return True


def view(visit: Visit, ref: str, size: int) -> dict[str, Any]:
    """What a reference names, as JSON, with texts of at most `size` characters."""
    found = visit.services.objects.resolve(ref)
    file = found.file
    told: dict[str, Any] = {
        **object_of(found, size),
        "title": found.title,
        "at": None if found.at is None else iso(found.at),
        "text": None if found.text is None else cut(found.text, size),
    }
    if file is not None:
        told["file"] = {"path": file.path, "size": file.size, "mime": file.mime, "sha256": file.digest}
    told["cut"] = told["cut"] or (found.text is not None and len(found.text) > size)
    return told


def editions(visit: Visit, ref: str) -> dict[str, Any]:
    """All editions of what a reference names, the oldest first."""
    found = visit.services.objects.resolve(ref)
    return {"refs": [*visit.handle.editions(found.ref)]}


def read(visit: Visit, ref: str) -> Bytes:
    """The exact bytes behind a reference."""
    found = visit.services.objects.resolve(ref)
    content = visit.handle.read(found.ref)
    digest = hashlib.sha256(content).hexdigest()
    return Bytes(content, digest, _mime(found), _name(found))


def _mime(found: Resolved) -> str:
    if found.file is not None:
        mime = (found.file.mime or "").partition(";")[0].strip().lower()
        return mime if _MIME.fullmatch(mime) else "application/octet-stream"
    if found.content is not None:
        return "application/octet-stream"
    return "application/json" if found.text is None else "text/plain"


def _name(found: Resolved) -> str:
    """What the bytes are called where they are kept as a file."""
    parsed = parse_ref(found.ref)
    if isinstance(parsed, ConvRef) and parsed.family == "fi":
        return PurePosixPath(parsed.body).name
    if found.file is not None and found.value.get("source"):
        return PurePosixPath(str(found.value["source"])).name or "document"
    return f"{found.kind}.json" if found.text is None else f"{found.kind}.txt"


def disposition(name: str, inline: bool) -> str:
    """`Content-Disposition` with a name in any script; what would deceive or break out of the header is left out."""
    shown = "".join(c for c in name if _shown(c)).strip(" .") or "file"
    ascii_ = "".join(c if " " <= c <= "~" and c not in "%;" else "_" for c in shown)
    kind = "inline" if inline else "attachment"
    return f"{kind}; filename=\"{ascii_}\"; filename*=UTF-8''{quote(shown, safe='')}"


def _shown(character: str) -> bool:
    # Joiners are written in Persian, in Indic scripts and between emoji.
    joins = character in "\u200c\u200d"
    return joins or (unicodedata.category(character) not in _HIDDEN and character not in '/\\"')


def _wants_bytes(request: Request) -> bool:
    raw = request.query_params.get("raw")
    if raw is not None:
        if raw not in ("0", "1"):
            raise InvalidInput(f"raw {raw[:20]!r} must be 1 for the exact bytes, or 0")
        return raw == "1"
    first = request.headers.get("accept", "*/*").partition(",")[0].partition(";")[0].strip().lower()
    return first not in ("", "*/*", "application/*", "application/json", "application/problem+json", "text/html")


def _size(text: str) -> int:
    if not text.isdecimal() or len(text) > len(str(_MOST)) or not 1 <= int(text) <= _MOST:
        raise InvalidInput(f"size {text[:20]!r} must be a whole number from 1 to {_MOST:,}")
    return int(text)


def _of_bytes(request: Request, found: Bytes) -> Response:
    etag, total = f'"{found.digest}"', len(found.content)
    inline = found.mime in INLINE
    headers = {**_LOCKED, "ETag": etag, "Accept-Ranges": "bytes"}
    if _names(request.headers.get("if-none-match", ""), etag):
        return Response(status_code=304, headers=headers)
    headers["Content-Disposition"] = disposition(found.name, inline)
    media = f"{found.mime}; charset=utf-8" if found.mime.startswith("text/") else found.mime
    part = _part(request.headers, etag, total)
    if part is None:
        return _plain(found.content, 200, headers, media)
    start, end = part
    headers["Content-Range"] = f"bytes {start}-{end - 1}/{total}"
    return _plain(found.content[start:end], 206, headers, media)


def _plain(content: bytes, status: int, headers: Mapping[str, str], media: str) -> Response:
    response = Response(content, status, headers)
    response.headers["Content-Type"] = media
    return response


def _names(given: str, etag: str) -> bool:
    return any(each.strip().removeprefix("W/") in (etag, "*") for each in given.split(","))


def _part(headers: Mapping[str, str], etag: str, total: int) -> tuple[int, int] | None:
    """Which part is asked for: from, to; None for all of it, also where several are.

    Raises:
        Refused: 416: there is no such part.
    """
    asked, held = headers.get("range"), headers.get("if-range", etag)
    found = _RANGE.fullmatch(asked.strip()) if asked is not None and held == etag else None
    if found is None:
        return None
    first, last, tail = found.groups()
    if first is not None and last and int(last) < int(first):
        return None
    start = max(0, total - int(tail)) if first is None else int(first)
    end = min(int(last) + 1, total) if last else total
    if start >= end:
        raise Refused(416, f"there are {total:,} bytes; ask for a part of them", {"Content-Range": f"bytes */{total}"})
    return start, end

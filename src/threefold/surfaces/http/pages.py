"""The pages, where the package has some: files of one folder, which load nothing from elsewhere."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from threefold.errors import NotFound

FOLDER: Final = Path(__file__).parent.parent / "web"
# Not the system's table: on some systems scripts are text, and then browsers do not run them.
TYPES: Final[Mapping[str, str]] = {
    ".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json", ".webmanifest": "application/manifest+json", ".map": "application/json",
    ".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".webp": "image/webp", ".gif": "image/gif",
    ".ico": "image/x-icon", ".woff2": "font/woff2", ".txt": "text/plain; charset=utf-8",
}  # fmt: skip
POLICY: Final = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; "
    "connect-src 'self'; font-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)


def routes(folder: Path = FOLDER) -> list[Route]:
    """The routes; none where there are no pages."""
    if not (folder / "index.html").is_file():
        return []
    found = {
        each.relative_to(folder).as_posix(): each
        for each in sorted(folder.rglob("*"))
        if each.is_file() and each.suffix in TYPES
    }

    async def page(request: Request) -> Response:
        # A name that is none of these is no path to anywhere.
        file = found.get(request.path_params["path"] or "index.html")
        if file is None:
            raise NotFound("there is no page at this address; / is the first one")
        return _file(file, request.headers.get("if-none-match"))

    return [Route("/{path:path}", page)]


def _file(file: Path, known: str | None) -> Response:
    stat = file.stat()
    etag = f'"{_digest(file, stat.st_mtime_ns, stat.st_size)}"'
    headers = {"ETag": etag, "Cache-Control": "no-cache", "Content-Security-Policy": POLICY}
    if known is not None and etag in known:
        return Response(status_code=304, headers=headers)
    response = FileResponse(file, headers=headers, stat_result=stat)
    response.headers["Content-Type"] = TYPES[file.suffix]
    return response


@lru_cache(1024)
def _digest(file: Path, changed: int, size: int) -> str:  # noqa: ARG001 - another time or size, another digest
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()[:32]

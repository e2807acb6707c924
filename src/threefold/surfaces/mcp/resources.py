"""Resources: what references name. The reference is the URI."""

from __future__ import annotations

import base64
import binascii
import json
import mimetypes
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    Annotations,
    BlobResourceContents,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from threefold.errors import Forbidden, InvalidInput, NotFound
from threefold.model.resolved import Resolved, Shown, cut
from threefold.model.times import iso
from threefold.surfaces.mcp.bounds import MOST
from threefold.surfaces.mcp.desk import At, Desk
from threefold.surfaces.mcp.listing import listed, lists, ref_of, templates, uri_of

# Of each namespace a page has at most so many; and so many pages there are.
_SHARE: Final = 25
_PAGES: Final = 20
# A file is given whole or not at all.
MOST_BYTES: Final = 5 * 2**20
# The code of the handshake's era; the later one has none of its own.
_NOT_FOUND: Final = -32002
_PLAIN: Final = "text/plain"
_BYTES: Final = "application/octet-stream"


class _Page(NamedTuple):
    """Where a page begins: which one it is, and where each namespace that has more goes on."""

    number: int
    at: Mapping[str, str] | None


async def list_resources(ctx: ServerRequestContext[Desk], params: PaginatedRequestParams | None) -> ListResourcesResult:
    """Answer `resources/list`: the last conversations, the hotset, boards, documents, what apps list."""
    return await ctx.lifespan_context.ask(partial(_list, params.cursor if params else None))


async def list_templates(
    ctx: ServerRequestContext[Desk], _: PaginatedRequestParams | None
) -> ListResourceTemplatesResult:
    """Answer `resources/templates/list`."""
    found = await ctx.lifespan_context.ask(templates)
    return ListResourceTemplatesResult(
        resource_templates=[
            ResourceTemplate(uri_template=each.uri, name=f"{each.namespace} {each.name}", description=each.about)
            for each in found
        ]
    )


async def read_resource(ctx: ServerRequestContext[Desk], params: ReadResourceRequestParams) -> ReadResourceResult:
    """Answer `resources/read`: the text, or the bytes of a file."""
    missing = _NOT_FOUND if ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS else INVALID_PARAMS
    return await ctx.lifespan_context.ask(partial(_read, str(params.uri), missing))


def _list(cursor: str | None, at: At) -> ListResourcesResult:
    page = _page_of(cursor)
    refs: list[str] = []
    follows: dict[str, str] = {}
    for namespace, operation in lists(at, memories="hotset").items():
        if page.at is None or namespace in page.at:
            found = listed(at, operation, _SHARE, None if page.at is None else page.at[namespace])
            refs += found.refs
            if found.next is not None:
                follows[namespace] = found.next
    shown = at.services.objects.describe(refs, 0)
    resources = [_resource(each) for each in shown.values() if each.standing == "there"]
    more = follows and page.number < _PAGES
    return ListResourcesResult(
        resources=resources, next_cursor=_token(_Page(page.number + 1, follows)) if more else None
    )


def _resource(shown: Shown) -> Resource:
    return Resource(
        uri=uri_of(shown.ref),
        name=shown.title,
        description=shown.kind,
        annotations=None if shown.at is None else Annotations(last_modified=iso(shown.at)),
    )


def _read(uri: str, missing: int, at: At) -> ReadResourceResult:
    try:
        found = at.services.objects.resolve(str(ref_of(uri)))
    except (NotFound, Forbidden, InvalidInput):
        # One answer to all: whether somebody else has it is nobody's to learn.
        raise MCPError(missing, "no such resource", {"uri": uri}) from None
    if found.kind == "file" and found.file is not None:
        return _blob(uri, found.file.size, found.file.mime, partial(at.handle.read, found.ref))
    text = _text(at, found)
    if text is None:
        content = found.as_bytes()
        return _blob(uri, len(content), mimetypes.guess_type(found.title)[0], lambda: content)
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=_PLAIN, text=cut(text, MOST))])


def _text(at: At, found: Resolved) -> str | None:
    """What is to be read of an object; None where there are only bytes."""
    if found.text is not None:
        return found.text
    if found.content is not None:
        return None
    if found.kind == "document" and found.ref.startswith("doc:"):
        return at.handle.doc.text(found.ref.removeprefix("doc:"))
    shown = at.services.objects.describe([found.ref], MOST)[found.ref].text
    return shown or json.dumps(found.value, ensure_ascii=False, indent=2)


def _blob(uri: str, size: int, mime: str | None, read: Callable[[], bytes]) -> ReadResourceResult:
    if size > MOST_BYTES:
        raise InvalidInput(
            f"the file has {size:,} bytes, over {MOST_BYTES:,}: `threefold show REF --raw >FILE` writes it to a file"
        )
    blob = base64.b64encode(read()).decode()
    return ReadResourceResult(contents=[BlobResourceContents(uri=uri, mime_type=mime or _BYTES, blob=blob)])


def _token(page: _Page) -> str:
    return base64.urlsafe_b64encode(json.dumps(page).encode()).decode()


def _page_of(cursor: str | None) -> _Page:
    """The page that a cursor names.

    Raises:
        InvalidInput: it names none.
    """
    if cursor is None:
        return _Page(1, None)
    try:
        number, at = json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
        fits = isinstance(number, int) and all(isinstance(each, str) for each in at.values())
    except (binascii.Error, ValueError, TypeError, AttributeError, RecursionError):
        fits = False
    if not fits:
        raise InvalidInput("cursor: take the one that resources/list gave, as it is")
    return _Page(number, at)

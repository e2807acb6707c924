"""Lanes: what people send is accepted, and what happens in a conversation is told as it happens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from threefold.app import Threefold
from threefold.errors import Forbidden, InvalidInput
from threefold.host.agents import Agent, Executor
from threefold.host.door import Door
from threefold.host.kernel import Kernel
from threefold.host.live import Position
from threefold.model.kinds import SubmissionKind
from threefold.surfaces.http.desk import desk_of, media_of
from threefold.surfaces.http.gate import Guest
from threefold.surfaces.http.operations import KEY, json_body, request_of, respond
from threefold.surfaces.http.routing import Exact
from threefold.surfaces.http.settings import Settings
from threefold.surfaces.http.streams import STREAM, Stream, Streams
from threefold.surfaces.http.uploads import form_of, plain_name

T = TypeVar("T")
# An answer is made of all that its owner may see.
_SEEN: Final = ("conv:read", "mem:read", "doc:read", "cnv:read")
_FILES, _FIELDS = 50, 10
# Seconds between looks for turns whose process died.
_LOOK: Final = 10.0
# Seconds that turns are given to end when the server does.
_PATIENCE: Final = 10.0


class Submission(msgspec.Struct, forbid_unknown_fields=True):
    """What somebody sends to a conversation; with files it is a form whose parts have these names."""

    text: str
    kind: SubmissionKind = "prompt"
    agent: str | None = None
    key: str | None = None
    author: str | None = None
    context: list[dict[str, Any]] = []


class Cancelled(msgspec.Struct, forbid_unknown_fields=True):
    """Which turn is to be stopped; without one that which runs."""

    turn: str | None = None
    agent: str | None = None


class Live:
    """The door of a server, open while it runs, and the agents behind it."""

    def __init__(self, db: Threefold, agents: Iterable[Agent | Executor], settings: Settings, streams: Streams) -> None:
        self._streams = streams
        self.kernel = Kernel(db)
        for each in agents:
            self.kernel.agents.register(each)
        self.door = Door(
            self.kernel, waiting=settings.waiting, lanes=settings.lanes, user_lanes=settings.user_lanes,
            lease=settings.lease, look=min(_LOOK, settings.lease),
        )  # fmt: skip

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Within it submissions are accepted and turns run."""
        async with self.kernel, self.door:
            yield

    async def end(self) -> None:
        """Accept no more, end the streams of viewers, and let turns end; what waits stays for the next start."""
        self._streams.close()
        await self.door.close(_PATIENCE)


def routes() -> list[Route]:
    """The routes."""
    return [
        Exact("/v1/lanes/{conversation}", _lane, ["GET", "POST"]),
        Exact("/v1/lanes/{conversation}/cancel", _cancel, ["POST"]),
        Exact("/v1/lanes/{conversation}/submissions/{submission}", _withdraw, ["DELETE"]),
        Exact("/v1/lanes/{conversation}/events", _events),
    ]


async def _lane(request: Request) -> Response:
    guest = await _admitted(request, "conv:write" if request.method == "POST" else "conv:read")
    if request.method == "POST":
        return await _submit(request, guest)
    owner, tenant, agent = _whose(request, guest)
    view = await desk_of(request).do(
        guest, lambda _: _door(request).lane(owner, request.path_params["conversation"], tenant, agent)
    )
    return JSONResponse(view.as_json())


async def _submit(request: Request, guest: Guest) -> Response:
    """Accept a submission; it is kept when this is answered."""
    files: list[tuple[str, bytes, str | None]] = []
    if media_of(request) == "multipart/form-data":
        async with form_of(request, desk_of(request).settings.file_bytes, _FILES, _FIELDS) as form:
            given = _read(json.dumps(_fields(form)).encode(), Submission)
            files = [(plain_name(each.filename or ""), await each.read(), each.content_type) for each in _uploads(form)]
    else:
        given = _read(await json_body(request), Submission)
    owner, tenant, agent = _whose(request, guest, given.agent)
    accepted = await _door(request).submit(
        given.text,
        owner,
        request.path_params["conversation"],
        given.kind,
        agent,
        tenant,
        files,
        given.context,
        given.key or request.headers.get(KEY),
        given.author,
    )
    return JSONResponse(accepted.as_json(), 202)


async def _cancel(request: Request) -> Response:
    guest = await _admitted(request, "conv:write")
    body = await json_body(request)
    given = _read(body, Cancelled)
    owner, tenant, agent = _whose(request, guest, given.agent)
    conversation = request.path_params["conversation"]

    async def cancelled() -> dict[str, Any]:
        return {"cancelled": await _door(request).cancel(owner, conversation, given.turn, tenant, agent)}

    return await _once(request, guest, body, cancelled)


async def _withdraw(request: Request) -> Response:
    """Take back what waits; what was taken back is the answer."""
    guest = await _admitted(request, "conv:write")
    owner, tenant, agent = _whose(request, guest)
    named = request.path_params

    async def withdrawn() -> dict[str, Any]:
        return (
            await _door(request).withdraw(owner, named["conversation"], named["submission"], tenant, agent)
        ).as_json()

    return await _once(request, guest, b"", withdrawn)


async def _once(
    request: Request, guest: Guest, body: bytes, work: Callable[[], Coroutine[Any, Any, dict[str, Any]]]
) -> Response:
    """Answer with what `work` gives; with a key it is done once."""
    if KEY not in request.headers:
        return JSONResponse(await work())
    loop = asyncio.get_running_loop()
    # A thread keeps the key; the door works on the loop.
    return await respond(
        request, guest, lambda _: asyncio.run_coroutine_threadsafe(work(), loop).result(), request_of(request, body)
    )


async def _events(request: Request) -> Response:
    """Server-sent events, until the viewer leaves, the token holds no more, or the server ends.

    `Last-Event-ID` or `after` goes on behind one.
    """
    desk = desk_of(request)
    guest = await _admitted(request, "conv:read")
    owner, tenant, agent = _whose(request, guest, known=("agent", "after"))
    after = request.headers.get("last-event-id") or request.query_params.get("after")
    conversation = request.path_params["conversation"]
    if after is not None:
        Position.of(after)
    # What is refused is refused before the stream begins.
    await desk.do(guest, lambda _: _door(request).lane(owner, conversation, tenant, agent))
    if request.method == "HEAD":
        return Response(media_type=STREAM)
    events = _door(request).events(owner, conversation, tenant, after, agent)
    return Stream(events, partial(desk.holds, request), desk.streams, guest.name)


async def _admitted(request: Request, grant: str) -> Guest:
    """Who comes, if they may.

    Raises:
        Refused, Forbidden: they may not.
    """
    guest = await desk_of(request).admit(request)
    for each in (grant, *(_SEEN if grant == "conv:write" else ())):
        guest.caller.need(each)
    if guest.caller.scope.app is not None:
        raise Forbidden("a token of one app opens no lanes: answers are made of all that its user may see")
    return guest


def _whose(
    request: Request, guest: Guest, said: str | None = None, known: tuple[str, ...] = ("agent",)
) -> tuple[str, str, str | None]:
    """Whose lane: the owner, the tenant, and the agent that was named in the query, or `said` in the body.

    Raises:
        InvalidInput: the two differ, or the query has something twice, or that is not `known`.
    """
    query = request.query_params
    for name in query:
        if name not in known:
            raise InvalidInput(f"{name[:100]} is unknown in the query here; known are {', '.join(known)}")
        if len(query.getlist(name)) > 1:
            raise InvalidInput(f"{name} stands in the query twice; give it once")
    scope, agent = guest.caller.scope, query.get("agent", said)
    if said is not None and agent != said:
        raise InvalidInput(
            f"agent {said[:100]!r} in the body is another than in the query; name the same, or one alone"
        )
    return scope.user, scope.tenant, agent


def _door(request: Request) -> Door:
    live: Live = request.app.state.live
    return live.door


def _read(body: bytes, type_: type[T]) -> T:
    """A body as a value.

    Raises:
        InvalidInput: it is another.
    """
    try:
        return msgspec.json.decode(body or b"{}", type=type_)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise InvalidInput(f"body: {str(error)[:300]}") from None


def _fields(form: FormData) -> Mapping[str, Any]:
    """The parts of a form that are no files; `context` is JSON. Browsers end lines of forms with CR and LF."""
    said = ((name, value) for name, value in form.multi_items() if isinstance(value, str))
    found: dict[str, Any] = {name: value.replace("\r\n", "\n") for name, value in said}
    if "context" in found:
        found["context"] = _read(found["context"].encode(), list)
    return found


def _uploads(form: FormData) -> list[UploadFile]:
    """The files of a form.

    Raises:
        InvalidInput: a part has another name.
    """
    found = [(name, value) for name, value in form.multi_items() if isinstance(value, UploadFile)]
    for name, _ in found:
        if name != "files":
            raise InvalidInput(f"part {name[:100]!r} is unknown; send 'text', 'kind', 'agent', 'key' and 'files'")
    return [value for _, value in found]

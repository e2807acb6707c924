"""Finished turns of hosts that run their agents elsewhere: one object, or a form with it and the turn's files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final, Literal

import msgspec
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from threefold.errors import InvalidInput
from threefold.model.kinds import StepStatus, SubmissionKind
from threefold.realms.conv.recorder import TurnHandle
from threefold.surfaces.http.desk import Visit, desk_of, media_of
from threefold.surfaces.http.operations import json_body, request_of, respond
from threefold.surfaces.http.routing import Exact
from threefold.surfaces.http.uploads import form_of

_FILES: Final = 50
_PARTS: Final = {"attachment": "attachments", "file": "files"}
Time = Annotated[
    str | None, msgspec.Meta(description="when, such as 2026-05-01T09:00:00Z; the moment of the call without")
]


class Part(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What everything in a turn has; unknown fields are refused."""

    at: Time = None


class Submission(Part):
    """What the person sent."""

    text: str
    kind: SubmissionKind = "prompt"
    batch: str | None = None
    author: str | None = None


class Answer(Part):
    """The final answer."""

    text: str
    author: str | None = None


class ContextEvent(Part):
    """Something that happened around the turn."""

    type: str
    payload: Any = None


class Step(Part):
    """One visible action of the agent."""

    name: str
    arguments: Any = None
    result: Any = None
    status: StepStatus = "completed"


class File(Part):
    """A file: `data` in base64, or its bytes as a part of the form that has this filename."""

    name: str
    data: bytes | None = None
    mime: str | None = None
    text: str | None = None


class Source(msgspec.Struct, forbid_unknown_fields=True):
    """A source that the answer used."""

    url: str
    title: str | None = None
    text: str | None = None


class Note(Part):
    """An internal note that is to be found by search."""

    text: str
    tag: str | None = None


class Summary(Part):
    """The agent's own account of the turn."""

    text: str
    refs: list[str] = []
    anchors: list[str] = []


class Event(Part):
    """A communicator event that was shown live."""

    type: str
    data: Any = None


class Stream(msgspec.Struct, forbid_unknown_fields=True):
    """A panel that was shown live."""

    marker: str
    text: str
    name: str = ""


class FinishedTurn(msgspec.Struct, forbid_unknown_fields=True):
    """A finished turn, whole.

    The same `turn` of the same `conversation` with the same times again changes nothing; with others, such as those of
    the call where none are given, it is a later edition and takes the place of the first.
    """

    conversation: str
    turn: str | None = None
    title: str | None = None
    started: Time = None
    submissions: list[Submission] = []
    answer: Answer | None = None
    steps: list[Step] = []
    attachments: list[File] = []
    files: list[File] = []
    context: list[ContextEvent] = []
    sources: list[Source] = []
    notes: list[Note] = []
    summary: Summary | None = None
    tokens: dict[str, int] = {}
    events: list[Event] = []
    streams: list[Stream] = []
    status: Literal["completed", "failed", "cancelled"] = "completed"
    error: str | None = None


class Recorded(msgspec.Struct):
    """What became of a turn: `outcome` is created, replaced or unchanged."""

    ref: str
    conversation: str
    turn: str
    outcome: str
    redacted: dict[str, int]


def routes() -> list[Route]:
    """The routes."""
    return [Exact("/v1/turns", _record, ["POST"])]


async def _record(request: Request) -> Response:
    desk = desk_of(request)
    guest = await desk.admit(request)
    guest.caller.need("conv:write")
    if media_of(request) != "multipart/form-data":
        body = await json_body(request)
        return await respond(request, guest, partial(record, body, {}), request_of(request, body))
    async with form_of(request, desk.settings.file_bytes, _FILES, 1) as form:
        body, files = await _parts(form)
        told = hashlib.sha256(
            repr(sorted((key, hashlib.sha256(data).digest()) for key, data in files.items())).encode()
        )
        work = partial(record, body, files)
        return await respond(request, guest, work, request_of(request, body + told.digest()), slow=True)


async def _parts(form: FormData) -> tuple[bytes, dict[tuple[str, str], bytes]]:
    """The part `turn`, and the bytes of all others by what they are and their names.

    Raises:
        InvalidInput: there is no turn, or another part than attachments and files.
    """
    files: dict[tuple[str, str], bytes] = {}
    turn: bytes | None = None
    for name, value in form.multi_items():
        if name == "turn":
            turn = await value.read() if isinstance(value, UploadFile) else value.encode()
        elif isinstance(value, UploadFile) and name in _PARTS:
            files[_PARTS[name], value.filename or ""] = await value.read()
        else:
            raise InvalidInput(f"part {name[:100]!r} is unknown; send 'turn' (JSON), 'attachment' and 'file'")
    if turn is None:
        raise InvalidInput("the form has no turn; send it as the part 'turn', a JSON object")
    return turn, files


def record(body: bytes, files: Mapping[tuple[str, str], bytes], visit: Visit) -> Recorded:
    """Record a finished turn.

    Raises:
        InvalidInput: something in it is off, named by its place. Others as `TurnHandle.record`.
    """
    try:
        given = msgspec.json.decode(body or b"{}", type=FinishedTurn)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise InvalidInput(f"turn: {str(error)[:300]}") from None
    left = dict(files)
    turn = visit.handle.turn(given.conversation, given.turn, given.title, given.started)
    _say(turn, given)
    for attached in given.attachments:
        data = _bytes("attachments", attached, left)
        turn.attach((attached.name, data), attached.mime, attached.text, attached.at)
    for published in given.files:
        if published.text is not None:
            raise InvalidInput(f"files: {published.name[:100]!r}: text is of attachments; give the bytes alone")
        turn.publish(published.name, _bytes("files", published, left), published.mime, published.at)
    if left:
        kind, name = next(iter(left))
        raise InvalidInput(f"part {name[:100]!r} is not among the turn's {kind}; name it there")
    ref = turn.record()
    return Recorded(ref, turn.conversation, turn.id, str(turn.outcome), dict(turn.redacted))


def _say(turn: TurnHandle, given: FinishedTurn) -> None:
    for said in given.submissions:
        getattr(turn, said.kind)(said.text, said.at, said.batch, said.author)
    for event in given.context:
        turn.context(event.type, event.payload, event.at)
    for step in given.steps:
        turn.step(step.name, step.arguments, step.result, step.status, step.at)
    for source in given.sources:
        turn.source(source.url, source.title, source.text)
    for note in given.notes:
        turn.note(note.text, note.tag, note.at)
    if given.summary is not None:
        turn.summary(given.summary.text, given.summary.refs, given.summary.anchors, given.summary.at)
    for shown in given.events:
        turn.event(shown.type, shown.data, shown.at)
    for stream in given.streams:
        turn.stream(stream.marker, stream.text, stream.name)
    if given.answer is not None:
        turn.answer(given.answer.text, given.answer.at, given.answer.author)
    turn.tokens(**given.tokens)
    _end(turn, given)


def _end(turn: TurnHandle, given: FinishedTurn) -> None:
    if given.status == "failed":
        turn.fail(given.error or "it failed")
    elif given.status == "cancelled":
        turn.cancel(given.error)
    elif given.error is not None:
        raise InvalidInput("error is of turns that failed or were cancelled; set status, or leave it out")


def _bytes(kind: str, file: File, left: dict[tuple[str, str], bytes]) -> bytes:
    found = left.pop((kind, file.name), file.data)
    if found is None:
        raise InvalidInput(
            f"{kind}: {file.name[:100]!r} has no bytes; give data in base64, or a part with this filename"
        )
    return found

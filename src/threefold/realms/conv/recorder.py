"""The turn handle: collects what happens in a turn and records it when the block is left."""

from __future__ import annotations

import itertools
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from threefold.errors import Conflict, InvalidInput, NotFound, Unavailable
from threefold.model.clean import storable
from threefold.model.codec import plain_json
from threefold.model.kinds import STEP_STATUSES, Status, StepStatus, SubmissionKind
from threefold.model.ref import check_path
from threefold.model.scope import check_id
from threefold.model.times import Moment, parse_moment
from threefold.model.turn import (
    Attachment,
    Completion,
    ContextEvent,
    Note,
    PublishedFile,
    Replay,
    Source,
    Step,
    Submission,
    Summary,
    Turn,
)
from threefold.realms.conv.limits import check_file, check_submissions, check_summary

REPLAYED_EVENTS = frozenset({"chat.citations", "chat.step", "chat.followups"})
STREAM_MARKERS = ("canvas", "tool", "subsystem")
_made = itertools.count()


def new_turn_id() -> str:
    """A new id that sorts by time of making: 12 hex digits of milliseconds, 4 that count, 12 random ones."""
    return f"{time.time_ns() // 1_000_000:012x}{next(_made) & 0xFFFF:04x}{os.urandom(6).hex()}"


class TurnHandle:
    """One open turn. Methods only collect; nothing is stored before the block is left or `record` is called.

    Leaving the block records the turn: `completed`, `failed` where an exception ends it, `cancelled` where the task is
    cancelled or interrupted. The exception goes on. After recording, `ref` is the reference of the whole turn and
    `outcome` is `created`, `replaced` or `unchanged`; a later call is a `Conflict`. `redacted` is how many things of
    which kind were taken out by the store's rule, if it has one.

    Times (`at`) are datetimes, ISO text or seconds since 1970; left out, it is the moment of the call.
    """

    def __init__(
        self,
        conversation: str,
        record: Callable[[Turn], tuple[str, str, Mapping[str, int]]],
        clock: Callable[[], datetime],
        turn_id: str | None = None,
        title: str | None = None,
        started: Moment = None,
    ) -> None:
        self.conversation = check_id(conversation, "conversation")
        self.id = new_turn_id() if turn_id is None else check_id(turn_id, "turn")
        self.title = title if title is None else _text(title, "title")
        self._closed = False
        self.ref: str | None = None
        self.outcome: str | None = None
        self.redacted: Mapping[str, int] = {}
        self._record, self._clock = record, clock
        self._started = clock() if started is None else parse_moment(started, "started")
        self._backdated = started is not None
        self._last = self._started
        self._ended: datetime | None = None
        self._status: Status | None = None
        self._error: str | None = None
        self._submissions: list[Submission] = []
        self._context: list[ContextEvent] = []
        self._attachments: list[Attachment] = []
        self._steps: list[Step] = []
        self._files: list[PublishedFile] = []
        self._sources: list[Source] = []
        self._notes: list[Note] = []
        self._summary: Summary | None = None
        self._partials: list[Completion] = []
        self._completion: Completion | None = None
        self._tokens: dict[str, int] = {}
        self._taken_out = Counter[str]()
        self._events: list[Mapping[str, Any]] = []
        self._streams: dict[tuple[str, str], dict[str, Any]] = {}

    def _at(self, at: Moment) -> datetime:
        self._check_open()
        moment = self._clock() if at is None else parse_moment(at, "at")
        self._last = max(self._last, moment)
        self._ended = None
        return moment

    def _check_open(self) -> None:
        if self._closed:
            raise Conflict("the turn's block was left and the turn is recorded; open a new turn")

    def prompt(self, text: str, at: Moment = None, batch: str | None = None, author: str | None = None) -> None:
        """What the person asked. Several submissions fold into one turn; each keeps its own text, time and batch."""
        self._submit("prompt", text, at, batch, author)

    def followup(self, text: str, at: Moment = None, batch: str | None = None, author: str | None = None) -> None:
        """What the person added while the turn was running."""
        self._submit("followup", text, at, batch, author)

    def steer(self, text: str, at: Moment = None, batch: str | None = None, author: str | None = None) -> None:
        """What the person interrupted the turn with."""
        self._submit("steer", text, at, batch, author)

    def _submit(self, kind: SubmissionKind, text: str, at: Moment, batch: str | None, author: str | None) -> None:
        if batch is not None:
            check_id(batch, "batch")
        name = None if author is None else check_id(author, "author")
        check_submissions(len(self._submissions) + 1)
        self._submissions.append(Submission(kind, _text(text, kind), self._at(at), batch, name))

    def context(self, type: str, payload: Any = None, at: Moment = None) -> None:  # noqa: A002 - the field's word
        """Something that happened around the turn, such as an opened page; `payload` is JSON and kept verbatim."""
        self._context.append(ContextEvent(check_id(type, "type"), plain_json(payload, "payload"), self._at(at)))

    def attach(
        self,
        file: str | Path | tuple[str, bytes],
        mime: str | None = None,
        text: str | None = None,
        at: Moment = None,
    ) -> None:
        """A file that the person gave: a path, or (name, bytes). `text` is what it says, where the host knows that.

        Raises:
            NotFound: there is no such file. InvalidInput: the name is no plain file name.
        """
        name, data = _read(file)
        said = None if text is None else _text(text, "text")
        check_file(name, data)
        self._attachments.append(Attachment(check_path(name), data, self._at(at), mime or mime_of(name), said))

    def step(
        self,
        name: str,
        arguments: Any = None,
        result: Any = None,
        status: StepStatus = "completed",
        at: Moment = None,
    ) -> None:
        """One visible action of the agent, such as a tool call; `arguments` and `result` are JSON."""
        if status not in STEP_STATUSES:
            raise InvalidInput(f"status {status!r} must be one of {', '.join(STEP_STATUSES)}")
        self._steps.append(
            Step(
                _text(name, "name"),
                self._at(at),
                plain_json(arguments, "arguments"),
                plain_json(result, "result"),
                status,
            )
        )

    def publish(self, path: str, data: bytes | str, mime: str | None = None, at: Moment = None) -> None:
        """A file that the host decided to keep, at a relative path; of a path given twice the later bytes count."""
        content = storable(data).encode() if isinstance(data, str) else _bytes(data, "data")
        check_file(path, content)
        self._files.append(PublishedFile(check_path(path), content, self._at(at), mime or mime_of(path)))

    def source(self, url: str, title: str | None = None, text: str | None = None) -> None:
        """A source that the answer used; shown as a citation on reload."""
        self._check_open()
        self._sources.append(Source(_text(url, "url"), _optional(title, "title"), _optional(text, "text")))

    def summary(self, text: str, refs: Collection[str] = (), anchors: Collection[str] = (), at: Moment = None) -> None:
        """The agent's working summary: goal, outcome, references, phrases to find it by. The last one counts."""
        said, named, literal = _text(text, "summary"), _texts(refs, "refs"), _texts(anchors, "anchors")
        check_summary(said, named, literal)
        self._summary = Summary(said, self._at(at), named, literal)

    def note(self, text: str, tag: str | None = None, at: Moment = None) -> None:
        """An internal note that is to be found by search (role `note`)."""
        self._notes.append(Note(_text(text, "note"), self._at(at), _optional(tag, "tag")))

    def partial(self, text: str, at: Moment = None, author: str | None = None) -> None:
        """What had been shown of an answer when a steer interrupted it; `at` is when it began."""
        name = None if author is None else check_id(author, "author")
        self._partials.append(Completion(_text(text, "partial"), self._at(at), name))

    def answer(self, text: str, at: Moment = None, author: str | None = None) -> None:
        """The one final answer; the last one counts."""
        name = None if author is None else check_id(author, "author")
        self._completion = Completion(_text(text, "answer"), self._at(at), name)

    def tokens(self, /, **counts: int) -> None:
        """Add token counts, such as `tokens(input=1200, output=80)`."""
        self._check_open()
        for name, count in counts.items():
            if not isinstance(count, int) or isinstance(count, bool):
                raise InvalidInput(f"{name} must be a whole number of tokens, not {type(count).__name__}")
            self._tokens[name] = self._tokens.get(name, 0) + count

    def taken_out(self, counts: Mapping[str, int]) -> None:
        """Add to what was redacted: how many things of which kind were taken out of texts before they came here."""
        self._check_open()
        self._taken_out.update(counts)

    def event(self, type: str, data: Any = None, at: Moment = None) -> None:  # noqa: A002 - the field's word
        """A communicator event that was shown live; kept for reload where its type is among the replayed ones."""
        self._check_open()
        if type in REPLAYED_EVENTS:
            moment = self._at(at).isoformat()
            self._events.append({"type": type, "at": moment, "data": plain_json(data, "data")})

    def stream(self, marker: str, text: str, name: str = "") -> None:
        """A piece of a live panel (`canvas`, `tool`, `subsystem`); pieces of one panel are kept joined."""
        self._check_open()
        if marker not in STREAM_MARKERS:
            raise InvalidInput(f"marker {marker!r} must be one of {', '.join(STREAM_MARKERS)}")
        panel = self._streams.setdefault((marker, name), {"marker": marker, "name": name, "text": "", "chunks": 0})
        panel["text"] += _text(text, "text")
        panel["chunks"] += 1

    def fail(self, error: str) -> None:
        """End the turn as failed, with the reason."""
        self._check_open()
        self._status, self._error = "failed", _text(error, "error")

    def cancel(self, reason: str | None = None) -> None:
        """End the turn as cancelled."""
        self._check_open()
        self._status, self._error = "cancelled", _optional(reason, "reason")

    def value(self) -> Turn:
        """The turn as it stands, as a value."""
        return Turn(
            conversation=self.conversation,
            id=self.id,
            started=min([self._started, *(s.at for s in self._submissions)]),
            ended=self._ended or (self._last if self._backdated else max(self._last, self._clock())),
            status=self._status or "completed",
            title=self.title,
            submissions=tuple(self._submissions),
            context=tuple(self._context),
            attachments=tuple(self._attachments),
            steps=tuple(self._steps),
            files=tuple(self._files),
            sources=tuple(self._sources),
            notes=tuple(self._notes),
            summary=self._summary,
            partials=tuple(self._partials),
            completion=self._completion,
            error=self._error,
            tokens=self._tokens,
            replay=Replay(tuple(self._events), tuple(self._streams.values())),
            redacted=dict(self._taken_out),
        )

    def record(self) -> str:
        """Record the turn now and return its reference; doing so again without changes changes nothing."""
        turn = self.value()
        self._ended = turn.ended
        self.ref, self.outcome, self.redacted = self._record(turn)
        return self.ref

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(error)

    def close(self, error: BaseException | None = None) -> None:
        """Record the turn as it ends; `error` is what ended it early, if anything did."""
        if error is not None:
            # Cancellation, interrupts and exits are BaseExceptions beside Exception.
            self._status = "failed" if isinstance(error, Exception) else "cancelled"
            self._error = f"{type(error).__name__}: {error}".rstrip(": ")
        self._closed = True
        self.record()


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be text, not {type(value).__name__}")
    return value


def _optional(value: object, name: str) -> str | None:
    return None if value is None else _text(value, name)


def _texts(values: Collection[str], name: str) -> tuple[str, ...]:
    if isinstance(values, str) or not all(isinstance(value, str) for value in values):
        raise InvalidInput(f"{name} must be a list of texts")
    return tuple(values)


def _bytes(value: object, name: str) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise InvalidInput(f"{name} must be bytes or text, not {type(value).__name__}")
    return bytes(value)


def mime_of(name: str) -> str | None:
    """What kind of file a name tells, if it does."""
    import mimetypes  # only where files are given: it reads the system's tables

    return mimetypes.guess_type(name, strict=False)[0]


def _read(file: str | Path | tuple[str, bytes]) -> tuple[str, bytes]:
    if isinstance(file, tuple):
        name, data = file
        return _text(name, "file name"), _bytes(data, "file data")
    path = Path(file)
    try:
        return path.name, path.read_bytes()
    except FileNotFoundError:
        raise NotFound(f"file {str(path)!r} does not exist; give a path or (name, bytes)") from None
    except OSError as error:
        raise Unavailable(f"file {str(path)!r} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InvalidInput(f"file {str(path)!r} is no path: {error}") from None

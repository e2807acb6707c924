"""The layout of an archive: names, and a turn as one line of JSON.

manifest.json     {"format", "tenant", "user", "exported", "turns", "blobs"}
turns.jsonl       one line for each turn, in order of arrival within its conversation; then records of other realms,
                  curated memories among them, each with its `realm`
blobs/<digest>    the bytes of attachments and published files, by SHA-256
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, get_args

import msgspec

from threefold.errors import IntegrityError, InvalidInput
from threefold.model.codec import digest_of, feedback_to_json, file_to_json, log_from_json, log_to_json, row_to_json
from threefold.model.kinds import ROLES, STATUSES, State
from threefold.model.record import Feedback, FileEntry, StoredTurn, TurnRecord
from threefold.model.rows import Row
from threefold.model.scope import RECORD, check_id
from threefold.model.times import iso, parse_moment
from threefold.text.terms import index_terms

FORMAT = "threefold.export.v1"
MANIFEST, TURNS, BLOBS = "manifest.json", "turns.jsonl", "blobs/"
# What no engine keeps: NUL in PostgreSQL.
_NUL: Final = "\x00"
_Whole = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_Small = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
_Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class _File(msgspec.Struct):
    path: str
    digest: _Digest
    size: _Whole
    mime: str | None = None


class _Row(msgspec.Struct):
    seq: _Small
    role: str
    event_type: str
    path: str
    text: str
    at: str
    batch: str | None = None
    author: str | None = None


class _Block(msgspec.Struct):
    type: str
    path: str
    at: str
    text: str | None = None
    meta: dict[str, Any] = {}


class _Log(msgspec.Struct):
    turn_id: str
    started: str
    ended: str
    status: str
    blocks: list[_Block]
    sources: list[dict[str, Any]]
    counts: dict[str, _Whole]
    tokens: dict[str, _Whole]
    error: str | None = None
    origin: dict[str, Any] = {}
    redacted: dict[str, _Whole] = {}


class _Feedback(msgspec.Struct):
    reaction: str
    at: str
    origin: str
    text: str | None = None


class _Turn(msgspec.Struct):
    """The types of a line; what they mean is checked behind."""

    conversation: str
    turn: str
    title: str | None
    state: str
    app: str | None
    agent: str | None
    expires: str | None
    digest: _Digest
    head: str
    log: _Log
    rows: list[_Row]
    files: list[_File]
    replay: dict[str, Any]
    feedback: list[_Feedback]
    labels: list[str] = []


def turn_to_json(stored: StoredTurn, realm: str = RECORD) -> dict[str, Any]:
    """A stored turn as JSON: the log, the rows, the files, replay artifacts and feedback."""
    record = stored.record
    return {
        **({} if realm == RECORD else {"realm": realm}),
        "conversation": record.conversation,
        "turn": record.turn,
        "title": record.title,
        "state": record.state,
        "app": record.app,
        "agent": record.agent,
        **({"labels": list(record.labels)} if record.labels else {}),
        "expires": None if record.expires is None else iso(record.expires),
        "digest": record.digest,
        "head": record.head,
        "log": log_to_json(record.log),
        "rows": [row_to_json(row) for row in record.rows],
        "files": [file_to_json(file) for file in record.files],
        "replay": dict(record.replay),
        "feedback": [feedback_to_json(feedback) for feedback in stored.feedback],
    }


def turn_from_json(value: Mapping[str, Any], where: str) -> tuple[TurnRecord, tuple[Feedback, ...]]:
    """The record and feedback that `turn_to_json` wrote; `where` is named in errors.

    Raises:
        IntegrityError: where it is not one.
    """
    try:
        msgspec.convert(value, _Turn)
        record = TurnRecord(
            conversation=value["conversation"],
            turn=value["turn"],
            state=value["state"],
            log=log_from_json(value["log"]),
            rows=tuple(_row(row) for row in value["rows"]),
            files=tuple(FileEntry(f["path"], f["digest"], f["size"], f.get("mime")) for f in value["files"]),
            replay=value["replay"],
            digest=value["digest"],
            head=value["head"],
            title=value["title"],
            app=value["app"],
            agent=value["agent"],
            labels=tuple(value.get("labels", ())),
            expires=None if value["expires"] is None else parse_moment(value["expires"], "expires"),
        )
        feedback = tuple(
            Feedback(f["reaction"], parse_moment(f["at"], "at"), f.get("text"), f["origin"]) for f in value["feedback"]
        )
    except (
        KeyError, TypeError, AttributeError, InvalidInput, IntegrityError, msgspec.ValidationError, OverflowError,
        RecursionError,
    ) as error:  # fmt: skip
        raise IntegrityError(f"{where}: not a turn of an export: {error!r}") from None
    _check(record, where)
    return record, feedback


def _check(record: TurnRecord, where: str) -> None:
    """A record must be what was exported: its parts of the right kind, its content that of its digest."""
    try:
        for name, given in (("conversation", record.conversation), ("turn", record.turn), ("app", record.app),
                            ("agent", record.agent)):  # fmt: skip
            if given is not None:
                check_id(given, name)
    except InvalidInput as error:
        raise IntegrityError(f"{where}: not a turn of an export: {error}") from None
    plain = (*record.labels, *(f.path for f in record.files), *(row.path for row in record.rows), record.head)
    if any(_NUL in text for text in plain) or record.log.turn != record.turn:
        raise IntegrityError(f"{where}: not a turn of an export: a path or label has a NUL, or its log is another's")
    if len({row.seq for row in record.rows}) < len(record.rows):
        raise IntegrityError(f"{where}: not a turn of an export: two rows have one place")
    if record.state not in get_args(State) or record.log.status not in STATUSES:
        raise IntegrityError(f"{where}: not a turn of an export: unknown state or status")
    if any(row.role not in ROLES or not isinstance(row.text, str) for row in record.rows):
        raise IntegrityError(f"{where}: not a turn of an export: a row has no role or text")
    blocks = {block.path: block.text for block in record.log.blocks}
    if digest_of([log_to_json(record.log), dict(record.replay)]) != record.digest or any(
        blocks.get(row.path, row.text) != row.text for row in record.rows if not row.path.endswith(".anchors")
    ):
        raise IntegrityError(f"{where}: the turn is not what was exported (its digest does not fit)")


def _row(value: Mapping[str, Any]) -> Row:
    author, text = value.get("author"), value["text"]
    return Row(
        seq=value["seq"],
        role=value["role"],
        event_type=value["event_type"],
        path=value["path"],
        text=text,
        at=parse_moment(value["at"], "at"),
        batch=value.get("batch"),
        author=author,
        terms=index_terms(f"{author}\n{text}" if author else text),
    )

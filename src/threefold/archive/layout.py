"""The layout of an archive: names, and a turn as one line of JSON.

manifest.json     {"format", "tenant", "user", "exported", "turns", "blobs"}
turns.jsonl       one line for each turn, in order of arrival within its conversation
blobs/<digest>    the bytes of attachments and published files, by SHA-256
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from threefold.errors import IntegrityError, InvalidInput
from threefold.model.codec import feedback_to_json, file_to_json, log_from_json, log_to_json, row_to_json
from threefold.model.record import Feedback, FileEntry, Row, StoredTurn, TurnRecord
from threefold.model.times import iso, parse_moment
from threefold.text.terms import index_terms

FORMAT = "threefold.export.v1"
MANIFEST, TURNS, BLOBS = "manifest.json", "turns.jsonl", "blobs/"


def turn_to_json(stored: StoredTurn) -> dict[str, Any]:
    """A stored turn as JSON: the log, the rows, the files, replay artifacts and feedback."""
    record = stored.record
    return {
        "conversation": record.conversation,
        "turn": record.turn,
        "title": record.title,
        "state": record.state,
        "app": record.app,
        "agent": record.agent,
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
            expires=None if value["expires"] is None else parse_moment(value["expires"], "expires"),
        )
        feedback = tuple(
            Feedback(f["reaction"], parse_moment(f["at"], "at"), f.get("text"), f["origin"]) for f in value["feedback"]
        )
    except (KeyError, TypeError, AttributeError, InvalidInput) as error:
        raise IntegrityError(f"{where}: not a turn of an export: {error!r}") from None
    return record, feedback


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

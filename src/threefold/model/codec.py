"""Record values to plain JSON values and back: what is stored, exported and shown."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from threefold.errors import IntegrityError, InvalidInput
from threefold.model.clean import storable
from threefold.model.record import LOG_VERSION, Block, Feedback, FileEntry, TurnLog
from threefold.model.rows import Row
from threefold.model.times import iso, parse_moment

# Made once: `json.dumps` with options of its own makes an encoder at every call.
compact_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_canonical_json = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def plain_json(value: Any, name: str) -> Any:
    """`value` as plain JSON (text made storable).

    Raises:
        InvalidInput: where it is not JSON; `name` is the argument's name.
    """
    try:
        return json.loads(storable(json.dumps(value, ensure_ascii=False, allow_nan=False)))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{name} must be plain JSON (text, numbers, lists, objects): {error}") from None


def digest_of(value: Any) -> str:
    """SHA-256 in hex of plain JSON, independent of key order."""
    return hashlib.sha256(_canonical_json(value).encode()).hexdigest()


def _without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in fields.items() if v not in (None, {}, ())}


def block_to_json(block: Block) -> dict[str, Any]:
    """A block as JSON; absent parts are left out."""
    value: dict[str, Any] = {"type": block.type, "path": block.path, "at": iso(block.at)}
    if block.text is not None:
        value["text"] = block.text
    if block.meta:
        value["meta"] = dict(block.meta)
    return value


def log_to_json(log: TurnLog) -> dict[str, Any]:
    """A TurnLog as JSON: the envelope (`version`, `turn_id`, times, `status`, `counts`, …) and its `blocks`."""
    return {
        "version": LOG_VERSION,
        "turn_id": log.turn,
        "started": iso(log.started),
        "ended": iso(log.ended),
        "status": log.status,
        "blocks": [block_to_json(block) for block in log.blocks],
        "sources": [dict(source) for source in log.sources],
        "counts": dict(log.counts),
        "tokens": dict(log.tokens),
        **_without_empty({"error": log.error, "origin": dict(log.origin), "redacted": dict(log.redacted)}),
    }


def log_from_json(value: Mapping[str, Any]) -> TurnLog:
    """The TurnLog that `log_to_json` wrote.

    Raises:
        IntegrityError: where it is not one.
    """
    try:
        return TurnLog(
            turn=value["turn_id"],
            started=parse_moment(value["started"], "started"),
            ended=parse_moment(value["ended"], "ended"),
            status=value["status"],
            blocks=tuple(
                Block(b["type"], b["path"], parse_moment(b["at"], "at"), b.get("text"), b.get("meta", {}))
                for b in value["blocks"]
            ),
            sources=tuple(value["sources"]),
            counts=value["counts"],
            tokens=value["tokens"],
            error=value.get("error"),
            origin=value.get("origin", {}),
            redacted=value.get("redacted", {}),
        )
    except (KeyError, TypeError, AttributeError, InvalidInput) as error:
        raise IntegrityError(f"a stored TurnLog is damaged: {error!r}") from None


def row_to_json(row: Row) -> dict[str, Any]:
    """A content row as JSON, without its terms (they follow from the text)."""
    return _without_empty(
        {
            "seq": row.seq,
            "role": row.role,
            "event_type": row.event_type,
            "path": row.path,
            "text": row.text,
            "at": iso(row.at),
            "batch": row.batch,
            "author": row.author,
        }
    )


def file_to_json(file: FileEntry) -> dict[str, Any]:
    """A file entry as JSON."""
    return _without_empty({"path": file.path, "digest": file.digest, "size": file.size, "mime": file.mime})


def feedback_to_json(feedback: Feedback) -> dict[str, Any]:
    """Feedback as JSON."""
    return _without_empty(
        {
            "reaction": feedback.reaction,
            "at": iso(feedback.at),
            "text": feedback.text,
            "origin": feedback.origin,
        }
    )

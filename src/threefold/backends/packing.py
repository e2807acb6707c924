"""TurnLogs and replay artifacts as compact bytes.

A text that stands in a content row of the same turn is not kept a second time in the log. What is left is repetitive
JSON, so it is deflated against a dictionary of the words that every log has.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from threefold.errors import IntegrityError
from threefold.model.codec import compact_json, log_from_json, log_to_json
from threefold.model.record import TurnLog
from threefold.model.rows import Row

# The dictionary belongs to the stored format: a change needs a new format byte and the old one to read with.
_FORMAT = b"\x01"
_DICTIONARY = (
    b'"origin":{"importer":"conversation":"sources":[{"url":"https://"title":"tokens":{"input":,"output":"cached":'
    b'"error":"cancelled""failed"{"type":"context.event","path":"events/1","meta":{"event":"payload":{'
    b'{"type":"user.attachment","path":"user.attachments/"digest":"size":"mime":"application/json"image/png"text/'
    b'{"type":"assistant.file","path":"files/{"type":"agent.note","path":"notes.1","tag":"decision"'
    b'{"type":"working.summary","path":"conv.working.summary","meta":{"refs":[],"anchors":["conv:fi:conv_'
    b'{"type":"assistant.step","path":"step_1.call","at":"2025-06-14T10:","meta":{"name":"status":"completed",'
    b'"arguments":{"command":"file_path":"pattern":"description":"result":"status":"error"'
    b'{"version":"conv.turnlog.v1","turn_id":"","started":"2026-01-01T00:00:00.000000Z","ended":"2026-01-01T00:00:00Z",'
    b'"status":"completed","blocks":[{"type":"user.followup","type":"user.prompt","path":"user.prompt","at":"2026-'
    b'"meta":{"event_type":"event.user.followup","event_type":"event.user.prompt","message_id":"m0","batch":".batch"},'
    b'"author":"row":0},{"type":"assistant.completion","path":"assistant.completion","at":"2026-"meta":{"row":1}],'
    b'"sources":[],"counts":{"user.prompt":1,"assistant.completion":1},"tokens":{}}'
)


def pack(value: Any) -> bytes:
    """Deflated JSON."""
    # With a higher memLevel (the default is 8) memory is mapped anew for every log, which costs more than deflating.
    deflate = zlib.compressobj(level=6, wbits=-15, memLevel=6, zdict=_DICTIONARY)
    return _FORMAT + deflate.compress(compact_json(value).encode()) + deflate.flush()


def unpack(data: bytes) -> Any:
    """What `pack` packed.

    Raises:
        IntegrityError: where the bytes are damaged.
    """
    if data[:1] != _FORMAT:
        raise IntegrityError("a stored log has an unknown format; a newer program wrote it")
    try:
        inflate = zlib.decompressobj(wbits=-15, zdict=_DICTIONARY)
        return json.loads(inflate.decompress(data[1:]) + inflate.flush())
    except (zlib.error, ValueError) as error:
        raise IntegrityError(f"a stored log is damaged: {error}") from None


def pack_log(log: TurnLog, rows: Sequence[Row]) -> bytes:
    """A TurnLog without the texts that `rows` hold."""
    by_path = {row.path: row for row in rows}
    value = log_to_json(log)
    for block in value["blocks"]:
        row = by_path.get(block["path"])
        if row is not None and block.get("text") == row.text:
            block["row"] = row.seq
            del block["text"]
    return pack(value)


def unpack_log(data: bytes, texts: Mapping[int, str] | None) -> TurnLog:
    """The TurnLog, its texts filled in from the rows (number in the turn → text), or with None left out.

    Raises:
        IntegrityError: where a row is missing or the bytes are damaged.
    """
    value = unpack(data)
    for block in value["blocks"]:
        row = block.pop("row", None)
        if row is not None and texts is not None:
            try:
                block["text"] = texts[row]
            except KeyError:
                raise IntegrityError(
                    f"row of block {block['path']!r} of turn {value['turn_id']!r} is missing"
                ) from None
    return log_from_json(value)

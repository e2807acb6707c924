"""Something that arrives at a lane: checked, redacted, and made a value, before anything of it is kept."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from threefold.errors import InvalidInput
from threefold.model.clean import storable
from threefold.model.codec import digest_of, plain_json
from threefold.model.kinds import SUBMISSION_KINDS, SubmissionKind
from threefold.model.ref import check_path
from threefold.model.scope import check_id
from threefold.ports import Redactor
from threefold.realms.conv.lanes.values import Attached, Key, Sent
from threefold.realms.conv.limits import check_sent
from threefold.realms.conv.recorder import mime_of
from threefold.realms.redacting import Pass

File = tuple[str, bytes] | tuple[str, bytes, str | None]


@dataclass(frozen=True, slots=True)
class Draft:
    """A submission that is about to be accepted, with the bytes that must be kept before it, and its key."""

    sent: Sent
    data: tuple[bytes, ...]
    key: Key | None = None


def draft(
    id_: str,
    kind: SubmissionKind,
    text: str,
    at: datetime,
    attachments: Sequence[File] = (),
    context: Sequence[Mapping[str, Any]] = (),
    key: str | None = None,
    author: str | None = None,
    rule: Redactor | None = None,
) -> Draft:
    """A submission as a value.

    Raises:
        InvalidInput: naming the argument that is off, or too large.
    """
    if kind not in SUBMISSION_KINDS:
        raise InvalidInput(f"kind {kind!r} must be one of {', '.join(SUBMISSION_KINDS)}")
    if not isinstance(text, str):
        raise InvalidInput(f"text must be text, not {type(text).__name__}")
    files = [_file(each) for each in attachments]
    check_sent(text, [(file.name, data) for file, data in files])
    if not text.strip() and not files and not context:
        raise InvalidInput("text is empty; say something, or attach a file")
    done = Pass(rule)
    sent = Sent(
        id_,
        kind,
        storable(done.text(text)),
        at,
        # What is put in the place of a secret may be longer than that.
        None if author is None else check_id(done.text(check_id(author, "author")), "author, redacted,"),
        tuple(file._replace(name=_redacted_name(done, file.name)) for file, _ in files),
        tuple((type_, done.json(payload)) for type_, payload in map(_object, context)),
    )
    sent = replace(sent, redacted=dict(done.counts))
    return Draft(sent, tuple(data for _, data in files), None if key is None else _key(key, sent))


def _file(file: File) -> tuple[Attached, bytes]:
    if not isinstance(file, tuple) or len(file) not in (2, 3) or not isinstance(file[0], str):
        raise InvalidInput("attachments must be a list of (name, bytes) or (name, bytes, MIME type)")
    if not isinstance(file[1], bytes | bytearray | memoryview):
        raise InvalidInput(f"attachments: {file[0]!r} must be bytes, not {type(file[1]).__name__}")
    name, data = check_path(file[0].replace("\\", "/").split("/")[-1]), bytes(file[1])
    given = file[2] if len(file) == 3 else None
    if given is not None and not isinstance(given, str):
        raise InvalidInput(f"attachments: the MIME type of {name!r} must be text, not {type(given).__name__}")
    mime = mime_of(name) if given is None else storable(given)
    return Attached(name, hashlib.sha256(data).hexdigest(), len(data), mime), data


def _redacted_name(done: Pass, name: str) -> str:
    return check_path(check_id(done.path(name), "attachments: a name, redacted,"))


def _object(value: Mapping[str, Any]) -> tuple[str, Any]:
    """A context object: its `type`, and all else as its payload."""
    if not isinstance(value, Mapping) or not isinstance(value.get("type"), str):
        raise InvalidInput('context must be a list of objects that have a "type"')
    return check_id(value["type"], "context type"), plain_json(
        {name: each for name, each in value.items() if name != "type"}, "context"
    )


def _key(key: str, sent: Sent) -> Key:
    what = [sent.kind, sent.text, sent.author, [file.digest for file in sent.attachments], list(sent.context)]
    return Key(hashlib.sha256(check_id(key, "key").encode()).hexdigest()[:32], digest_of(what)[:16], "", "", 0)

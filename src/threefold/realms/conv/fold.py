"""Folding a turn into its record: pure, and the only place that knows the order of blocks and the rows they give."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from threefold.errors import InvalidInput
from threefold.model.clean import storable
from threefold.model.codec import digest_of, log_to_json, plain_json
from threefold.model.record import Block, FileEntry, TurnLog, TurnRecord
from threefold.model.ref import check_path
from threefold.model.rows import Row
from threefold.model.scope import Scope, check_id
from threefold.model.times import iso
from threefold.model.turn import Turn
from threefold.realms.conv.limits import check_file, check_submissions, check_summary
from threefold.realms.redacting import distinct
from threefold.text.terms import index_terms


@dataclass(frozen=True, slots=True)
class Folded:
    """A record ready to commit, and the bytes that must be kept before it: digest → data."""

    record: TurnRecord
    blobs: Mapping[str, bytes]


def fold(scope: Scope, turn: Turn, expires: datetime | None) -> Folded:
    """Turn a `Turn` into its minimal TurnLog, content rows, file entries and blobs.

    Blocks come in this order: one for each submission, context events, attachments, steps, published files, notes,
    working summary, interrupted answers, completion. Rows: one for each submission and answer, and where they
    exist the summary, its anchors, notes and attachment texts. `expires` is the end of its time to live.

    Raises:
        InvalidInput: for ids, paths or sizes that cannot be kept, and for values that are not JSON.
    """
    _check(turn)
    rows = tuple(_rows(turn))
    files, blobs = _files(turn)
    blocks = tuple(_blocks(turn, files))
    log = TurnLog(
        turn=turn.id,
        started=turn.started,
        ended=turn.ended,
        status=turn.status,
        blocks=blocks,
        sources=tuple(_source(s) for s in turn.sources),
        tokens={k: int(v) for k, v in turn.tokens.items()},
        counts=dict(Counter(block.type for block in blocks)),
        error=None if turn.error is None else storable(turn.error),
        origin=plain_json(dict(turn.origin), "origin") if turn.origin else {},
        redacted={storable(kind): int(n) for kind, n in sorted(turn.redacted.items())},
    )
    replay = {
        key: plain_json(list(value), f"replay.{key}")
        for key, value in (("events", turn.replay.events), ("streams", turn.replay.streams))
        if value
    }
    record = TurnRecord(
        conversation=turn.conversation,
        turn=turn.id,
        state="minimal",
        log=log,
        rows=rows,
        files=files,
        replay=replay,
        digest=digest_of([log_to_json(log), replay]),
        head="".join(digest_of([s.kind, storable(s.text)])[:16] for s in turn.submissions),
        title=None if turn.title is None else storable(turn.title),
        app=scope.app,
        agent=scope.agent,
        expires=expires,
    )
    return Folded(record, blobs)


def _check(turn: Turn) -> None:
    check_id(turn.conversation, "conversation")
    check_id(turn.id, "turn")
    if turn.ended < turn.started:
        raise InvalidInput(f"turn {turn.id!r} ended {iso(turn.ended)}, before it started {iso(turn.started)}")
    check_submissions(len(turn.submissions))
    if turn.summary is not None:
        check_summary(turn.summary.text, turn.summary.refs, turn.summary.anchors)


def _rows(turn: Turn) -> Iterable[Row]:
    """Content rows in the order in which their blocks come."""
    batch = f"{turn.id}.batch"
    found: list[tuple[str, str, str, str, datetime, str | None, str | None]] = []
    for i, s in enumerate(turn.submissions):
        found.append(("user", f"event.user.{s.kind}", _prompt(i), s.text, s.at, s.batch or batch, s.author))
    for path, a in zip(_attachment_paths(turn), turn.attachments, strict=True):
        if a.text:
            found.append(("attachment", "event.user.attachment", path, a.text, a.at, batch, None))
    for i, n in enumerate(turn.notes):
        found.append(("note", "agent.note", f"notes.{i + 1}", n.text, n.at, None, None))
    if turn.summary:
        summary = turn.summary
        found.append(("summary", "agent.summary", "conv.working.summary", summary.text, summary.at, None, None))
        if summary.anchors:
            anchors = "\n".join(summary.anchors)
            found.append(("summary", "agent.anchors", "conv.working.summary.anchors", anchors, summary.at, None, None))
    for i, p in enumerate(turn.partials, 1):
        found.append(("assistant", "agent.partial", f"assistant.partial.{i}", p.text, p.at, None, p.author))
    if turn.completion:
        c = turn.completion
        found.append(("assistant", "agent.completion", "assistant.completion", c.text, c.at, None, c.author))
    kept = [(*rest[:3], storable(rest[3]), *rest[4:]) for rest in found if rest[3].strip()]
    for seq, (role, event, path, text, at, group, author) in enumerate(kept):
        said = f"{author}\n{text}" if author else text
        yield Row(seq, role, event, path, text, at, group, author, index_terms(said))


def _prompt(i: int) -> str:
    return "user.prompt" if i == 0 else f"user.prompt.{i}"


def _attachment_paths(turn: Turn) -> list[str]:
    """One distinct path for each attachment: a repeated name gets a number before its ending."""
    return distinct(
        f"user.attachments/{check_path(a.name.replace(chr(92), '/').split('/')[-1])}" for a in turn.attachments
    )


def _files(turn: Turn) -> tuple[tuple[FileEntry, ...], dict[str, bytes]]:
    """File entries of attachments and published files; of a path published twice the last edition counts."""
    named = [(p, a.data, a.mime) for p, a in zip(_attachment_paths(turn), turn.attachments, strict=True)]
    published = {f"files/{check_path(f.path)}": f for f in turn.files}
    named += [(path, f.data, f.mime) for path, f in published.items()]
    entries, blobs = [], {}
    for path, data, mime in named:
        check_file(path, data)
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        entries.append(FileEntry(path, digest, len(data), mime))
    return tuple(entries), blobs


def _source(source: Any) -> dict[str, Any]:
    fields = {"url": source.url, "title": source.title, "text": source.text}
    return {k: storable(v) for k, v in fields.items() if v is not None}


def _blocks(turn: Turn, files: tuple[FileEntry, ...]) -> Iterable[Block]:
    batch = f"{turn.id}.batch"
    for i, s in enumerate(turn.submissions):
        meta: dict[str, Any] = {"event_type": f"event.user.{s.kind}", "message_id": f"m{i}", "batch": s.batch or batch}
        if s.author:
            meta["author"] = s.author
        yield Block(f"user.{s.kind}", _prompt(i), s.at, storable(s.text), meta)
    for i, event in enumerate(turn.context, 1):
        yield Block(
            "context.event",
            f"events/{i}",
            event.at,
            None,
            {"event": event.type, "payload": plain_json(event.payload, "payload")},
        )
    attached, published = files[: len(turn.attachments)], files[len(turn.attachments) :]
    for entry, a in zip(attached, turn.attachments, strict=True):
        yield Block("user.attachment", entry.path, a.at, None if not a.text else storable(a.text), _card(entry))
    for i, step in enumerate(turn.steps, 1):
        meta = {"name": storable(step.name), "status": step.status}
        for key, value in (("arguments", step.arguments), ("result", step.result)):
            if value is not None:
                meta[key] = plain_json(value, f"step {step.name!r} {key}")
        yield Block("assistant.step", f"step_{i}.call", step.at, None, meta)
    moments = {f"files/{f.path}": f.at for f in turn.files}
    for entry in published:
        yield Block("assistant.file", entry.path, moments[entry.path], None, _card(entry))
    for i, note in enumerate(turn.notes, 1):
        yield Block(
            "agent.note", f"notes.{i}", note.at, storable(note.text), {"tag": storable(note.tag)} if note.tag else {}
        )
    if turn.summary:
        meta = {
            "refs": [storable(r) for r in turn.summary.refs],
            "anchors": [storable(a) for a in turn.summary.anchors],
        }
        yield Block("working.summary", "conv.working.summary", turn.summary.at, storable(turn.summary.text), meta)
    answers = [("assistant.partial", f"assistant.partial.{i}", each) for i, each in enumerate(turn.partials, 1)]
    if turn.completion:
        answers.append(("assistant.completion", "assistant.completion", turn.completion))
    yield from (
        Block(type_, path, done.at, storable(done.text), {"author": done.author} if done.author else {})
        for type_, path, done in answers
    )


def _card(entry: FileEntry) -> dict[str, Any]:
    card: dict[str, Any] = {"digest": entry.digest, "size": entry.size}
    return card | ({"mime": entry.mime} if entry.mime else {})

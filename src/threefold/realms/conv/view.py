"""Materialising: from a stored turn back to what the person saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from threefold.model.codec import feedback_to_json
from threefold.model.kinds import Status
from threefold.model.record import Block, Feedback, StoredTurn
from threefold.model.times import iso
from threefold.realms.conv.refs import ref_for, turn_ref

_ROLE = {
    "user.prompt": "user",
    "user.followup": "user",
    "user.steer": "user",
    "assistant.partial": "assistant",
    "assistant.completion": "assistant",
}


@dataclass(frozen=True, slots=True)
class Message:
    """A bubble: who said what when. `kind` is `prompt`, `followup`, `steer`, `completion`, or `partial`: an answer that
    a steer interrupted.
    """

    role: str
    kind: str
    text: str
    at: datetime
    ref: str
    batch: str | None = None
    author: str | None = None


@dataclass(frozen=True, slots=True)
class FileCard:
    """An attachment or published file: its reference leads to the exact bytes."""

    ref: str
    name: str
    digest: str
    size: int
    mime: str | None = None


@dataclass(frozen=True, slots=True)
class StepView:
    """One visible action of the agent."""

    ref: str
    name: str
    status: str
    at: datetime
    arguments: Any = None
    result: Any = None


@dataclass(frozen=True, slots=True)
class TurnView:
    """A turn as the person saw it, rebuilt from its TurnLog.

    `citations` are the sources; `events` and `streams` are the replay artifacts; `context` are the events around it.
    """

    ref: str
    conversation: str
    turn: str
    ordinal: int
    status: Status
    state: str
    started: datetime
    ended: datetime
    messages: tuple[Message, ...]
    attachments: tuple[FileCard, ...] = ()
    files: tuple[FileCard, ...] = ()
    steps: tuple[StepView, ...] = ()
    citations: tuple[Mapping[str, Any], ...] = ()
    context: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[Mapping[str, Any], ...] = ()
    summary: Mapping[str, Any] | None = None
    feedback: tuple[Feedback, ...] = ()
    events: tuple[Mapping[str, Any], ...] = ()
    streams: tuple[Mapping[str, Any], ...] = ()
    tokens: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None
    agent: str | None = None
    app: str | None = None
    origin: Mapping[str, Any] = field(default_factory=dict)
    redacted: Mapping[str, int] = field(default_factory=dict)


def materialise(stored: StoredTurn) -> TurnView:
    """Rebuild what the person saw from a stored turn. Pure."""
    record, log = stored.record, stored.record.log
    cid, tid = record.conversation, record.turn
    of_type = _by_type(log.blocks)
    summaries = of_type("working.summary")
    return TurnView(
        ref=turn_ref(cid, tid),
        conversation=cid,
        turn=tid,
        ordinal=stored.ordinal,
        status=log.status,
        state=record.state,
        started=log.started,
        ended=log.ended,
        messages=_messages(cid, tid, log.blocks),
        attachments=tuple(_card(cid, tid, b) for b in of_type("user.attachment")),
        files=tuple(_card(cid, tid, b) for b in of_type("assistant.file")),
        steps=tuple(_step(cid, tid, b) for b in of_type("assistant.step")),
        citations=tuple(
            {"ref": ref_for(cid, tid, f"sources_pool[{number}]"), **source}
            for number, source in enumerate(log.sources, 1)
        ),
        context=tuple({"at": iso(b.at), "ref": ref_for(cid, tid, b.path), **b.meta} for b in of_type("context.event")),
        notes=tuple(
            {"ref": ref_for(cid, tid, b.path), "text": b.text, "at": iso(b.at), **b.meta} for b in of_type("agent.note")
        ),
        summary={"ref": ref_for(cid, tid, summaries[0].path), "text": summaries[0].text, **summaries[0].meta}
        if summaries
        else None,
        feedback=stored.feedback,
        events=tuple(record.replay.get("events", ())),
        streams=tuple(record.replay.get("streams", ())),
        tokens=log.tokens,
        error=log.error,
        agent=record.agent,
        app=record.app,
        origin=log.origin,
        redacted=log.redacted,
    )


def _by_type(blocks: tuple[Block, ...]) -> Any:
    return lambda kind: [block for block in blocks if block.type == kind]


def _messages(cid: str, tid: str, blocks: Sequence[Block]) -> tuple[Message, ...]:
    """What was said; in order of time where an answer was interrupted, so that it stands before what interrupted it."""
    said = [_message(cid, tid, block) for block in blocks if block.type in _ROLE]
    if any(message.kind == "partial" for message in said):
        said.sort(key=lambda message: message.at)
    return tuple(said)


def _message(cid: str, tid: str, block: Block) -> Message:
    return Message(
        role=_ROLE[block.type],
        kind=block.type.partition(".")[2],
        text=block.text or "",
        at=block.at,
        ref=ref_for(cid, tid, block.path),
        batch=block.meta.get("batch"),
        author=block.meta.get("author"),
    )


def _card(cid: str, tid: str, block: Block) -> FileCard:
    name = block.path.partition("/")[2]
    return FileCard(
        ref_for(cid, tid, block.path), name, block.meta["digest"], block.meta["size"], block.meta.get("mime")
    )


def _step(cid: str, tid: str, block: Block) -> StepView:
    meta = block.meta
    ref = ref_for(cid, tid, block.path)
    return StepView(ref, meta["name"], meta["status"], block.at, meta.get("arguments"), meta.get("result"))


def view_to_json(view: TurnView) -> dict[str, Any]:
    """The view as plain JSON values, for scripts and surfaces."""
    return {
        "ref": view.ref,
        "conversation": view.conversation,
        "turn": view.turn,
        "ordinal": view.ordinal,
        "status": view.status,
        "state": view.state,
        "started": iso(view.started),
        "ended": iso(view.ended),
        "messages": [
            {"role": m.role, "kind": m.kind, "text": m.text, "at": iso(m.at), "ref": m.ref, "author": m.author}
            for m in view.messages
        ],
        "attachments": [_card_to_json(c) for c in view.attachments],
        "files": [_card_to_json(c) for c in view.files],
        "steps": [
            {
                "ref": s.ref,
                "name": s.name,
                "status": s.status,
                "at": iso(s.at),
                "arguments": s.arguments,
                "result": s.result,
            }
            for s in view.steps
        ],
        "citations": [dict(c) for c in view.citations],
        "context": [dict(c) for c in view.context],
        "notes": [dict(n) for n in view.notes],
        "summary": None if view.summary is None else dict(view.summary),
        "feedback": [feedback_to_json(f) for f in view.feedback],
        "events": [dict(e) for e in view.events],
        "streams": [dict(s) for s in view.streams],
        "tokens": dict(view.tokens),
        "error": view.error,
        "agent": view.agent,
        "app": view.app,
        "origin": dict(view.origin),
        "redacted": dict(view.redacted),
    }


def _card_to_json(card: FileCard) -> dict[str, Any]:
    return {"ref": card.ref, "name": card.name, "digest": card.digest, "size": card.size, "mime": card.mime}

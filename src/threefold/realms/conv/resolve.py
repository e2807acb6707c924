"""Following a reference inside a turn: from what is stored to the object it names. Pure, but for reading bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from threefold.errors import NotFound
from threefold.model.codec import log_to_json
from threefold.model.record import Block, StoredTurn, TurnRecord
from threefold.model.ref import ConvRef
from threefold.model.resolved import Resolved
from threefold.model.times import iso
from threefold.realms.conv.refs import LOG_PATH, path_family
from threefold.realms.conv.view import materialise, view_to_json

_KINDS = {
    "user.prompt": "message",
    "user.followup": "message",
    "user.steer": "message",
    "assistant.partial": "message",
    "assistant.completion": "message",
    "agent.note": "note",
    "working.summary": "summary",
    "context.event": "event",
    "assistant.step": "step",
}


def resolve(ref: ConvRef, stored: StoredTurn) -> Resolved:
    """The object that `ref` names in its turn.

    Raises:
        NotFound: the turn is there, but has no such object.
    """
    record, began = stored.record, stored.record.log.started
    if ref.family == "fi":
        file = next((f for f in record.files if f.path == ref.body), None)
        if file is None:
            raise NotFound(f"{ref}: the turn has no such file; it has {_listed(f.path for f in record.files)}")
        card = {"path": file.path, "digest": file.digest, "size": file.size, "mime": file.mime}
        return Resolved(str(ref), "file", card, None, file, file.path.rpartition("/")[2], began)
    if ref.family == "so":
        return Resolved(str(ref), "sources", _sources(ref, stored), at=began)
    if ref.body == LOG_PATH:
        value = {**view_to_json(materialise(stored)), "log": log_to_json(record.log)}
        return Resolved(str(ref), "turn", value, title=record.title or "", at=began)
    block, part = _block(ref, stored)
    kind = _KINDS[block.type]
    value = {"type": block.type, "at": iso(block.at), "text": block.text, **block.meta}
    if part == "anchors":
        return Resolved(str(ref), kind, block.meta["anchors"], "\n".join(block.meta["anchors"]), at=block.at)
    if part == "result":
        step = {"name": block.meta["name"], "status": block.meta["status"], "result": block.meta.get("result")}
        return Resolved(str(ref), kind, step, at=block.at)
    return Resolved(str(ref), kind, {k: v for k, v in value.items() if v is not None}, block.text, at=block.at)


def spoken(record: TurnRecord) -> str:
    """What was said in a turn, one message after the other."""
    said = (block for block in record.log.blocks if _KINDS.get(block.type) == "message" and block.text)
    return "\n".join(f"{'user' if block.type.startswith('user') else 'assistant'}: {block.text}" for block in said)


def _block(ref: ConvRef, stored: StoredTurn) -> tuple[Block, str]:
    """The block that a body names, and which part of it: `step_1.result` is a part of `step_1.call`."""
    body, part = ref.body, ""
    if ref.family == "tc" and body.endswith(".result"):
        body, part = body.removesuffix("result") + "call", "result"
    if ref.family == "ws":
        part = "anchors" if body.endswith(".anchors") else ""
        body = "conv.working.summary"
    blocks = stored.record.log.blocks if path_family(body) == ref.family else ()
    block = next((b for b in blocks if b.path == body), None)
    if block is None or (part == "anchors" and not block.meta.get("anchors")):
        raise NotFound(
            f"{ref}: the turn has no such object; it has {_listed(b.path for b in stored.record.log.blocks)}"
        )
    return block, part


def _sources(ref: ConvRef, stored: StoredTurn) -> list[dict[str, Any]]:
    """The chosen sources, numbered from 1; `sources_pool` alone means all."""
    sources = [{"number": i, **source} for i, source in enumerate(stored.record.log.sources, 1)]
    selection = re.findall(r"(\d+)(?:-(\d+))?", ref.body)
    if not selection:
        return sources
    bounds = [(int(first), int(last or first)) for first, last in selection]
    if not all(1 <= first <= last <= len(sources) for first, last in bounds):
        raise NotFound(f"{ref}: the turn has {len(sources)} sources, not all of these")
    return [s for s in sources if any(first <= s["number"] <= last for first, last in bounds)]


def _listed(paths: Iterable[str], most: int = 8) -> str:
    names = list(paths)
    return ", ".join(names[:most]) + (", …" if len(names) > most else "") if names else "none"

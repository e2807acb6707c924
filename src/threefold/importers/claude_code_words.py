"""What a `user` record of Claude Code holds: a person's words, or what the tool wrote in the person's name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from threefold.importers.base import mapping, text
from threefold.importers.blocks import blocks_of, described, joined_text, take_file
from threefold.importers.folding import Conversation
from threefold.importers.wrappers import unwrap
from threefold.model.turn import Turn


def events(conversation: Conversation, kind: str, blocks: Iterable[Mapping[str, Any]], at: datetime) -> list[Turn]:
    """Keep what a tool wrote in the user's name as events."""
    for block in blocks:
        data = mapping(block.get("source")).get("data")
        kept: Any = described(block, data) if isinstance(data, str) else block.get("text", dict(block))
        conversation.event(kind, kept, at)
    return []


def queued(conversation: Conversation, attachment: Mapping[str, Any], at: datetime, uuid: object) -> list[Turn]:
    """What was typed (or announced) while the agent worked, at the moment at which it was told."""
    words = joined_text(attachment.get("prompt"))
    if attachment.get("commandMode") not in (None, "prompt"):
        return events(conversation, text(attachment.get("commandMode")) or "queued", blocks_of(words), at)
    return conversation.prompt(words, at, uuid, queued=True) if words.strip() else []


def person(
    conversation: Conversation, blocks: list[Mapping[str, Any]], at: datetime, value: Mapping[str, Any]
) -> list[Turn]:
    """A message of the user that is neither a tool's result nor marked as the tool's own."""
    author = "parent agent" if value.get("isSidechain") is True or value.get("agentId") else None
    texts = [text(b.get("text")) for b in blocks if b.get("type") == "text"]
    others = [b for b in blocks if b.get("type") != "text"]
    heard = [unwrap(words) for words in texts]
    if any(h.interrupted for h in heard):
        conversation.cancel(at)
    said = "\n\n".join(h.said for h in heard if h.said.strip())
    asked = bool(said) or any(b.get("type") in ("image", "document") for b in others)
    ended = conversation.prompt(said, at, value.get("uuid"), author) if asked else []
    for kind, inside in (event for h in heard for event in h.events):
        conversation.event(kind, inside, at)
    for ordinal, block in enumerate(others, 1):
        if not take_file(conversation, block, at, ordinal):
            conversation.event(f"block.{text(block.get('type')) or 'unknown'}", dict(block), at)
    if any(h.output for h in heard):
        conversation.settle()
    return ended

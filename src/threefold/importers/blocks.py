"""Content blocks as Anthropic's tools write them: of Claude Code sessions, claude.ai exports and plain JSONL."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from threefold.importers.base import digest, file_name, first_text, items, mapping, mime_of, text
from threefold.importers.folding import Conversation

USAGE = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cache_read_input_tokens": "cached",
    "cache_creation_input_tokens": "cache_written",
}
_THINKING = ("thinking", "redacted_thinking")
SPOKEN = ("text", "Text", "input_text", "output_text", "voice_note", None)  # blocks whose `text` was said
PICTURES = ("image_url", "input_image")
_FILES = ("image", "document")
_ENDINGS = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "application/pdf": ".pdf",
}


def blocks_of(content: object) -> list[Mapping[str, Any]]:
    """The blocks of a message's `content`; bare text is a text block, and so is text among blocks."""
    given = [content] if isinstance(content, str) else items(content)
    return [{"type": "text", "text": b} if isinstance(b, str) else b for b in given if isinstance(b, str | dict)]


def is_thinking(block: Mapping[str, Any]) -> bool:
    """Whether a block is the model's thinking, which is neither an answer nor kept."""
    return block.get("type") in _THINKING


def joined_text(content: object) -> str:
    """All that is said in `content`, pieces joined by blank lines. A block of an unknown type says nothing."""
    spoken = (text(block.get("text")) for block in blocks_of(content) if block.get("type") in SPOKEN)
    return "\n\n".join(words for words in spoken if words.strip())


def plain_result(content: object) -> Any:
    """A tool's result as JSON: text where it is nothing but text; pictures are only described."""
    if isinstance(content, list) and content and all(mapping(b).get("type") == "text" for b in content):
        return "\n\n".join(text(b.get("text")) for b in content)
    return [_without_data(b) for b in content] if isinstance(content, list) else content


def _without_data(block: object) -> Any:
    data = mapping(mapping(block).get("source")).get("data")
    return described(mapping(block), data) if isinstance(data, str) else block


def described(block: Mapping[str, Any], data: str) -> dict[str, Any]:
    """A picture or document without its bytes: its kind, type, size and a digest to know it by."""
    source = mapping(block.get("source"))
    about = {"type": block.get("type"), "name": block.get("title"), "mime": source.get("media_type")}
    return {k: v for k, v in about.items() if isinstance(v, str)} | {
        "base64_characters": len(data),
        "digest": digest(data),
    }


def take_result(conversation: Conversation, block: Mapping[str, Any], at: datetime) -> None:
    """A `tool_result` block: the result of the step whose id it names."""
    failed = block.get("is_error") is True
    content = plain_result(block.get("content"))
    conversation.result(
        at, content, block.get("tool_use_id"), "error" if failed else "completed", text(block.get("name"))
    )


def take_file(conversation: Conversation, block: Mapping[str, Any], at: datetime, ordinal: int) -> bool:
    """An image or document block in a person's message: an attachment, or an event where its bytes are not there."""
    if block.get("type") not in _FILES:
        return False
    source = mapping(block.get("source"))
    mime = mime_of("", source.get("media_type"))
    name = file_name(block.get("title"), f"{block['type']}-{ordinal}{_ENDINGS.get(mime or '', '')}")
    if source.get("type") == "text" and isinstance(source.get("data"), str):
        conversation.attach(name, source["data"].encode(), at, mime or "text/plain", source["data"])
    elif (data := decoded(source.get("data"))) is not None:
        conversation.attach(name, data, at, mime or mime_of(name))
    else:
        where = first_text(source.get("url"), source.get("file_id"))
        conversation.event("missing_file", {"name": name, "reference": where or None}, at)
    return True


def picture_address(block: Mapping[str, Any]) -> str:
    """Where a picture is, as OpenAI's content parts say it."""
    given = block.get("image_url")
    return given if isinstance(given, str) else text(mapping(given).get("url"))


def take_picture(conversation: Conversation, address: str, at: datetime, ordinal: int) -> None:
    """A picture of a person's message: an attachment if it is in the `data:` address itself, else an event."""
    head, _, data = address.partition(";base64,")
    content = decoded(data)
    if head.startswith("data:") and content is not None:
        mime = mime_of("", head.removeprefix("data:")) or "image/png"
        name = f"image-{ordinal}{_ENDINGS.get(mime, '.' + file_name(mime.partition('/')[2], 'bin'))}"
        conversation.attach(name, content, at, mime)
    elif address:
        conversation.event("missing_file", {"name": address[:500], "reference": address[:500]}, at)


def decoded(data: object) -> bytes | None:
    """The bytes of base64 text, or None."""
    try:
        return base64.b64decode(data, validate=True) if isinstance(data, str) and data else None
    except (binascii.Error, ValueError):
        return None


def take_answer(conversation: Conversation, blocks: Iterable[Mapping[str, Any]], at: datetime, source: object) -> None:
    """The blocks of an assistant's message: what it said, and what it called."""
    for block in blocks:
        kind = block.get("type")
        if kind in SPOKEN and isinstance(block.get("text"), str):
            conversation.say(block["text"], at, source)
            for citation in items(block.get("citations")):
                _cite(conversation, mapping(citation))
        elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
            conversation.step(text(block.get("name")), at, block.get("input"), block.get("id"), source)
        elif isinstance(kind, str) and kind.endswith("tool_result"):
            take_result(conversation, block, at)
        elif not is_thinking(block) and block.get("text", "") is not None:
            data = mapping(block.get("source")).get("data")
            kept = described(block, data) if isinstance(data, str) else dict(block)
            conversation.event(f"block.{text(kind) or 'unknown'}", kept, at)


def _cite(conversation: Conversation, citation: Mapping[str, Any]) -> None:
    details = mapping(citation.get("details"))
    url = first_text(citation.get("url"), details.get("url"))
    conversation.cite(url, first_text(citation.get("title"), details.get("title")), text(citation.get("cited_text")))

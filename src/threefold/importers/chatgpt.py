"""ChatGPT exports: `conversations.json` (or `conversations-000.json` …), bare or in the zip, with uploaded files
beside it.

A conversation has a `mapping` of nodes with `parent` and `message`; `current_node` is the end of the branch that was
seen last (see `branches.py` for the others). Messages of the roles `system` and `tool`, instructions, and what the
assistant sends to a tool are no words between person and assistant: they become context events and steps. Thoughts
and their recaps are not kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from threefold.importers.base import (
    Clock,
    Record,
    Skipped,
    Source,
    Tally,
    digest,
    file_name,
    first_text,
    fold_records,
    identifier,
    items,
    mapping,
    mime_of,
    moment,
    text,
)
from threefold.importers.branches import Node, Tree
from threefold.importers.codex_steps import unpacked
from threefold.importers.folding import Conversation
from threefold.model.turn import Turn

KIND = "chatgpt"
_THINKING = ("thoughts", "reasoning_recap")
_INSTRUCTIONS = ("user_editable_context", "model_editable_context")
_MARKS = re.compile("\ue200[^\ue200\ue201]*\ue201")  # citations, in characters of private use


def sniff(record: Mapping[str, Any]) -> bool:
    """Whether this is a conversation of ChatGPT."""
    return isinstance(record.get("mapping"), dict)


def read(source: Source) -> Iterator[Turn | Skipped]:
    """The turns of one file of conversations."""
    clock, tally = Clock(source.fallback), Tally()

    def take(record: Record) -> Iterable[Turn | Skipped]:
        if not isinstance(record.value.get("mapping"), dict):
            return [Skipped(record.where, "no conversation: it has no mapping of messages")]
        return _Chat(source, record, clock).turns()

    return fold_records(source, take, lambda: tally.report(source, clock))


class _Chat:
    def __init__(self, source: Source, record: Record, clock: Clock) -> None:
        self._source, self._where, self._clock = source, record.where, clock
        chat = self._chat = record.value
        self._id = identifier(chat.get("id")) or identifier(chat.get("conversation_id")) or digest(chat)
        self._skipped: list[Skipped] = []
        self._replies: set[str | None] = set()  # the messages that a tool replied to

    def turns(self) -> Iterator[Turn | Skipped]:
        """The turns of all branches, and what was skipped on the way."""
        self._clock.read(self._chat.get("create_time"))
        nodes = self._nodes()
        self._replies = {n.parent for n in nodes if mapping(n.message.get("author")).get("role") == "tool"}
        main = self._conversation(self._id, {})
        found = False
        for turn in Tree(nodes, self._chat.get("current_node")).unfold(main, self._conversation, self._feed):
            found = True
            yield from self._told()
            yield turn
        yield from self._told()
        if not found:
            yield Skipped(self._where, "a conversation without messages")

    def _told(self) -> Iterator[Skipped]:
        skipped, self._skipped = self._skipped, []
        yield from skipped

    def _conversation(self, name: str, about: Mapping[str, Any]) -> Conversation:
        origin = {"importer": KIND, "file": self._source.parts[-1], **about}
        return Conversation(name, origin, first_text(self._chat.get("title")).strip() or None)

    def _nodes(self) -> list[Node]:
        given = self._chat["mapping"]
        listed = {
            child: name
            for name, node in given.items()
            for child in items(mapping(node).get("children"))
            if isinstance(child, str)
        }
        found = []
        for name, node in given.items():
            message = mapping(node).get("message")
            if not isinstance(node, dict) or not (message is None or isinstance(message, dict)):
                self._skipped.append(Skipped(f"{self._where}, message {name[:80]!r}", "a message that is no object"))
            parent = mapping(node).get("parent")
            parent = parent if isinstance(parent, str) and parent in given else listed.get(name)
            said = mapping(message)
            prompt = mapping(said.get("author")).get("role") == "user" and not _hidden(said)
            found.append(Node(name, parent, prompt, moment(said.get("create_time")), said))
        return found

    def _feed(self, talk: Conversation, node: Node) -> list[Turn]:
        message = node.message
        role, content = mapping(message.get("author")).get("role"), mapping(message.get("content"))
        if not message or content.get("content_type") in _THINKING:
            return []
        at = self._clock.read(message.get("create_time"), message.get("update_time"))
        words, source = _words(content), message.get("id") or node.id
        if node.prompt:
            return self._prompt(talk, message, words, at, source)
        if role == "assistant" and not _hidden(message):
            self._assistant(talk, node, words, at, source)
        elif role == "tool":
            self._tool(talk, message, words, at)
        elif words.strip():
            kind = text(content.get("content_type"))
            talk.event("instructions" if kind in _INSTRUCTIONS else f"message.{text(role) or 'unknown'}", words, at)
        return []

    def _prompt(
        self, talk: Conversation, message: Mapping[str, Any], words: str, at: datetime, source: object
    ) -> list[Turn]:
        if (
            words.strip()
            or mapping(message.get("metadata")).get("attachments")
            or _pointers(mapping(message.get("content")))
        ):
            ended = talk.prompt(words, at, source)
        else:  # something that this importer cannot read as words; an answer to it is still none to the prompt before
            ended = talk.begin(at, source)
            talk.event("message.user", message.get("content"), at)
        metadata = mapping(message.get("metadata"))
        taken: set[str] = set()
        for given in map(mapping, items(metadata.get("attachments"))):
            taken.add(self._attach(talk, at, given.get("id"), given.get("name"), given.get("mime_type")))
        for pointer in _pointers(mapping(message.get("content"))):
            if pointer not in taken:
                self._attach(talk, at, pointer, None, None)
        return ended

    def _attach(self, talk: Conversation, at: datetime, name: object, shown: object, mime: object) -> str:
        """The file of this id as an attachment, or an event where the export does not hold it."""
        wanted = text(name)
        found = self._source.beside(wanted) if wanted else None
        if isinstance(found, Skipped):
            self._skipped.append(found)
        if found is None or isinstance(found, Skipped):
            talk.event("missing_file", {"name": text(shown) or wanted, "reference": wanted}, at)
            return wanted
        title = file_name(shown, found.name)
        kind = mime_of(title, mime)
        readable = _readable(found.data) if (kind or "").startswith("text/") else None
        talk.attach(title, found.data, at, kind, readable)
        return wanted

    def _assistant(self, talk: Conversation, node: Node, words: str, at: datetime, source: object) -> None:
        message, content = node.message, mapping(node.message.get("content"))
        metadata, recipient = mapping(message.get("metadata")), text(message.get("recipient"))
        talk.use({}, None, metadata.get("model_slug"))
        called = (
            content.get("content_type") == "code"
            or node.id in self._replies
            or isinstance(unpacked(words), dict | list)
        )
        if recipient not in ("", "all") and called:
            talk.step(recipient, at, unpacked(words), recipient, source)
            return
        if content.get("content_type") == "system_error":
            talk.fail(words, at, source)
            return
        if words.strip():
            talk.say(_MARKS.sub("", words), at, source)
        for pointer in _pointers(content):
            self._publish(talk, at, pointer)
        for url, title, quoted in _citations(metadata):
            talk.cite(url, title, quoted)
        talk.use({}, None, metadata.get("model_slug"))

    def _publish(self, talk: Conversation, at: datetime, pointer: str) -> None:
        found = self._source.beside(pointer)
        if isinstance(found, Skipped):
            self._skipped.append(found)
        if found is None or isinstance(found, Skipped):
            talk.event("missing_file", {"name": pointer, "reference": pointer}, at)
        else:
            talk.publish(found.name, found.data, at, mime_of(found.name))

    def _tool(self, talk: Conversation, message: Mapping[str, Any], words: str, at: datetime) -> None:
        name, content = text(mapping(message.get("author")).get("name")), mapping(message.get("content"))
        failed = content.get("content_type") == "system_error"
        call = name if talk.called(name) else None
        if call is None and not talk.waits():
            talk.step(name, at)
        talk.result(at, words, call, "error" if failed else "completed", name)
        for pointer in _pointers(content):
            self._publish(talk, at, pointer)
        for url, title, quoted in _citations(mapping(message.get("metadata"))):
            talk.cite(url, title, quoted)


def _hidden(message: Mapping[str, Any]) -> bool:
    """Whether a message was never shown: instructions and the like."""
    metadata, kind = mapping(message.get("metadata")), mapping(message.get("content")).get("content_type")
    marks = ("is_visually_hidden_from_conversation", "is_user_system_message")
    return kind in _INSTRUCTIONS or any(metadata.get(mark) is True for mark in marks)


def _words(content: Mapping[str, Any]) -> str:
    """All text of a message's content; pictures and sounds are no text."""
    parts = [part if isinstance(part, str) else text(mapping(part).get("text")) for part in items(content.get("parts"))]
    said = "\n\n".join(part for part in parts if part.strip())
    if content.get("content_type") in _INSTRUCTIONS:
        keys = ("user_profile", "user_instructions", "model_set_context", "repository")
        said = "\n\n".join(words for key in keys if (words := text(content.get(key))))
    return said or first_text(content.get("text"), content.get("result"), content.get("content"))


def _pointers(content: Mapping[str, Any]) -> list[str]:
    """The ids of the pictures and sounds in a message."""
    found = [text(mapping(part).get("asset_pointer")) for part in items(content.get("parts"))]
    audio = [
        text(mapping(mapping(part).get("audio_asset_pointer")).get("asset_pointer"))
        for part in items(content.get("parts"))
    ]
    return [pointer.rpartition("//")[2] for pointer in found + audio if pointer]


def _readable(data: bytes) -> str | None:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _citations(metadata: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(address, title, text) of what a message cites, in the shapes of several years."""
    old = [mapping(mapping(c).get("metadata")) for c in items(metadata.get("citations"))]
    lists = mapping(metadata.get("_cite_metadata")).get("metadata_list")
    references = [mapping(r) for r in items(metadata.get("content_references"))]
    inner = [mapping(i) for r in references for key in ("items", "sources") for i in items(r.get(key))]
    for cited in (*old, *map(mapping, items(lists)), *references, *inner):
        url = text(cited.get("url"))
        if url.startswith(("http://", "https://")):
            yield url, text(cited.get("title")), first_text(cited.get("snippet"), cited.get("text"))

"""claude.ai exports: `conversations.json` (a list), bare or in the zip file, and single conversations in the same
shape.

A conversation has `chat_messages` with `sender`, content blocks, `attachments` (with the text that was taken from
them) and `files`. Where messages name their parents they form a tree, whose active branch ends at
`current_leaf_message_uuid`, else at the last message (see `branches.py`); where they do not, they follow each other.
Artifacts, as tool calls or in the older `<antArtifact>` tags, are published files; their words stay in the answer
too, where they were said in it. Thinking is not kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from threefold.importers.artifacts import Artifacts
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
from threefold.importers.blocks import SPOKEN, blocks_of, joined_text, take_answer
from threefold.importers.branches import Node, Tree
from threefold.importers.folding import Conversation
from threefold.model.turn import Turn

KIND = "claude"
_THOUGHT, _THOUGHT_END = re.compile(r"<antThinking>.*?</antThinking>\s*", re.DOTALL), "</antThinking>"
_FILLER = re.compile(r"```\s*This block is not supported on your current device yet\.\s*```\s*")


def sniff(record: Mapping[str, Any]) -> bool:
    """Whether this is a conversation of claude.ai."""
    return isinstance(record.get("chat_messages"), list)


def read(source: Source) -> Iterator[Turn | Skipped]:
    """The turns of one file of conversations."""
    clock, tally = Clock(source.fallback), Tally()

    def take(record: Record) -> Iterable[Turn | Skipped]:
        if not isinstance(record.value.get("chat_messages"), list):
            return [Skipped(record.where, "no conversation: it has no list of messages")]
        return _Chat(source, record, clock).turns()

    return fold_records(source, take, lambda: tally.report(source, clock))


class _Chat:
    def __init__(self, source: Source, record: Record, clock: Clock) -> None:
        self._source, self._where, self._clock = source, record.where, clock
        chat = self._chat = record.value
        self._id = identifier(chat.get("uuid")) or identifier(chat.get("id")) or digest(chat)
        self._skipped: list[Skipped] = []
        self._artifacts = Artifacts()

    def turns(self) -> Iterator[Turn | Skipped]:
        """The turns of all branches, and what was skipped on the way."""
        self._clock.read(self._chat.get("created_at"))
        nodes = self._nodes()
        yield from self._told()
        found = False
        linked = any(node.message.get("parent_message_uuid") for node in nodes)
        leaf = self._chat.get("current_leaf_message_uuid") if linked else nodes[-1].id if nodes else None
        for turn in Tree(nodes, leaf).unfold(self._conversation(self._id, {}), self._conversation, self._feed):
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
        self._artifacts = Artifacts()
        return Conversation(name, origin, first_text(self._chat.get("name")).strip() or None)

    def _nodes(self) -> list[Node]:
        """The messages. Where a parent is lost, the message before takes its place: one lost message splits nothing."""
        found: dict[str, Node] = {}
        previous: str | None = None
        names = {mapping(m).get("uuid") for m in self._chat["chat_messages"] if isinstance(mapping(m).get("uuid"), str)}
        for number, message in enumerate(self._chat["chat_messages"], 1):
            if not isinstance(message, dict) or message.get("sender") not in ("human", "assistant"):
                why = (
                    "a message that is no object" if not isinstance(message, dict) else "a message of an unknown sender"
                )
                self._skipped.append(Skipped(f"{self._where}, message {number}", why))
                continue
            name = identifier(message.get("uuid")) or digest(message, number)
            name = name if name not in found else f"{name}-{number}"
            parent = message.get("parent_message_uuid")
            root = isinstance(parent, str) and parent.startswith("00000000-")
            above = parent if isinstance(parent, str) and parent in names else None if root else previous
            found[name] = Node(name, above, message["sender"] == "human", moment(message.get("created_at")), message)
            previous = name
        return list(found.values())

    def _feed(self, talk: Conversation, node: Node) -> list[Turn]:
        message = node.message
        at = self._clock.read(message.get("created_at"), message.get("updated_at"))
        blocks = blocks_of(message.get("content"))
        plain = "" if joined_text(blocks) else _FILLER.sub("", text(message.get("text")))
        if node.prompt:
            ended = talk.prompt(first_text(joined_text(blocks), plain), at, node.id)
            for block in (b for b in blocks if b.get("type") not in SPOKEN):
                talk.event(f"block.{text(block.get('type')) or 'unknown'}", dict(block), at)
            self._files(talk, message, at)
            return ended
        shown = [{"type": "text", "text": plain}] if plain.strip() else []
        for block in [*blocks, *shown]:
            self._block(talk, block, at, node.id)
        self._files(talk, message, at)
        talk.use({}, None, first_text(message.get("model"), self._chat.get("model")))
        return []

    def _block(self, talk: Conversation, block: Mapping[str, Any], at: datetime, source: str) -> None:
        if block.get("type") in SPOKEN and isinstance(block.get("text"), str):
            words, files = self._artifacts.in_text(_without_thoughts(block["text"]))
            block = {**block, "text": words}
        else:
            files = self._artifacts.in_call(block)
        take_answer(talk, [block], at, source)
        for path, data, mime in files:
            talk.publish(path, data, at, mime)

    def _files(self, talk: Conversation, message: Mapping[str, Any], at: datetime) -> None:
        """What was given (or made) with a message: its text where that is known, its bytes where they are there."""
        human = message.get("sender") == "human"
        for given in map(mapping, items(message.get("attachments"))):
            name = file_name(given.get("file_name"), "pasted.txt")
            words = given.get("extracted_content")
            if isinstance(words, str) and words:
                mime = mime_of(name, given.get("file_type")) or "text/plain"
                if human:
                    talk.attach(name, words.encode(), at, mime, words)
                else:
                    talk.publish(name, words.encode(), at, mime)
            else:
                self._lookup(talk, given, name, human, at)
        seen: set[str] = set()
        for given in map(mapping, [*items(message.get("files")), *items(message.get("files_v2"))]):
            name = file_name(given.get("file_name"), "file")
            key = first_text(given.get("file_uuid"), name)
            if key not in seen:
                seen.add(key)
                self._lookup(talk, given, name, human, at)

    def _lookup(self, talk: Conversation, given: Mapping[str, Any], name: str, human: bool, at: datetime) -> None:
        found = self._source.beside(text(given.get("file_uuid"))) or self._source.beside(text(given.get("file_name")))
        if isinstance(found, Skipped):
            self._skipped.append(found)
        if found is None or isinstance(found, Skipped):
            about = {"name": name, "reference": given.get("file_uuid"), "kind": given.get("file_kind")}
            talk.event("missing_file", {k: v for k, v in about.items() if isinstance(v, str)}, at)
        elif human:
            talk.attach(name, found.data, at, mime_of(found.name))
        else:
            talk.publish(found.name, found.data, at, mime_of(found.name))


def _without_thoughts(words: str) -> str:
    end = words.rfind(_THOUGHT_END) + len(_THOUGHT_END)
    return words if end < len(_THOUGHT_END) else _THOUGHT.sub("", words[:end]) + words[end:].lstrip()

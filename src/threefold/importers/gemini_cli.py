"""Gemini CLI sessions: `chats/session-….json` (one object with `messages`), since 0.40 `.jsonl` (a head, then
messages).

Messages are of the type `user`, `gemini` (older: `model`), `info`, `warning` or `error`; tool calls are part of a
message, with their results. In a JSONL file a message is written again when it grows: the last edition counts, so a
turn is folded when the next prompt begins. `$set` lines are bookkeeping. Thoughts are not kept. "Request cancelled."
cancels the turn.
"""

from __future__ import annotations

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
    first_text,
    fold_records,
    identifier,
    items,
    mapping,
    mime_of,
    text,
    tokens_of,
)
from threefold.importers.blocks import decoded, joined_text
from threefold.importers.folding import Conversation
from threefold.importers.wrappers import unwrap
from threefold.model.kinds import StepStatus
from threefold.model.turn import Turn

KIND = "gemini-cli"
_ASSISTANT = ("gemini", "model")
_NOTICES = ("info", "warning", "error", "system")
_USAGE = {"input": "input", "output": "output", "cached": "cached", "thoughts": "reasoning", "tool": "tool"}
_STATUS: dict[str, StepStatus] = {
    "success": "completed",
    "error": "error",
    "cancelled": "skipped",
    "executing": "running",
}


def sniff(record: Mapping[str, Any]) -> bool:
    """Whether this is a Gemini CLI session, its head, or one of its messages."""
    if "projectHash" in record and "sessionId" in record:
        return True
    return record.get("type") == "gemini" and ("content" in record or "toolCalls" in record)


def read(source: Source) -> Iterator[Turn | Skipped]:
    """The turns of one session file."""
    session = _Session(source)
    return fold_records(source, session.take, session.end)


class _Session:
    def __init__(self, source: Source) -> None:
        self._source, self._clock, self._tally = source, Clock(source.fallback), Tally()
        self._conversation: Conversation | None = None
        self._known: dict[str, Conversation] = {}
        self._turn: dict[str, Mapping[str, Any]] = {}  # the messages of the turn, by id, in their last editions
        self._past: set[str] = set()
        self._answered = False

    def take(self, record: Record) -> Iterable[Turn | Skipped]:
        """Fold one record: a whole session, a head, a change or a message."""
        value = record.value
        if "sessionId" in value:
            turns = self._head(value)
            return [*turns, *self._messages(record.where, value.get("messages", []))]
        if isinstance(value.get("$set"), dict):
            self._tally.add("$set")
            return self._messages(record.where, value["$set"].get("messages", []))
        if "$rewindTo" in value:
            self._turn[f"rewind-{record.index}"] = {"type": "rewind", "content": text(value["$rewindTo"])}
            return []
        return self._message(record.where, value)

    def end(self) -> Iterator[Turn | Skipped]:
        """The turn that was still open, and what the file held besides."""
        yield from self._ended()
        if self._conversation is not None and self._conversation.waiting:
            yield Skipped(self._source.where, f"{self._conversation.waiting} notices that belong to no turn")
        yield from self._tally.report(self._source, self._clock)

    def _head(self, value: Mapping[str, Any]) -> list[Turn]:
        ended = self._ended()
        own = identifier(value.get("sessionId")) or self._source.parts[-1].partition(".")[0]
        folder = self._source.parts[-2] if len(self._source.parts) > 1 else ""
        parent = folder if value.get("kind") == "subagent" and folder not in ("", "chats", own) else ""
        origin = {"importer": KIND, "file": self._source.parts[-1], "project_hash": text(value.get("projectHash"))}
        origin |= {"parent": parent, "agent": own if parent else ""}
        self._clock.read(value.get("startTime"))
        title = first_text(value.get("summary"), value.get("title")) or None
        name = f"{parent}/{own}" if parent else own
        about = {k: v for k, v in origin.items() if v}
        self._conversation = self._known.setdefault(
            name, Conversation(name, about)
        )  # a resumed session repeats its head
        self._conversation.title = title or self._conversation.title
        return ended

    def _messages(self, where: str, messages: object) -> list[Turn | Skipped]:
        if not isinstance(messages, list):
            return [Skipped(where, "its messages are no list")]
        found: list[Turn | Skipped] = []
        for number, message in enumerate(messages, 1):
            at = f"{where}, message {number}"
            found += (
                self._message(at, message)
                if isinstance(message, dict)
                else [Skipped(at, "a message that is no object")]
            )
        return found

    def _message(self, where: str, message: Mapping[str, Any]) -> list[Turn | Skipped]:
        kind = message.get("type")
        if not isinstance(kind, str) or not kind:
            return [Skipped(where, "no message of a session: it has no type")]
        name = identifier(message.get("id")) or digest(message, len(self._turn))
        if name in self._past:
            return [Skipped(where, "a later edition of a message whose turn was complete")]
        known = name in self._turn
        begins = kind == "user" and self._answered and not known
        turns = self._ended() if begins else []
        self._turn[name] = message
        self._answered = (self._answered and not begins) or kind in _ASSISTANT or kind == "error"
        return [*turns]

    def _ended(self) -> list[Turn]:
        """Fold the messages that make up a turn."""
        if self._conversation is None:
            name = self._source.parts[-1].partition(".")[0]
            origin = {"importer": KIND, "file": self._source.parts[-1]}
            self._conversation = self._known.setdefault(name, Conversation(name, origin))
        ended: list[Turn] = []
        for message in self._turn.values():
            at = self._clock.read(message.get("timestamp"))
            ended += self._fold(self._conversation, message, at)
        self._past.update(self._turn)
        self._turn, self._answered = {}, False
        return ended + self._conversation.close()

    def _fold(self, talk: Conversation, message: Mapping[str, Any], at: datetime) -> list[Turn]:
        kind, source = text(message.get("type")), message.get("id")
        words = first_text(*(_words(message.get(key)) for key in ("content", "parts", "displayContent")))
        if kind == "user":
            return self._user(talk, message, words, at)
        if kind in _ASSISTANT:
            talk.say(words, at, source)
            for call in items(message.get("toolCalls")):
                self._call(talk, mapping(call), at)
            talk.use(tokens_of(message.get("tokens"), _USAGE), source, message.get("model"))
            _pieces(talk, message, at)
        elif kind == "info" and words.strip().startswith("Request cancelled"):
            talk.cancel(at)
            talk.event(kind, words, at)
        elif kind == "error":
            talk.fail(words, at, source)
        else:
            talk.event(kind, words if kind in _NOTICES else dict(message), at)
        return []

    def _user(self, talk: Conversation, message: Mapping[str, Any], words: str, at: datetime) -> list[Turn]:
        heard = unwrap(words)
        results = [p for p in _parts(message) if "functionResponse" in p]
        asked = heard.said.strip() or (not heard.events and not results)
        ended = talk.prompt(heard.said, at, message.get("id")) if asked else []
        for name, inside in heard.events:
            talk.event(name, inside, at)
        for part in results:
            given = mapping(part["functionResponse"])
            talk.result(at, given.get("response"), given.get("id"), name=text(given.get("name")))
        _pieces(talk, message, at)
        return ended

    def _call(self, talk: Conversation, call: Mapping[str, Any], at: datetime) -> None:
        at = self._clock.read(call.get("timestamp")) if call.get("timestamp") else at
        name, source = text(call.get("name")), call.get("id")
        talk.step(name, at, call.get("args"), source)
        replies = [mapping(mapping(part).get("functionResponse")).get("response") for part in items(call.get("result"))]
        result: Any = next((r for r in replies if r is not None), call.get("result") or call.get("resultDisplay"))
        if isinstance(result, dict) and set(result) == {"output"}:
            result = result["output"]
        status = _STATUS.get(text(call.get("status")), "completed" if result is not None else "started")
        if result is not None or status != "started":
            talk.result(at, result, source, status)


def _words(content: object) -> str:
    return joined_text([part for part in items(content) if not mapping(part).get("thought")] or content)


def _parts(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [mapping(part) for key in ("content", "parts") for part in items(message.get(key))]


def _pieces(talk: Conversation, message: Mapping[str, Any], at: datetime) -> None:
    """What a message holds besides text: given files as attachments, the rest as events."""
    for ordinal, part in enumerate(_parts(message), 1):
        inline, linked = mapping(part.get("inlineData")), mapping(part.get("fileData"))
        data = decoded(inline.get("data"))
        if data is not None and message.get("type") == "user":
            talk.attach(f"file-{ordinal}", data, at, mime_of("", inline.get("mimeType")))
        elif inline or linked:
            about = {"mime": inline.get("mimeType") or linked.get("mimeType"), "reference": linked.get("fileUri")}
            talk.event("missing_file", {k: v for k, v in about.items() if isinstance(v, str)}, at)
        elif "text" not in part and "functionResponse" not in part and not part.get("thought"):
            talk.event("part", dict(part), at)

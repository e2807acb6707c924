"""Plain JSONL: the format to bring any other history in. One JSON object for each line (or in a JSON list), of two
shapes.

A message for each line:

    {"conversation": "c1", "role": "user", "content": "Where is the key?", "at": "2026-03-01T09:00:00Z", "name": "Ada"}
    {"conversation": "c1", "role": "assistant", "content": "Under the mat.", "at": "2026-03-01T09:00:05Z"}

- `conversation` (or `conversation_id`, `session_id`, `thread_id`): optional; else the whole file is one conversation.
- `role`: `user` or `human`; `assistant`, `ai`, `bot`, `model` or `gpt`; `tool` or `function`; `system` or
  `developer`.
- `content` (or `text`, `message`): text, or a list of content parts as OpenAI and Anthropic have them, with pictures
  as attachments and tool calls as steps. `tool_calls` and `tool_call_id` are read as OpenAI writes them.
- `at` (or `timestamp`, `created_at`, `time`): ISO 8601 or seconds or milliseconds since 1970; without a zone it is
  UTC; a message without one gets that of the message before.
- `id`: optional. The first message of a turn gives the turn its id.
- `turn` (or `turn_id`): optional. Where it is given, messages with the same value are one turn, which has this id.
- `name` (or `author`, `speaker`): optional, who spoke.

A conversation for each line: `{"id": …, "title": …, "messages": [message, …]}` with messages as above, or with
ShareGPT's `"conversations": [{"from": "human", "value": "…"}, …]`.

Messages of a user that follow each other are one turn with followups, and so is all that follows until the next one.
System messages are context events. The lines of several conversations may be interleaved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
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
    text,
    tokens_of,
)
from threefold.importers.blocks import (
    PICTURES,
    SPOKEN,
    blocks_of,
    joined_text,
    picture_address,
    plain_result,
    take_answer,
    take_file,
    take_picture,
    take_result,
)
from threefold.importers.codex_steps import unpacked
from threefold.importers.folding import Conversation
from threefold.importers.interleaved import Open
from threefold.model.turn import Turn

KIND = "jsonl"
_ROLES = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "bot", "model", "gpt", "chatgpt"), "assistant"),
    **dict.fromkeys(("tool", "function", "observation"), "tool"),
    **dict.fromkeys(("system", "developer"), "system"),
    "function_call": "call",
}
_CONVERSATION = ("conversation", "conversation_id", "session_id", "thread_id")
_WORDS = ("content", "text", "message", "value")
_TIMES = ("at", "timestamp", "created_at", "time")
_USAGE = {"prompt_tokens": "input", "completion_tokens": "output", "input_tokens": "input", "output_tokens": "output"}


def sniff(record: Mapping[str, Any]) -> bool:
    """Whether this is a message or a conversation of plain JSONL."""
    inside = _listed(record)
    if inside is not None:
        return any(_role(mapping(message)) for message in inside)
    return bool(_role(record)) and any(key in record for key in (*_WORDS, "tool_calls"))


def read(source: Source) -> Iterator[Turn | Skipped]:
    """The turns of one file."""
    history = _History(source)
    return fold_records(source, history.take, history.end)


def _listed(record: Mapping[str, Any]) -> list[Any] | None:
    """The messages of a line that is a whole conversation."""
    return next((record[key] for key in ("messages", "conversations") if isinstance(record.get(key), list)), None)


def _role(message: Mapping[str, Any]) -> str:
    nested = mapping(message.get("message")).get("role")
    written = first_text(message.get("role"), message.get("from"), nested, mapping(message.get("author")).get("role"))
    return _ROLES.get(written.strip().lower(), written.strip())


class _History:
    def __init__(self, source: Source) -> None:
        self._source, self._clock, self._tally = source, Clock(source.fallback), Tally()
        self._open = Open()
        self._file = ""
        self._current: dict[str, str] = {}  # conversation → the turn that its messages name

    def take(self, record: Record) -> Iterable[Turn | Skipped]:
        """Fold one line."""
        value = record.value
        # Names the conversation of a file that names none: the same wherever the file lies and however it grows.
        self._file = self._file or f"{self._source.parts[-1].partition('.')[0]}-{digest(value)[:8]}"
        inside = _listed(value)
        if inside is None:
            name = next((found for key in _CONVERSATION if (found := identifier(value.get(key)))), self._file)
            talk, ended = self._open.get(name, lambda n: self._conversation(name, value, n))
            return [*ended, *self._message(talk, value, record.where)]
        names = (identifier(value.get(key)) for key in ("id", *_CONVERSATION))
        told = next((found for found in names if found), None)
        if told is None:
            return self._whole(self._conversation(f"{self._file}/{record.index + 1}", value, 0), inside, record)
        talk, ended = self._open.get(told, lambda n: self._conversation(told, value, n))
        return chain(ended, self._whole(talk, inside, record))

    def end(self) -> Iterator[Turn | Skipped]:
        """The turns that were still open, and what the file held besides."""
        yield from self._open.close()
        for talk in self._open:
            if talk.waiting:
                yield Skipped(self._source.where, f"{talk.waiting} messages of {talk.id!r} belong to no turn")
        yield from self._tally.report(self._source, self._clock)

    def _conversation(self, name: str, value: Mapping[str, Any], ordinal: int) -> Conversation:
        title = first_text(value.get("title")) or None
        return Conversation(name, {"importer": KIND, "file": self._source.parts[-1]}, title, ordinal)

    def _whole(self, talk: Conversation, inside: list[Any], record: Record) -> Iterator[Turn | Skipped]:
        self._clock.read(*(record.value.get(key) for key in _TIMES))
        yield from talk.close()
        self._current.pop(talk.id, None)
        for number, message in enumerate(inside, 1):
            where = f"{record.where}, message {number}"
            if isinstance(message, dict):
                yield from self._message(talk, message, where)
            else:
                yield Skipped(where, "a message that is no object")
        yield from talk.close()
        if talk.waiting:
            yield Skipped(record.where, f"a conversation of {talk.waiting} system messages only")

    def _message(self, talk: Conversation, value: Mapping[str, Any], where: str) -> list[Turn | Skipped]:
        role = _role(value)
        if not role:
            return [Skipped(where, "no message: it has no role")]
        message = mapping(value.get("message")) if "role" in mapping(value.get("message")) else value
        content = next((message[key] for key in _WORDS if message.get(key) is not None), None)
        if content is not None and not isinstance(content, str | list):
            return [Skipped(where, f"a message whose content is a JSON {type(content).__name__}")]
        if content is None and "tool_calls" not in message and "function_call" not in message:
            return [Skipped(where, "a message without content")]
        at = self._clock.read(*(value.get(key) for key in _TIMES))
        turn = identifier(value.get("turn")) or identifier(value.get("turn_id"))
        ended: list[Turn] = []
        if turn is not None and self._current.get(talk.id) != turn:
            ended = talk.close()
            self._current[talk.id] = turn
        given = (value.get(key, message.get(key)) for key in ("name", "author", "speaker"))
        author = identifier(next((name for name in given if isinstance(name, str)), None))
        source = turn or value.get("id") or message.get("id")
        said = _Message(role, message, content, blocks_of(content), at, source, author, turn is not None)
        return [*ended, *_fold(talk, said)]


@dataclass(frozen=True, slots=True)
class _Message:
    """One message, whatever it was written like."""

    role: str
    raw: Mapping[str, Any]
    content: Any
    blocks: list[Mapping[str, Any]]
    at: datetime
    source: object
    author: str | None
    in_turn: bool  # whether it says itself to which turn it belongs


def _fold(talk: Conversation, said: _Message) -> list[Turn]:
    if said.role == "user":
        return _user(talk, said)
    if said.role in ("assistant", "tool", "call"):
        talk.ensure(said.at, said.source)
    if said.role == "assistant":
        take_answer(talk, said.blocks, said.at, said.source)
        _calls(talk, said.raw, said.at)
        talk.sign(said.author)
        talk.use(tokens_of(said.raw.get("usage"), _USAGE), None, said.raw.get("model"))
    elif said.role == "tool":
        if any(b.get("type") == "tool_result" for b in said.blocks):
            take_answer(talk, said.blocks, said.at, said.source)
        else:
            result = unpacked(plain_result(said.content))
            talk.result(said.at, result, said.raw.get("tool_call_id"), name=said.author or "")
    elif said.role == "call":
        called = mapping(unpacked(said.content))
        talk.step(text(called.get("name")), said.at, unpacked(called.get("arguments", said.content)))
    else:
        talk.event(f"message.{said.role}", joined_text(said.content) or said.content, said.at)
    return []


def _user(talk: Conversation, said: _Message) -> list[Turn]:
    results = [b for b in said.blocks if b.get("type") == "tool_result"]
    others = [b for b in said.blocks if b.get("type") != "tool_result"]
    for block in results:
        take_result(talk, block, said.at)
    if results and not others:
        return []
    ended = talk.prompt(joined_text(others), said.at, said.source, said.author, queued=said.in_turn)
    for ordinal, block in enumerate(others, 1):
        if block.get("type") in PICTURES:
            take_picture(talk, picture_address(block), said.at, ordinal)
        elif not take_file(talk, block, said.at, ordinal) and block.get("type") not in SPOKEN:
            talk.event(f"part.{text(block.get('type'))}", dict(block), said.at)
    return ended


def _calls(talk: Conversation, message: Mapping[str, Any], at: datetime) -> None:
    """Tool calls as OpenAI writes them."""
    calls = [mapping(c) for c in items(message.get("tool_calls"))]
    for call in [
        *calls,
        *([{"function": message["function_call"]}] if isinstance(message.get("function_call"), dict) else []),
    ]:
        about = mapping(call.get("function"))
        name = first_text(about.get("name"), call.get("name"))
        talk.step(name, at, unpacked(about.get("arguments", call.get("arguments"))), call.get("id"))

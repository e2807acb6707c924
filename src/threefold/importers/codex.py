"""Codex CLI sessions: `sessions/<year>/<month>/<day>/rollout-….jsonl`.

A line is `{"timestamp", "type", "payload"}`. Words are often recorded twice or three times, as what the model was
sent (`response_item`), what was shown (`event_msg`) and what was finished (`item_completed`); each is taken once. A
second `session_meta` in a file belongs to the history that a fork or a sub-agent copied, so the first one names the
conversation; that of a sub-agent is `<parent>/<own id>`. Environment and instructions that are sent in the user's
name are context events; reasoning is not kept. The sessions of 2025 that hold bare response items are read as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from threefold.importers.base import (
    Clock,
    Record,
    Skipped,
    Source,
    Tally,
    first_text,
    fold_records,
    identifier,
    items,
    mapping,
    text,
    tokens_of,
)
from threefold.importers.blocks import PICTURES, blocks_of, joined_text, picture_address, take_picture
from threefold.importers.codex_steps import CALLS, ENDS, OUTPUTS, WITHOUT_OUTPUT, call_of, end_of, output_of
from threefold.importers.folding import Conversation
from threefold.importers.interleaved import Echoes
from threefold.importers.wrappers import unwrap
from threefold.model.turn import Turn

KIND = "codex"
_LINES = {"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"}
_BARE = CALLS | OUTPUTS | {"message", "reasoning"}
_BOOKKEEPING = {
    "turn_context",
    "world_state",
    "inter_agent_communication_metadata",
    "reasoning",
    "agent_reasoning",
    "agent_reasoning_raw_content",
    "agent_reasoning_section_break",
    "Reasoning",
    "task_started",
    "turn_started",
    "turn.started",
    "thread_settings_applied",
    "context_compacted",
    "ghost_snapshot",
    "sub_agent_activity",
    "account/rateLimits/updated",
    "codex/event/raw_item",
    "exec_command_begin",
    "mcp_tool_call_begin",
    "patch_apply_begin",
    "web_search_begin",
}
_USAGE = {
    "input_tokens": "input",
    "prompt": "input",
    "output_tokens": "output",
    "completion": "output",
    "cached_input_tokens": "cached",
    "cache_write_input_tokens": "cache_written",
    "reasoning_output_tokens": "reasoning",
}
_ASK = "## My request for Codex:"  # of the editor extensions, which put the open files before it
_AGENTS_FILE = "# AGENTS.md instructions"


def sniff(record: Mapping[str, Any]) -> bool:
    """Whether this is a record of a Codex session."""
    kind = text(record.get("type"))
    if kind in _LINES:
        return isinstance(record.get("payload"), dict)
    if kind == "message":
        return any(mapping(part).get("type") in ("input_text", "output_text") for part in items(record.get("content")))
    return kind in _BARE and "call_id" in record


def read(source: Source) -> Iterator[Turn | Skipped]:
    """The turns of one session file."""
    session = _Session(source)
    return fold_records(source, session.take, session.end)


class _Session:
    def __init__(self, source: Source) -> None:
        self._source, self._clock, self._tally = source, Clock(source.fallback), Tally()
        self._conversation: Conversation | None = None
        self._asked, self._answered = Echoes(), Echoes()
        self._totals: dict[str, int] = {}
        self._turns = 0

    def take(self, record: Record) -> Iterable[Turn | Skipped]:
        """Fold one record."""
        value, kind = record.value, text(record.value.get("type"))
        wrapped = kind in _LINES or isinstance(value.get("payload"), dict)
        payload = value.get("payload") if wrapped else value
        if not kind and not wrapped and isinstance(value.get("id"), str) and "timestamp" in value:
            kind, payload = "session_meta", value  # the head of the oldest sessions has no type
        if not kind or not isinstance(payload, dict):
            return [Skipped(record.where, "no record of a session: it has no type or no payload")]
        at = self._clock.read(value.get("timestamp"), payload.get("timestamp"))
        if kind == "session_meta":
            self._meta(payload)
            return []
        inner = kind if kind == "compacted" or not wrapped else first_text(payload.get("type"), kind)
        channel = "response" if kind == "response_item" or not wrapped else "event"
        if inner == "item_completed":
            channel, payload = "item", mapping(payload.get("item"))
            inner = text(payload.get("type"))
        turns = list(self._fold(self._named(), inner, channel, payload, at))
        self._turns += len(turns)
        return turns

    def end(self) -> Iterator[Turn | Skipped]:
        """The turn that was still open, and what the file held besides."""
        last = self._named().close()
        yield from last
        if not last and not self._turns:
            yield Skipped(self._source.where, "the session holds no prompt and no answer")
        yield from self._tally.report(self._source, self._clock)

    def _fold(
        self, talk: Conversation, kind: str, channel: str, payload: Mapping[str, Any], at: datetime
    ) -> Iterable[Turn]:
        if kind in ("message", "user_message", "agent_message", "UserMessage", "AgentMessage"):
            return self._message(talk, kind, channel, payload, at)
        handle = self._handlers.get(kind)
        if handle is not None:
            handle(self, talk, payload, at)
        elif kind in CALLS:
            self._answering()
            name, arguments = call_of(kind, payload)
            call = first_text(payload.get("call_id"), payload.get("callId"), payload.get("id"))
            talk.step(name, at, arguments, call)
            if kind in WITHOUT_OUTPUT:
                talk.result(at, None, call or None)
        elif kind in OUTPUTS:
            result, status = output_of(payload)
            talk.result(at, result, first_text(payload.get("call_id")) or None, status, text(payload.get("name")))
        elif kind in ENDS:
            self._ended(talk, kind, payload, at)
        elif kind in _BOOKKEEPING:
            self._tally.add(kind)
        else:
            talk.event(kind, {k: v for k, v in payload.items() if k != "type"}, at)
        return []

    def _message(
        self, talk: Conversation, kind: str, channel: str, payload: Mapping[str, Any], at: datetime
    ) -> list[Turn]:
        role = text(payload.get("role")) or ("user" if kind in ("user_message", "UserMessage") else "assistant")
        words = first_text(payload.get("message"), joined_text(payload.get("content")))
        if kind == "agent_message" and channel == "response":  # from one agent to another
            talk.event(kind, {k: v for k, v in payload.items() if k in ("author", "recipient", "content")}, at)
        elif role == "user":
            return self._user(talk, words, channel, payload, at)
        elif role != "assistant":
            talk.event(f"message.{role}", words, at)
        elif words.strip():
            self._answering()
            if self._answered.fresh(channel, words):
                talk.say(words, at, payload.get("id"))
        return []

    def _user(
        self, talk: Conversation, words: str, channel: str, payload: Mapping[str, Any], at: datetime
    ) -> list[Turn]:
        around, ask, asked = words.partition(_ASK)
        heard = unwrap(asked if ask else words)
        if ask and around.strip():
            heard.events.append(("editor_context", around.strip()))
        if words.lstrip().startswith(_AGENTS_FILE):
            heard.events, heard.said = [("user_instructions", words)], ""
        said = heard.said.strip()
        ended: list[Turn] = []
        if said and self._asked.fresh(channel, said):
            ended = talk.prompt(said, at, payload.get("id"))
            if ended:
                self._answered = Echoes()
        for name, inside in heard.events:
            talk.event(name, inside, at)
        listed = [p for key in ("images", "local_images") for p in items(payload.get(key)) if isinstance(p, str)]
        sent = [picture_address(b) for b in blocks_of(payload.get("content")) if b.get("type") in PICTURES]
        for ordinal, address in enumerate(filter(None, [*listed, *sent]), 1):
            if self._asked.fresh(channel, address):
                ended = ended or ([] if said else talk.prompt("", at, payload.get("id")))
                take_picture(talk, address, at, ordinal)
        return ended

    def _answering(self) -> None:
        """From here on the same words from the user are said again, not echoed."""
        self._asked = Echoes()

    def _ended(self, talk: Conversation, kind: str, payload: Mapping[str, Any], at: datetime) -> None:
        """An event about a call that may be recorded as a response item already."""
        self._answering()
        call = first_text(payload.get("call_id"), payload.get("callId"), payload.get("id")) or None
        name, arguments, result, status = end_of(kind, payload)
        if talk.called(call):
            talk.result(at, result, call, status)
        elif not talk.answered(call):
            talk.step(name, at, arguments, call)
            if result is not None:
                talk.result(at, result, call, status)

    def _complete(self, talk: Conversation, payload: Mapping[str, Any], at: datetime) -> None:
        words, error = text(payload.get("last_agent_message")), payload.get("error")
        if words.strip() and self._answered.fresh("complete", words):
            talk.say(words, at)
        if error:
            talk.fail(first_text(mapping(error).get("message"), error) or "unknown error", at)
        else:
            talk.finish()
        talk.use(tokens_of(payload.get("usage"), _USAGE))

    def _failed(self, talk: Conversation, payload: Mapping[str, Any], at: datetime) -> None:
        talk.fail(first_text(payload.get("message"), mapping(payload.get("error")).get("message")), at)

    def _aborted(self, talk: Conversation, _: Mapping[str, Any], at: datetime) -> None:
        talk.cancel(at)

    def _compacted(self, talk: Conversation, payload: Mapping[str, Any], at: datetime) -> None:
        if first_text(payload.get("message")):  # the history that replaces the old one only repeats it
            talk.event("compaction", payload["message"], at)

    def _renamed(self, talk: Conversation, payload: Mapping[str, Any], _: datetime) -> None:
        talk.title = first_text(payload.get("thread_name")) or talk.title

    def _counted(self, talk: Conversation, payload: Mapping[str, Any], _: datetime) -> None:
        """Totals of the session are told again and again; what they grew by is the turn's."""
        info = mapping(payload.get("info"))
        totals = tokens_of(info.get("total_token_usage"), _USAGE)
        if totals:
            known, self._totals = self._totals, totals
            talk.use({key: count - known.get(key, 0) for key, count in totals.items() if count > known.get(key, 0)})
        else:
            talk.use(tokens_of(info, _USAGE))

    _handlers: Mapping[str, Callable[[_Session, Conversation, Mapping[str, Any], datetime], None]] = {
        "task_complete": _complete,
        "turn_complete": _complete,
        "turn.completed": _complete,
        "error": _failed,
        "stream_error": _failed,
        "turn_aborted": _aborted,
        "compacted": _compacted,
        "thread_name_updated": _renamed,
        "token_count": _counted,
    }

    def _meta(self, payload: Mapping[str, Any]) -> None:
        if self._conversation is not None:
            self._tally.add("session_meta of a copied history")
            return
        own = identifier(payload.get("id")) or self._source.parts[-1].partition(".")[0]
        spawn = mapping(mapping(mapping(payload.get("source")).get("subagent")).get("thread_spawn"))
        parent = first_text(payload.get("parent_thread_id"), spawn.get("parent_thread_id"))
        about = {
            "project": payload.get("cwd"),
            "version": payload.get("cli_version"),
            "forked_from": payload.get("forked_from_id"),
        }
        about |= {
            "parent": parent,
            "agent": own if parent else None,
            "branch": mapping(payload.get("git")).get("branch"),
        }
        known = {key: said for key, said in about.items() if isinstance(said, str) and said}
        origin = {"importer": KIND, "file": self._source.parts[-1]} | known
        self._conversation = Conversation(f"{parent}/{own}" if parent else own, origin)

    def _named(self) -> Conversation:
        if self._conversation is None:
            self._meta({})
        assert self._conversation is not None  # noqa: S101 - `_meta` sets it
        return self._conversation

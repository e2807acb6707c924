"""Claude Code sessions: one JSONL file for each session, under `projects/<project>/` of its configuration folder.

A record has a `type`, a `sessionId`, a `uuid`, a `timestamp` and for `user` and `assistant` a `message` with content
blocks. Much that is recorded as `user` is no person's words: tool results, reminders, hook outputs, caveats, the
summary after a compaction, notices of finished tasks. It becomes results of steps and context events. What a
sub-agent did is a conversation of its own, `<session>/<agent>`: files under `<session>/subagents/`, and records
marked `isSidechain` (without an agent's id the `uuid` of its first record names it). Thinking is not kept. Words
queued while the agent worked are followups of that turn.
"""

from __future__ import annotations

from collections import OrderedDict
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
    mapping,
    text,
    title_from,
    tokens_of,
)
from threefold.importers.blocks import (
    USAGE,
    blocks_of,
    is_thinking,
    joined_text,
    take_answer,
    take_result,
)
from threefold.importers.claude_code_words import events, person, queued
from threefold.importers.folding import Conversation
from threefold.importers.interleaved import Open
from threefold.model.turn import Turn

KIND = "claude-code"
_OWN_TYPES = {
    "file-history-snapshot",
    "queue-operation",
    "last-prompt",
    "permission-mode",
    "custom-title",
    "ai-title",
    "agent-name",
}
_BOOKKEEPING = _OWN_TYPES - {"custom-title", "ai-title", "queue-operation"} | {
    "progress",
    "mode",
    "pr-link",
    "cost-state",
    "api-request",
    "saved_hook_context",
    "system/turn_duration",
    "system/session_start",
    "attachment/deferred_tools_delta",
    "attachment/mcp_instructions_delta",
    "attachment/skill_listing",
    "attachment/command_permissions",
}
_TITLES = {"summary": "summary", "custom-title": "customTitle", "ai-title": "aiTitle"}
_REMEMBERED = 5000


def sniff(record: Mapping[str, Any]) -> bool:
    """Whether this is a record of a Claude Code session."""
    kind = text(record.get("type"))
    if kind in ("user", "assistant"):
        return isinstance(record.get("message"), dict) and ("sessionId" in record or "parentUuid" in record)
    if kind == "summary":
        return "leafUuid" in record
    return kind in _OWN_TYPES or (kind in ("system", "attachment", "tool_use", "tool_result") and "sessionId" in record)


def read(source: Source) -> Iterator[Turn | Skipped]:
    """The turns of one session file, and of the side chains in it."""
    session = _Session(source)
    return fold_records(source, session.take, session.end)


class _Session:
    def __init__(self, source: Source) -> None:
        self._source, self._clock, self._tally = source, Clock(source.fallback), Tally()
        self._open = Open()
        self._chains: OrderedDict[str, str] = OrderedDict()  # uuid → the side chain it belongs to
        self._seen: OrderedDict[str, str] = OrderedDict()  # uuid → digest of its record
        self._last_session = ""

    def take(self, record: Record) -> Iterable[Turn | Skipped]:
        """Fold one record."""
        value, kind = record.value, text(record.value.get("type"))
        if not kind:
            return [Skipped(record.where, "no record of a session: it has no type")]
        if kind in _TITLES:
            return self._title(record, kind)
        if self._repeated(value):
            return [Skipped(record.where, "repeats an earlier record with the same uuid")]
        at = self._clock.read(value.get("timestamp"))
        inner = {"system": value.get("subtype"), "attachment": mapping(value.get("attachment")).get("type")}.get(kind)
        full = f"{kind}/{inner}" if isinstance(inner, str) else kind
        if kind in _BOOKKEEPING or full in _BOOKKEEPING or kind.startswith("api-request"):
            self._tally.add(full)
            return []
        conversation, ended = self._conversation(value)
        return [*ended, *self._fold(conversation, record, full, at)]

    def end(self) -> Iterator[Turn | Skipped]:
        """The turns that were still open, and what the file held besides."""
        yield from self._open.close()
        for conversation in self._open:
            if conversation.waiting:
                why = f"{conversation.waiting} events of {conversation.id!r} belong to no turn yet"
                yield Skipped(self._source.where, why)
        yield from self._tally.report(self._source, self._clock)

    def _fold(self, conversation: Conversation, record: Record, kind: str, at: datetime) -> Iterable[Turn | Skipped]:
        value = record.value
        if kind in ("user", "assistant"):
            if not isinstance(value.get("message"), dict):
                return [Skipped(record.where, f"damaged {kind} record: its message is no object")]
            return self._user(conversation, record, at) if kind == "user" else self._assistant(conversation, value, at)
        if kind == "tool_use":
            conversation.step(text(value.get("name")), at, value.get("input"), value.get("id"), value.get("uuid"))
        elif kind == "tool_result":
            result = value.get("output", value.get("content"))
            conversation.result(
                at, result, value.get("tool_use_id"), "error" if value.get("is_error") is True else "completed"
            )
        elif kind == "attachment/queued_command":
            return queued(conversation, mapping(value["attachment"]), at, value.get("uuid"))
        elif kind == "queue-operation":
            if not first_text(value.get("content")):
                self._tally.add(kind)
            else:  # delivered or withdrawn later; kept so that no typed word depends on which
                conversation.event("queue-operation", dict(value), at)
        elif kind == "system/local_command":
            return person(conversation, blocks_of(value.get("content")), at, value)
        else:
            skipped = (
                "parentUuid",
                "sessionId",
                "uuid",
                "timestamp",
                "cwd",
                "userType",
                "gitBranch",
                "version",
                "entrypoint",
            )
            conversation.event(kind, {k: v for k, v in value.items() if k not in skipped}, at)
        return []

    def _user(self, conversation: Conversation, record: Record, at: datetime) -> Iterable[Turn | Skipped]:
        value, content = record.value, record.value["message"].get("content")
        blocks = blocks_of(content)
        results = [b for b in blocks if b.get("type") == "tool_result"]
        for block in results:
            take_result(conversation, block, at)
        if not results and "toolUseResult" in value:
            conversation.result(at, value["toolUseResult"])
            return events(conversation, "tool_result", blocks, at)
        others = [b for b in blocks if b not in results]
        if not blocks:
            return (
                []
                if isinstance(content, str | list)
                else [Skipped(record.where, "damaged user record: it has no content")]
            )
        if value.get("isCompactSummary") is True or value.get("isVisibleInTranscriptOnly") is True:
            return events(conversation, "compaction", others, at)
        origin = text(mapping(value.get("origin")).get("kind"))
        if origin not in ("", "human"):
            ended = conversation.begin(at, value.get("uuid"))
            events(conversation, origin, others, at)
            return ended
        if value.get("isMeta") is True:
            return events(conversation, "meta", others, at)
        return person(conversation, others, at, value)

    def _assistant(self, conversation: Conversation, value: Mapping[str, Any], at: datetime) -> Iterable[Turn]:
        message, blocks = value["message"], blocks_of(value["message"].get("content"))
        if value.get("isApiErrorMessage") is True:
            conversation.fail(joined_text(blocks), at, value.get("uuid"))
            return []
        if not conversation.open and all(is_thinking(b) for b in blocks):
            return []
        take_answer(conversation, blocks, at, value.get("uuid"))
        if value.get("apiErrorStatus") is not None:
            conversation.event("api_error", {"status": value["apiErrorStatus"]}, at)
        conversation.use(tokens_of(message.get("usage"), USAGE), message.get("id"), message.get("model"))
        return []

    def _title(self, record: Record, kind: str) -> Iterable[Skipped]:
        """A title belongs to the conversation in which its leaf is; one of another file is of no use here."""
        title, leaf = text(record.value.get(_TITLES[kind])).strip(), text(record.value.get("leafUuid"))
        if kind == "summary" and leaf not in self._seen:
            return [
                Skipped(record.where, f"the title of a conversation that is not above it in this file: {title[:200]!r}")
            ]
        name = record.value.get("sessionId") or self._chains.get(leaf)
        found = next((c for c in self._open if c.id == name), self._open.last())
        if found is not None and title:
            found.title = title_from(title)
        return [] if found is not None else [Skipped(record.where, f"a title without a conversation: {title[:200]!r}")]

    def _repeated(self, value: Mapping[str, Any]) -> bool:
        uuid = value.get("uuid")
        if not isinstance(uuid, str):
            return False
        name = digest(value)
        if self._seen.get(uuid) == name:
            return True
        _remember(self._seen, uuid, name)
        return False

    def _conversation(self, value: Mapping[str, Any]) -> tuple[Conversation, list[Turn]]:
        session, agent = self._session_of(value), first_text(value.get("agentId"))
        if not agent and value.get("isSidechain") is True:
            agent = self._chain(value)
        if not agent:
            return self._open.get(session, lambda n: Conversation(session, self._origin(value), ordinal=n))
        name = f"{session}/{agent}" if session else agent
        origin = self._origin(value) | {"agent": agent} | ({"parent": session} if session else {})
        return self._open.get(name, lambda n: Conversation(name, origin, ordinal=n))

    def _session_of(self, value: Mapping[str, Any]) -> str:
        parts = self._source.parts
        if "subagents" in parts[1:-1]:  # some versions write the agent's own id as the session
            return parts[len(parts) - 2 - parts[::-1].index("subagents")]
        session = first_text(value.get("sessionId"))
        agent = value.get("agentId")
        if session and not (agent and session == f"agent-{agent}"):
            self._last_session = session
            return session
        return "" if session else self._last_session or parts[-1].partition(".")[0]

    def _chain(self, value: Mapping[str, Any]) -> str:
        """The side chain of a record without an agent's id: that of its parent, or a new one."""
        uuid, parent = text(value.get("uuid")), value.get("parentUuid")
        known = self._chains.get(text(parent))
        if known is None and parent and self._chains:  # its parent is lost: stay with the chain that spoke last
            known = self._chains[next(reversed(self._chains))]
        chain = known or uuid or "sidechain"
        _remember(self._chains, uuid, chain)
        return chain

    def _origin(self, value: Mapping[str, Any]) -> dict[str, Any]:
        about = {"project": value.get("cwd"), "branch": value.get("gitBranch"), "version": value.get("version")}
        known = {key: said for key, said in about.items() if isinstance(said, str) and said}
        return {"importer": KIND, "file": self._source.parts[-1]} | known


def _remember(memory: OrderedDict[str, str], key: str, value: str) -> None:
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > _REMEMBERED:
        memory.popitem(last=False)

"""Folding what happened in a conversation into turns: the one place that knows where a turn begins and what belongs
to it.

A turn is one prompt (further prompts that arrive before any answer are followups of it) and everything up to the next
prompt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from threefold.importers.base import MAX_TOKENS, bounded, digest, identifier, title_from
from threefold.model.kinds import Status, StepStatus, SubmissionKind
from threefold.model.turn import (
    Attachment,
    Completion,
    ContextEvent,
    PublishedFile,
    Source,
    Step,
    Submission,
    Turn,
)

MAX_SUBMISSIONS = 1000  # what the record takes for one turn


@dataclass
class _Draft:
    """A turn that is still growing."""

    id: str
    started: datetime
    ended: datetime
    answered: bool = False
    status: Status = "completed"
    error: str | None = None
    submissions: list[Submission] = field(default_factory=list)
    context: list[ContextEvent] = field(default_factory=list)
    attachments: list[Attachment] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    calls: dict[int, str] = field(default_factory=dict)  # steps without a result: index → id of the call
    done: set[str] = field(default_factory=set)  # ids of the calls that have one
    files: list[PublishedFile] = field(default_factory=list)
    sources: dict[str, Source] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    said_at: datetime | None = None
    usage: dict[str, dict[str, int]] = field(default_factory=dict)
    model: str | None = None
    author: str | None = None
    title: str | None = None


class Conversation:
    """One conversation being read. What ends a turn returns it; nothing else does."""

    def __init__(self, name: str, origin: Mapping[str, Any], title: str | None = None, ordinal: int = 0) -> None:
        self.id = identifier(name) or digest(name)
        self.title = title
        self._opened = False
        self.ordinal = ordinal
        self._origin = dict(origin)
        self._draft: _Draft | None = None
        self._before: list[ContextEvent] = []
        self._taken: Counter[str] = Counter()

    def begin(self, at: datetime, source: object = None) -> list[Turn]:
        """Open a turn at what is no person's words; ends one that was answered."""
        ended = self.close() if self._draft is not None and self._draft.answered else []
        self._now(at, source)
        return ended

    def ensure(self, at: datetime, source: object = None) -> None:
        """Open a turn if none is open, for what follows."""
        self._now(at, source)

    def sign(self, author: str | None) -> None:
        """Who gives the answer of the turn."""
        if self._draft is not None and author:
            self._draft.author = author

    def prompt(
        self,
        words: str,
        at: datetime,
        source: object = None,
        author: str | None = None,
        queued: bool = False,
    ) -> list[Turn]:
        """A person's words. `source` is the id of its record; `queued` words belong to the turn that runs already."""
        running = self._draft
        full = running is not None and len(running.submissions) >= MAX_SUBMISSIONS
        ended = self.close() if running is not None and ((running.answered and not queued) or full) else []
        draft = self._now(at, source)
        kind: SubmissionKind = "followup" if draft.submissions else "prompt"
        draft.submissions.append(Submission(kind, words, at, author=author))
        if self.title is None and not self._opened:
            # Of this turn alone: with its words goes the title that was made of them.
            draft.title = title_from(words)
            self._opened = draft.title is not None
        return ended

    def say(self, words: str, at: datetime, source: object = None) -> None:
        """A visible text of the assistant. An answer after an error means that trying again helped."""
        draft = self._answering(at, source)
        if words.strip():
            draft.said.append(words.strip("\n"))
            draft.said_at = at
            if draft.status == "failed":
                draft.status, draft.error = "completed", None

    def step(self, name: str, at: datetime, arguments: Any = None, call: object = None, source: object = None) -> None:
        """A call of a tool; `call` is the id by which its result will name it."""
        draft = self._answering(at, source)
        draft.calls[len(draft.steps)] = call if isinstance(call, str) else ""
        draft.steps.append(Step(name or "tool", at, arguments, None, "started"))

    def result(
        self, at: datetime, result: Any, call: object = None, status: StepStatus = "completed", name: str = ""
    ) -> None:
        """What a tool gave. Without an id it belongs to the oldest open call; without a call it is kept as an event."""
        waiting = self._draft.calls if self._draft is not None else {}
        named = isinstance(call, str) and call != ""
        index = next((i for i, other in waiting.items() if (other == call if named else True)), None)
        if index is None or self._draft is None:
            given = {"name": name or None, "call": call if named else None, "result": result, "status": status}
            self.event("tool_result", {k: v for k, v in given.items() if v is not None}, at)
            return
        self._draft.done.add(waiting.pop(index))
        self._now(at)
        self._draft.steps[index] = replace(self._draft.steps[index], result=result, status=status)

    def called(self, call: object) -> bool:
        """Whether a call of this id is open in the present turn."""
        return self._draft is not None and isinstance(call, str) and call in self._draft.calls.values()

    def waits(self) -> bool:
        """Whether any call of the present turn has no result yet."""
        return self._draft is not None and bool(self._draft.calls)

    def answered(self, call: object) -> bool:
        """Whether a call of this id has its result in the present turn."""
        return self._draft is not None and isinstance(call, str) and call in self._draft.done

    def event(self, kind: str, payload: Any, at: datetime) -> None:
        """Something around the turn. Before the first turn it waits for it, and never opens one."""
        events = self._before if self._draft is None else self._draft.context
        events.append(ContextEvent(identifier(kind) or "event", bounded(payload), at))

    def attach(self, name: str, data: bytes, at: datetime, mime: str | None = None, words: str | None = None) -> None:
        """A file that the person gave with the prompt."""
        self._now(at).attachments.append(Attachment(name, data, at, mime, words))

    def publish(self, path: str, data: bytes, at: datetime, mime: str | None = None) -> None:
        """A file that the assistant made; a later edition replaces an earlier one of the same turn."""
        draft = self._answering(at)
        draft.files = [f for f in draft.files if f.path != path]
        draft.files.append(PublishedFile(path, data, at, mime))

    def cite(self, url: str, title: str | None = None, words: str | None = None) -> None:
        """A source of the answer."""
        if self._draft is not None and url:
            self._draft.sources.setdefault(url, Source(url, title or None, words or None))

    def use(self, counts: Mapping[str, int], message: object = None, model: object = None) -> None:
        """Token counts. Of one `message` written in pieces, each piece repeats the counts: the largest are taken."""
        draft = self._draft
        if draft is None:
            return
        if draft.model is None and isinstance(model, str) and model.strip():
            draft.model = model
        name = message if isinstance(message, str) else f"#{len(draft.usage)}"
        known = draft.usage.setdefault(name, {})
        for key, count in counts.items():
            known[key] = max(known.get(key, 0), count)

    def fail(self, error: str, at: datetime, source: object = None) -> None:
        """The turn ended with an error."""
        draft = self._answering(at, source)
        if draft.status != "cancelled":
            draft.status, draft.error = "failed", error or "unknown error"

    def cancel(self, at: datetime) -> None:
        """The person interrupted the turn."""
        if self._draft is not None:
            draft = self._answering(at)
            draft.status, draft.error = "cancelled", None

    def finish(self) -> None:
        """The source says that the turn was completed, whatever it said before."""
        if self._draft is not None and self._draft.status == "cancelled":
            self._draft.status = "completed"

    def settle(self) -> None:
        """What was asked is done without an answer, as a local command is: the next prompt opens a turn."""
        if self._draft is not None:
            self._draft.answered = True

    def close(self) -> list[Turn]:
        """End the turn that is open, if there is one with anything in it."""
        draft, self._draft = self._draft, None
        if draft is None:
            return []
        told = (draft.submissions, draft.context, draft.attachments, draft.steps, draft.files, draft.said, draft.error)
        return [self._turn(draft)] if any(told) else []

    @property
    def waiting(self) -> int:
        """How many events have no turn to belong to."""
        return len(self._before)

    @property
    def open(self) -> bool:
        """Whether a turn is open."""
        return self._draft is not None

    def _now(self, at: datetime, source: object = None) -> _Draft:
        if self._draft is None:
            name = identifier(source) or digest(self.id, self.ordinal)
            self.ordinal += 1
            self._taken[name] += 1
            if self._taken[name] > 1:
                name = f"{name}-{self._taken[name]}"
            self._draft = _Draft(name, at, at, context=self._before)
            self._before = []
        self._draft.ended = max(self._draft.ended, at)
        return self._draft

    def _answering(self, at: datetime, source: object = None) -> _Draft:
        draft = self._now(at, source)
        draft.answered = True
        return draft

    def _turn(self, draft: _Draft) -> Turn:
        started = min([s.at for s in draft.submissions], default=draft.started)
        tokens: Counter[str] = Counter()
        for counts in draft.usage.values():
            tokens.update(counts)
        return Turn(
            conversation=self.id,
            id=draft.id,
            started=started,
            ended=draft.ended,
            status=draft.status,
            title=self.title or draft.title,
            submissions=tuple(draft.submissions),
            context=tuple(draft.context),
            attachments=tuple(draft.attachments),
            steps=tuple(draft.steps),
            files=tuple(draft.files),
            sources=tuple(draft.sources.values()),
            completion=Completion("\n\n".join(draft.said), draft.said_at, draft.author)
            if draft.said_at is not None
            else None,
            error=draft.error,
            tokens={key: min(count, MAX_TOKENS) for key, count in sorted(tokens.items())},
            origin=self._origin | ({"model": draft.model} if draft.model else {}),
        )

"""What happens in a turn as events of AG-UI (https://docs.ag-ui.com), in plain JSON; and the log of them. Pure.

What the protocol has no name for are its CUSTOM events: `threefold.accepted` (a submission, and what became of it),
`threefold.withdrawn` (one that waited does not any more), `threefold.context` (what the agent was given),
`threefold.file`, `threefold.panel`, and `threefold.recorded` (a turn as it is recorded, in place of events that cannot
be given any more).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from threefold.errors import InvalidInput
from threefold.host.events import Event, Panel, Step
from threefold.host.run import as_text
from threefold.host.sending import File
from threefold.model.clean import storable
from threefold.model.codec import compact_json
from threefold.model.context import ComputedContext
from threefold.model.kinds import Status
from threefold.model.scope import check_id
from threefold.ports import Redactor
from threefold.realms.conv.lanes.values import Joined, Sent
from threefold.realms.conv.refs import ref_for
from threefold.realms.redacting import Pass

CONTENT: Final = "TEXT_MESSAGE_CONTENT"
# The place behind all events of a turn.
END: Final = 999_999
_ID: Final = re.compile(r"(.+):([0-9]{1,9}):([0-9]{1,18})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class LaneEvent:
    """One event of a conversation's turns. `data` is an AG-UI event, `type` its type.

    `id` is what `Door.events(after=…)` goes on behind; of one conversation's events later ones have greater ids.
    """

    id: str
    type: str
    data: Mapping[str, Any]


class Position(NamedTuple):
    """How far a viewer is: in which turn, up to which entry of its log, from 1, and how much of that entry's text."""

    turn: str
    entry: int = 0
    offset: int = 0

    @property
    def id(self) -> str:
        """The position as the id of an event."""
        return f"{self.turn}:{self.entry:06d}:{self.offset:09d}"

    @classmethod
    def of(cls, id_: str) -> Position:
        """The position that an id names.

        Raises:
            InvalidInput: it is no event's id.
        """
        found = _ID.fullmatch(str(id_))
        if found is None:
            raise InvalidInput(
                f"after {str(id_)[:100]!r} is no event's id; give one that was received, or leave it out"
            )
        return cls(check_id(found[1], "after"), int(found[2]), int(found[3]))


class Log:
    """The events of one turn so far. Pieces of one message that come in a row are one entry, which grows."""

    def __init__(self, turn: str) -> None:
        self.turn, self.entries, self.done = turn, list[dict[str, Any]](), False
        self.size, self.edition = 0, 0

    def add(self, events: Iterable[dict[str, Any]]) -> None:
        """Append events."""
        for event in events:
            self.edition += 1
            last = self.entries[-1] if self.entries else {}
            if event["type"] == last.get("type") == CONTENT and event["messageId"] == last["messageId"]:
                last["delta"] += event["delta"]
                self.size += len(event["delta"])
            else:
                self.entries.append(dict(event))
                self.size += len(compact_json(event))

    def end(self) -> None:
        """There will be no more."""
        self.edition += 1
        self.done = True


def since(entries: Sequence[Mapping[str, Any]], seen: Position) -> Iterator[tuple[Position, Mapping[str, Any]]]:
    """What a viewer has not seen of a log, each with the position behind it."""
    for number, entry in enumerate(entries[max(seen.entry - 1, 0) :], max(seen.entry, 1)):
        if entry["type"] == CONTENT:
            text, offset = entry["delta"], seen.offset if number == seen.entry else 0
            if len(text) > offset:
                yield Position(seen.turn, number, len(text)), {**entry, "delta": text[offset:]}
        elif number > seen.entry:
            yield Position(seen.turn, number), entry


def recorded(conversation: str, turn: Mapping[str, Any] | None, why: str) -> dict[str, Any]:
    """The event that gives a turn as it is recorded, where it was not followed live, and says why."""
    return {
        "type": "CUSTOM",
        "name": "threefold.recorded",
        "value": {"conversation": conversation, "turn": turn, "why": why},
    }


class Teller:
    """Makes events of what happens in one turn, in order.

    With a rule of redaction a message and a panel are told when they are whole: half a secret is not known as one.
    """

    def __init__(self, conversation: str, turn: str, clock: Callable[[], datetime], rule: Redactor | None) -> None:
        self._conversation, self._turn, self._clock, self._rule = conversation, turn, clock, rule
        self._phase, self._messages, self._steps = "", 0, 0
        self._open, self._held = False, ""
        self._panels: dict[tuple[str, str], str] = {}

    def opened(self) -> Iterator[dict[str, Any]]:
        """The turn begins."""
        yield self._event("RUN_STARTED", threadId=self._conversation, runId=self._turn)
        yield from self._enter("context")

    def accepted(self, sent: Sent, turn: str, joined: Joined) -> Iterator[dict[str, Any]]:
        """A submission was accepted, for this turn or the next one."""
        yield self._custom("accepted", {**sent.as_json(), "turn": turn, "joined": joined})

    def withdrawn(self, submission: str) -> Iterator[dict[str, Any]]:
        """A submission that waited for the next turn was taken back."""
        yield self._custom("withdrawn", {"submission": submission})

    def told(self, event: Event) -> Iterator[dict[str, Any]]:
        """Something happened, as the kernel tells it."""
        if event.context is not None:
            yield from self._started(event.agent, event.context)
        elif event.step is not None:
            yield from self._step(event.step)
        elif event.file is not None:
            yield from self._file(event.file)
        elif event.panel is not None:
            yield from self._panel(event.panel)
        elif event.kind == "delta":
            yield from self._piece(event.text, event.fresh)

    def ended(self, status: Status, error: str | None, result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The turn is over; `result` is what is to be told of it, such as its reference."""
        yield from self._message_ends()
        for (marker, name), text in self._panels.items():
            panel = {"marker": marker, "name": self._redacted(name), "delta": self._redacted(text)}
            yield self._custom("panel", panel)
        yield from self._enter("")
        if status == "failed":
            told = {"threadId": self._conversation, "runId": self._turn, **result}
            yield self._event("RUN_ERROR", message=self._redacted(error or status), code=status, metadata=told)
        else:
            outcome = {"type": "success" if status == "completed" else "cancelled"}
            told = {"status": status, "error": error, **result}
            yield self._event(
                "RUN_FINISHED", threadId=self._conversation, runId=self._turn, outcome=outcome, result=told
            )

    def _started(self, agent: str, context: ComputedContext) -> Iterator[dict[str, Any]]:
        yield from self._message_ends()
        yield from self._enter("")
        value = {"tokens": context.estimated_tokens, "budget": context.budget, "refs": dict(context.refs),
                 "dropped": len(context.dropped), "warnings": list(context.warnings)}  # fmt: skip
        yield self._custom("context", value)
        yield from self._enter(agent)

    def _enter(self, phase: str) -> Iterator[dict[str, Any]]:
        """Leave the step that the turn is in, and enter another: the context is computed, then the agent works."""
        if self._phase:
            yield self._event("STEP_FINISHED", stepName=self._phase)
        self._phase = phase
        if phase:
            yield self._event("STEP_STARTED", stepName=phase)

    def _piece(self, text: str, fresh: bool) -> Iterator[dict[str, Any]]:
        if fresh:
            yield from self._message_ends()
        if self._rule is not None:
            self._held += text
        elif text:
            yield from self._message(storable(text))

    def _message(self, text: str) -> Iterator[dict[str, Any]]:
        if not self._open:
            self._open = True
            self._messages += 1
            yield self._event("TEXT_MESSAGE_START", messageId=self._message_id, role="assistant")
        yield {"type": CONTENT, "messageId": self._message_id, "delta": text}

    def _message_ends(self) -> Iterator[dict[str, Any]]:
        held, self._held = self._redacted(self._held), ""
        if held:
            yield from self._message(held)
        if self._open:
            self._open = False
            yield self._event("TEXT_MESSAGE_END", messageId=self._message_id)

    @property
    def _message_id(self) -> str:
        return f"{self._turn}.message_{self._messages}"

    def _step(self, step: Step) -> Iterator[dict[str, Any]]:
        self._steps += 1
        id_, done = f"{self._turn}.step_{self._steps}", Pass(self._rule)
        yield self._event("TOOL_CALL_START", toolCallId=id_, toolCallName=done.text(step.name))
        if step.arguments is not None:
            yield self._event("TOOL_CALL_ARGS", toolCallId=id_, delta=compact_json(done.json(step.arguments)))
        yield self._event("TOOL_CALL_END", toolCallId=id_, metadata={"status": step.status})
        if step.status not in ("started", "running"):
            content = "" if step.result is None else as_text(done.json(step.result))
            yield self._event(
                "TOOL_CALL_RESULT", toolCallId=id_, messageId=f"{id_}.result", content=content, role="tool",
                metadata={"status": step.status},
            )  # fmt: skip

    def _file(self, file: File) -> Iterator[dict[str, Any]]:
        path = Pass(self._rule).path(file.name)
        card = {"path": path, "size": len(file.data), "mime": file.mime,
                "digest": hashlib.sha256(file.data).hexdigest(),
                "ref": ref_for(self._conversation, self._turn, f"files/{path}")}  # fmt: skip
        yield self._custom("file", card)

    def _panel(self, piece: Panel) -> Iterator[dict[str, Any]]:
        if self._rule is None:
            yield self._custom("panel", {"marker": piece.marker, "name": piece.name, "delta": piece.text})
            return
        place = piece.marker, piece.name
        self._panels[place] = self._panels.get(place, "") + piece.text

    def _redacted(self, text: str) -> str:
        return storable(Pass(self._rule).text(text)) if text else text

    def _custom(self, name: str, value: Mapping[str, Any]) -> dict[str, Any]:
        return self._event("CUSTOM", name=f"threefold.{name}", value=value)

    def _event(self, type_: str, **more: Any) -> dict[str, Any]:
        return {"type": type_, "timestamp": int(self._clock().timestamp() * 1000), **more}


class Shown(NamedTuple):
    """What had been shown of a turn: its messages, and its steps (name, status, arguments as JSON, result)."""

    messages: tuple[str, ...]
    steps: tuple[tuple[str, str, str | None, str | None], ...]


def shown(entries: Sequence[Mapping[str, Any]]) -> Shown:
    """What a log tells that was shown."""
    messages: dict[str, str] = {}
    steps: dict[str, list[Any]] = {}
    for entry in entries:
        kind = entry["type"]
        if kind == CONTENT:
            messages[entry["messageId"]] = messages.get(entry["messageId"], "") + entry["delta"]
        elif kind == "TOOL_CALL_START":
            steps[entry["toolCallId"]] = [entry["toolCallName"], "completed", None, None]
        elif kind == "TOOL_CALL_ARGS":
            steps[entry["toolCallId"]][2] = entry["delta"]
        elif kind == "TOOL_CALL_END":
            steps[entry["toolCallId"]][1] = entry["metadata"]["status"]
        elif kind == "TOOL_CALL_RESULT":
            steps[entry["toolCallId"]][3] = entry["content"]
    return Shown(tuple(messages.values()), tuple((a, b, c, d) for a, b, c, d in steps.values()))

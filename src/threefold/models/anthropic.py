"""Anthropic's `/v1/messages`: the system apart, roles that alternate, JSON by a tool that must be called."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from threefold.errors import InvalidInput
from threefold.model.chat import Call, Finish, Message, Reply, Tool, Usage
from threefold.models.address import base_of
from threefold.models.failures import Failed, failure_inside
from threefold.models.reading import arguments_of, dict_of, ended, json_of, name_of, number, text_of
from threefold.models.sse import Event
from threefold.models.talking import HttpModel
from threefold.models.wire import Patience, Reader

PATH: Final = "/messages"
PUBLIC: Final = "https://api.anthropic.com/v1"
# The one version of the API since June 2023; every request must name it.
VERSION: Final = "2023-06-01"
# The API has no default. Every model of the last years can give so much, and no stream is forced by it.
MOST_TOKENS: Final = 4096
_ANSWER: Final = "answer"
_FINISHES: Final[Mapping[str, Finish]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tools",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}


class AnthropicModel(HttpModel):
    """A model of Anthropic's, or of a server that speaks as theirs does. Nothing is asked before it is needed."""

    path = PATH

    def __init__(self, model: str, key: str | None, url: str = PUBLIC, *, patience: Patience | None = None) -> None:
        """Name the model.

        Raises:
            InvalidInput: an argument is malformed.
        """
        super().__init__(base_of(url, PATH), model, key, patience)

    def _headers(self, key: str | None) -> Mapping[str, str]:
        return {"anthropic-version": VERSION, **({} if key is None else {"x-api-key": key})}

    def _body(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        schema: Mapping[str, Any] | None,
        max_tokens: int | None,
    ) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.name, "max_tokens": max_tokens or MOST_TOKENS}
        system = "\n\n".join(m.text for m in messages if m.role == "system" and m.text.strip())
        if system:
            body["system"] = system
        body["messages"] = _alternating(messages)
        if not body["messages"]:
            raise InvalidInput("messages must hold one that is not blank")
        given = [_tool(tool.name, tool.description, tool.parameters) for tool in tools]
        if schema is not None:
            name = _free_name({tool.name for tool in tools})
            given.append(_tool(name, "Give your answer in this form; it ends your turn.", schema))
            body["tool_choice"] = {"type": "any"} if tools else {"type": "tool", "name": name}
        elif not tools:
            # Blocks of tools are refused where none are named: those that were called are, and cannot be called.
            called = dict.fromkeys(call.name for message in messages for call in message.calls)
            given = [_tool(name, "It is no longer there.", {"type": "object"}) for name in called]
            if given:
                body["tool_choice"] = {"type": "none"}
        if given:
            body["tools"] = given
        return body

    def _read(self, answer: Any, body: Mapping[str, Any]) -> Reply:
        reader, found = _Reader(), dict_of(answer)
        if found.get("error"):
            raise failure_inside(found["error"])
        if not isinstance(found.get("content"), list):
            raise Failed("sent something that is no answer: check that the address ends in /v1", again=False)
        for index, block in enumerate(found["content"]):
            for _ in reader.begun(index, dict_of(block)):
                pass
        reader.ended(name_of(found.get("stop_reason")) or "end_turn", found.get("usage"))
        reply = reader.reply()
        if body.get("tool_choice", {}).get("type") in {"tool", "any"}:
            return _answered(reply, body["tools"][-1]["name"])
        return reply

    def _reader(self) -> Reader:
        return _Reader()


class _Reader:
    """Puts an answer together of its blocks."""

    def __init__(self) -> None:
        self.done = False
        self._text: list[str] = []
        self._calls: list[_Called] = []
        self._finish: str | None = None
        self._input = self._output = 0

    def take(self, event: Event) -> Iterator[str]:
        told = json_of(event.data, "an event")
        if not isinstance(told, dict):
            raise Failed("sent an event that is no object", again=False)
        kind = told.get("type", event.name)
        if kind == "error" or told.get("error"):
            raise failure_inside(told.get("error"))
        if kind == "message_start":
            self.ended(None, dict_of(told.get("message")).get("usage"))
        elif kind == "content_block_start":
            yield from self.begun(told.get("index"), dict_of(told.get("content_block")))
        elif kind == "content_block_delta":
            yield from self._grown(told.get("index"), dict_of(told.get("delta")))
        elif kind == "message_delta":
            self.ended(name_of(dict_of(told.get("delta")).get("stop_reason")), told.get("usage"))
        elif kind == "message_stop":
            self.done = True
        # A ping is no news, and kinds that come to be known later are none to us.

    def begun(self, index: Any, block: Mapping[str, Any]) -> Iterator[str]:
        """A block begins, or is whole."""
        if block.get("type") == "tool_use":
            given = block.get("input")
            said = json.dumps(given) if given else ""
            id_, name = name_of(block.get("id")), name_of(block.get("name"))
            self._calls.append(_Called(index, id_ or f"toolu_{uuid.uuid4().hex[:12]}", name or "", said))
        elif block.get("type") == "text":
            yield from self._said(block.get("text"))

    def ended(self, finish: str | None, usage: Any) -> None:
        """What is told beside the blocks."""
        self._finish = finish or self._finish
        usage = dict_of(usage)
        if usage:
            # What was read from a cache, or written into one, is not in `input_tokens`.
            names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
            self._input = sum(number(usage.get(name)) for name in names) or self._input
            self._output = number(usage.get("output_tokens")) or self._output

    def reply(self) -> Reply:
        if self._finish is None:
            raise Failed("ended the stream before the answer was whole")
        finish = _FINISHES.get(self._finish, "stop")
        if finish == "refused":
            return Reply("".join(self._text), (), finish, Usage(self._input, self._output))
        calls = tuple(Call(each.id, each.name, arguments_of(each.name, each.said, finish)) for each in self._calls)
        return Reply("".join(self._text), calls, ended(finish, calls), Usage(self._input, self._output))

    def _grown(self, index: Any, delta: Mapping[str, Any]) -> Iterator[str]:
        if delta.get("type") == "input_json_delta":
            for call in self._calls:
                if call.index == index:
                    call.said += text_of(delta.get("partial_json"))
        elif delta.get("type") == "text_delta":
            yield from self._said(delta.get("text"))

    def _said(self, text: Any) -> Iterator[str]:
        if isinstance(text, str) and text:
            self._text.append(text)
            yield text


@dataclass(slots=True)
class _Called:
    """What is known of a call so far."""

    index: Any
    id: str
    name: str
    said: str


def _answered(reply: Reply, name: str) -> Reply:
    """The JSON that came by the tool as the text that it stands for."""
    given = next((call for call in reply.calls if call.name == name), None)
    if given is None:
        return reply
    text = json.dumps(given.arguments, ensure_ascii=False)
    return replace(reply, text=text, calls=(), finish="stop" if reply.finish == "tools" else reply.finish)


def _free_name(taken: Collection[str]) -> str:
    name = _ANSWER
    while name in taken:
        name += "_"
    return name


def _tool(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "description": description, "input_schema": parameters}


def _alternating(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The conversation in roles that alternate, the user's first: neighbours of one role are one message."""
    found: list[dict[str, Any]] = []
    for message in messages:
        blocks = _blocks(message)
        role = "assistant" if message.role == "assistant" else "user"
        if not blocks:
            continue
        if found and found[-1]["role"] == role:
            found[-1]["content"] += blocks
            found[-1]["content"].sort(key=lambda block: block["type"] != "tool_result")  # they must stand first
        else:
            found.append({"role": role, "content": blocks})
    if found and found[0]["role"] == "assistant":
        found.insert(0, {"role": "user", "content": [{"type": "text", "text": "(The conversation goes on.)"}]})
    return found


def _blocks(message: Message) -> list[dict[str, Any]]:
    """The blocks of a message; blank texts are refused, so they are left out."""
    if message.role == "system":
        return []
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": _id(message.call or ""), "content": message.text}]
    blocks: list[dict[str, Any]] = [{"type": "text", "text": message.text}] if message.text.strip() else []
    return blocks + [
        {"type": "tool_use", "id": _id(call.id), "name": call.name, "input": call.arguments} for call in message.calls
    ]


def _id(given: str) -> str:
    """An id of another server may have characters that are refused here."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", given) or "call"

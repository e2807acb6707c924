"""OpenAI's `/v1/chat/completions`, which Ollama, vLLM, llama.cpp, LM Studio and most gateways speak too.

They speak it with an accent. What a server does not know is learned from its refusal, once: the `response_format` with
a schema (it is told in words then, and JSON asked for in the older way, or not at all), `stream_options`, and which of
its two names the limit of tokens has.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from threefold.model.chat import Call, Finish, Message, Reply, Tool, Usage
from threefold.models.address import base_of
from threefold.models.failures import Failed, failure_inside
from threefold.models.reading import arguments_of, dict_of, ended, json_of, list_of, name_of, number, text_of
from threefold.models.sse import Event
from threefold.models.talking import HttpModel
from threefold.models.wire import Patience, Reader

PATH: Final = "/chat/completions"
_FINISHES: Final[Mapping[str, Finish]] = {
    "stop": "stop",
    "tool_calls": "tools",
    "function_call": "tools",
    "length": "length",
    "content_filter": "refused",
}
# How servers that cannot keep to a schema say so.
_NO_FORMAT: Final = re.compile(r"response_?format|json|schema|grammar|structured|guided", re.IGNORECASE)
# From the better to the older; behind them comes asking in words alone.
_FORMATS: Final = ("json_schema", "json_object")
_LIMIT, _OLD_LIMIT = "max_completion_tokens", "max_tokens"


class OpenAIModel(HttpModel):
    """A model behind an address such as `http://localhost:11434/v1`. Nothing is asked before it is needed."""

    path = PATH

    def __init__(self, url: str, model: str, key: str | None = None, *, patience: Patience | None = None) -> None:
        """Name the server and its model.

        Raises:
            InvalidInput: an argument is malformed.
        """
        super().__init__(base_of(url, PATH), model, key, patience)
        # OpenAI's own models that think know the new name alone, most other servers only the old one.
        self._limit = _LIMIT if self.place.startswith("https://api.openai.com/") else _OLD_LIMIT
        self._formats: tuple[str, ...] = _FORMATS
        self._counts = True

    def _headers(self, key: str | None) -> Mapping[str, str]:
        return {} if key is None else {"Authorization": f"Bearer {key}"}

    def _body(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        schema: Mapping[str, Any] | None,
        max_tokens: int | None,
    ) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.name}
        if schema is not None and self._formats:
            body["response_format"] = _format(self._formats[0], schema)
        if schema is not None and self._formats != _FORMATS:
            messages = _told(messages, schema)
        body["messages"] = [_message(message) for message in messages]
        if tools:
            body["tools"] = [_tool(tool) for tool in tools]
        if max_tokens is not None:
            body[self._limit] = max_tokens
        return body

    def _streamed(self) -> Mapping[str, Any]:
        return {"stream": True, **({"stream_options": {"include_usage": True}} if self._counts else {})}

    def _read(self, answer: Any, body: Mapping[str, Any]) -> Reply:  # noqa: ARG002 - for others
        reader = _Reader()
        for _ in reader.heard(answer):
            pass
        return reader.reply(whole=True)

    def _reader(self) -> Reader:
        return _Reader()

    def _learned(self, said: str, body: Mapping[str, Any]) -> str | None:
        # What this body had is asked about, not what is known by now: another task may have learned it meanwhile.
        if "stream_options" in body and "stream_options" in said:
            self._counts = False
            return "it counts no tokens of streams"
        if _OLD_LIMIT in body and _LIMIT in said:
            self._limit = _LIMIT
            return f"the limit of tokens is {_LIMIT}"
        if _LIMIT in body and _LIMIT in said:
            self._limit = _OLD_LIMIT
            return f"the limit of tokens is {_OLD_LIMIT}"
        if "response_format" in body and _NO_FORMAT.search(said):
            refused = body["response_format"]["type"]
            self._formats = min(self._formats, _FORMATS[_FORMATS.index(refused) + 1 :], key=len)
            return f"it knows no {refused} ({said[:200]}); the schema is told in words from now on"
        return None


class _Reader:
    """Puts an answer together: of the pieces of a stream, or of one piece, which is all of it."""

    def __init__(self) -> None:
        self.done = False
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[_Piece] = []
        self._finish: str | None = None
        self._usage = Usage()

    def take(self, event: Event) -> Iterator[str]:
        if event.data.strip() == "[DONE]":
            self.done = True
            return
        answer = json_of(event.data, "an event")
        yield from self.heard(answer)

    def heard(self, answer: Any) -> Iterator[str]:
        if not isinstance(answer, dict):
            raise Failed("sent something that is no answer", again=False)
        if answer.get("error"):
            raise failure_inside(answer["error"])
        usage = dict_of(answer.get("usage"))
        if usage:
            self._usage = Usage(number(usage.get("prompt_tokens")), number(usage.get("completion_tokens")))
        for choice in map(dict_of, list_of(answer.get("choices"))[:1]):
            said = dict_of(choice.get("delta") or choice.get("message"))
            self._finish = name_of(choice.get("finish_reason")) or self._finish
            self._refusal.append(text_of(said.get("refusal")))
            for piece in map(dict_of, list_of(said.get("tool_calls"))):
                self._called(piece)
            text = text_of(said.get("content"))
            if text:
                self._text.append(text)
                yield text

    def reply(self, whole: bool = False) -> Reply:
        text, refusal = "".join(self._text), "".join(self._refusal)
        if not whole and not self.done and self._finish is None:
            raise Failed("ended the stream before the answer was whole")
        if whole and self._finish is None and not text and not self._calls:
            raise Failed("sent something that is no answer: check that the address ends in /v1", again=False)
        finish = _FINISHES.get(self._finish or "stop", "stop")
        if refusal:
            return Reply(text or refusal, (), "refused", self._usage)
        calls = tuple(
            Call(piece.id or f"call_{uuid.uuid4().hex[:12]}", piece.name, arguments_of(piece.name, piece.said, finish))
            for piece in self._calls
        )
        # Some servers say "stop" where they want tools called.
        return Reply(text, calls, ended(finish, calls), self._usage)

    def _called(self, piece: Mapping[str, Any]) -> None:
        """Add a piece to the call that it belongs to: by its index, or its id where servers number all of them 0."""
        function = dict_of(piece.get("function"))
        index, id_, name = piece.get("index"), name_of(piece.get("id")), name_of(function.get("name"))
        found = next((each for each in reversed(self._calls) if index is not None and each.index == index), None)
        if found is None and index is None and self._calls and name is None:
            found = self._calls[-1]
        if found is None or (id_ is not None and found.id is not None and found.id != id_):
            found = _Piece(index)
            self._calls.append(found)
        found.id = found.id or id_
        found.name = found.name or name or ""
        said = function.get("arguments")
        found.said += said if isinstance(said, str) else json.dumps(said) if said else ""


class _Piece:
    """What is known of a call so far."""

    def __init__(self, index: Any) -> None:
        self.index, self.name, self.said = index, "", ""
        self.id: str | None = None


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call or "", "content": message.text}
    if not message.calls:
        return {"role": message.role, "content": message.text}
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _dumped(call.arguments)}}
        for call in message.calls
    ]
    return {"role": message.role, "content": message.text or None, "tool_calls": calls}


def _tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _format(kind: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    if kind == "json_schema":
        return {"type": kind, "json_schema": {"name": "answer", "schema": schema}}
    # Some servers of local models keep to a schema in this place, the others want JSON at least.
    return {"type": kind, "schema": schema}


def _told(messages: Sequence[Message], schema: Mapping[str, Any]) -> list[Message]:
    """The schema in words, in the one system message that stands first: templates of many models take no other."""
    wish = f"Answer with nothing but JSON that fits this JSON Schema: {_dumped(schema)}"
    if messages and messages[0].role == "system":
        return [Message("system", f"{messages[0].text}\n\n{wish}"), *messages[1:]]
    return [Message("system", wish), *messages]


def _dumped(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)

"""What is sent over the two wires, and the accents in which servers answer. Over real sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from chat_server import Handler, Server, error, event, openai_answer, raw, serving

from threefold.errors import InvalidInput, Unavailable
from threefold.model.chat import Call, Message, Reply, Tool, Usage
from threefold.models.anthropic import AnthropicModel
from threefold.models.openai import OpenAIModel
from threefold.models.talking import HttpModel

HELLO = [Message("user", "hello")]
TOOL = Tool("find", "Finds.", {"type": "object", "properties": {"name": {"type": "string"}}})
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
CALL = Call("call:1", "find", {"name": "ferry"})
TALK = [
    Message("system", "Be brief."),
    Message("user", "Where?"),
    Message("assistant", "I look.", (CALL, Call("b", "find"))),
    Message("tool", "at the pier", call="call:1"),
    Message("tool", "", call="b"),
    Message("user", "And when?"),
    Message("system", "It is late."),
]


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture
def openai(server: Server) -> OpenAIModel:
    return OpenAIModel(server.url, "words", "key")


@pytest.fixture
def anthropic(server: Server) -> AnthropicModel:
    return AnthropicModel("words", "key", server.url)


def chat(model: HttpModel, messages: list[Message] = HELLO, **given: Any) -> Reply:
    return asyncio.run(model.chat(messages, **given))


def streamed(model: HttpModel, messages: list[Message] = HELLO, **given: Any) -> Reply:
    async def read() -> Any:
        return [piece async for piece in model.stream(messages, **given)]

    found: Reply = asyncio.run(read())[-1]
    return found


def stream_of(*deltas: Any, finish: str | None = "stop") -> str:
    """Events with these deltas, and one that ends them."""
    told = [event({"choices": [{"delta": delta}]}) for delta in deltas]
    return "".join(told) + (event({"choices": [{"delta": {}, "finish_reason": finish}]}) if finish else "")


def called(**piece: Any) -> Any:
    name, arguments = piece.pop("name", None), piece.pop("arguments", None)
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {"tool_calls": [{**piece, "function": function}]}


def test_a_conversation_as_openai_takes_it(server: Server, openai: OpenAIModel) -> None:
    chat(openai, TALK, tools=[TOOL], max_tokens=9)
    sent = server.asked[0]
    assert sent["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Where?"},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {"id": "call:1", "type": "function", "function": {"name": "find", "arguments": '{"name": "ferry"}'}},
                {"id": "b", "type": "function", "function": {"name": "find", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "call:1", "content": "at the pier"},
        {"role": "tool", "tool_call_id": "b", "content": ""},
        {"role": "user", "content": "And when?"},
        {"role": "system", "content": "It is late."},
    ]
    function = {"name": "find", "description": "Finds.", "parameters": TOOL.parameters}
    assert sent["tools"] == [{"type": "function", "function": function}]
    assert (sent["model"], sent["max_tokens"], sent["path"]) == ("words", 9, "/v1/chat/completions")
    assert not sent.keys() & {"stream", "response_format", "stream_options"}


def test_a_conversation_as_anthropic_takes_it(server: Server, anthropic: AnthropicModel) -> None:
    chat(anthropic, TALK, tools=[TOOL])
    sent = server.asked[0]
    assert sent["system"] == "Be brief.\n\nIt is late."
    assert sent["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "Where?"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "call_1", "name": "find", "input": {"name": "ferry"}},
                {"type": "tool_use", "id": "b", "name": "find", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": "at the pier"},
                {"type": "tool_result", "tool_use_id": "b", "content": ""},
                {"type": "text", "text": "And when?"},
            ],
        },
    ]
    assert sent["tools"] == [{"name": "find", "description": "Finds.", "input_schema": TOOL.parameters}]
    assert (sent["max_tokens"], sent["path"], sent["version"]) == (4096, "/v1/messages", "2023-06-01")
    assert "tool_choice" not in sent


def test_neighbours_of_one_role_are_one_message(server: Server, openai: OpenAIModel, anthropic: AnthropicModel) -> None:
    said = [
        Message("system", "Be brief."), Message("system", "Be kind."), Message("user", "Known:"), Message("user", " "),
        Message("user", "Where?"), Message("assistant", "There."), Message("assistant", "I look.", (CALL,)),
        Message("tool", "a", call="call:1"), Message("tool", "b", call="b"), Message("assistant", "Here."),
    ]  # fmt: skip
    chat(openai, said)
    sent = server.asked[-1]["messages"]
    assert [(each["role"], each["content"]) for each in sent] == [
        ("system", "Be brief.\n\nBe kind."), ("user", "Known:\n\nWhere?"), ("assistant", "There.\n\nI look."),
        ("tool", "a"), ("tool", "b"), ("assistant", "Here."),
    ]  # fmt: skip
    assert [call["id"] for call in sent[2]["tool_calls"]] == ["call:1"]
    streamed(openai, said)
    assert server.asked[-1]["messages"] == sent
    chat(anthropic, said)
    assert server.asked[-1]["system"] == "Be brief.\n\nBe kind."
    assert server.asked[-1]["messages"][0]["content"] == [{"type": "text", "text": "Known:\n\nWhere?"}]


def test_what_anthropic_would_refuse_is_not_sent(server: Server, anthropic: AnthropicModel) -> None:
    chat(anthropic, [Message("assistant", "Hello!"), Message("user", " \n"), Message("user", "Hi")])
    assert [message["role"] for message in server.asked[-1]["messages"]] == ["user", "assistant", "user"]
    # What a person says before the results of tools stands behind them.
    chat(
        anthropic, [HELLO[0], Message("assistant", "", (CALL,)), Message("user", "wait"), Message("tool", "x", (), "b")]
    )
    assert [block["type"] for block in server.asked[-1]["messages"][-1]["content"]] == ["tool_result", "text"]
    # Calls that were made need their tool, which is not there to be called again.
    assert [tool["name"] for tool in server.asked[-1]["tools"]] == ["find"]
    assert server.asked[-1]["tool_choice"] == {"type": "none"}
    with pytest.raises(InvalidInput, match="not blank"):
        chat(anthropic, [Message("user", " ")])


@pytest.mark.parametrize("messages", [[], [Message("system", "x")]])
def test_messages_must_say_something(openai: OpenAIModel, messages: list[Message]) -> None:
    with pytest.raises(InvalidInput, match="messages"):
        chat(openai, messages)
    with pytest.raises(InvalidInput, match="max_tokens 0"):
        chat(openai, max_tokens=0)


def test_any_text_can_be_sent(server: Server, openai: OpenAIModel) -> None:
    chat(openai, [Message("user", "half \ud83d, whole \ud83d\ude00, NUL \x00, \u2028")])
    assert server.asked[0]["messages"][0]["content"] == "half \ufffd, whole 😀, NUL \x00, \u2028"


@pytest.mark.parametrize(
    "deltas",
    [
        (called(index=0, id="a", name="find", arguments='{"name"'), called(index=0, arguments=': "x"}')),
        (called(index=0, name="find", arguments='{"name"'), called(index=0, id="", arguments=': "x"}')),
        (called(name="find", arguments='{"name"'), called(arguments=': "x"}')),
        (called(index=0, id="a", name="find", arguments={"name": "x"}),),
        (called(index=0, id="a", name="find", arguments='"{\\"name\\": \\"x\\"}"'),),
        (called(index=0, id="a", name="find"), called(index=0, name="find", arguments='{"name": "x"}')),
        (called(index=3, id="a", name="find", arguments='{"name": "x"}'), {"tool_calls": None, "content": None}),
    ],
)
def test_calls_in_pieces(server: Server, openai: OpenAIModel, deltas: tuple[Any, ...]) -> None:
    server.plan = [raw(stream_of({"content": "I look."}, *deltas))]
    reply = streamed(openai, tools=[TOOL])
    assert [(call.name, call.arguments) for call in reply.calls] == [("find", {"name": "x"})]
    assert reply.calls[0].id
    assert (reply.finish, reply.text) == ("tools", "I look.")  # though the server said "stop"


@pytest.mark.parametrize(
    "pieces",
    [
        [(0, "a", "one", ""), (1, "b", "two", ""), (0, None, None, "{}"), (1, None, None, '{"n": 2}')],
        [(0, "a", "one", "{}"), (0, "b", "two", '{"n": 2}')],  # a server that numbers all of them 0
        [(None, None, "one", "{}"), (None, None, "two", '{"n": 2}')],
        [(None, "a", "one", "{}"), (None, "b", "two", '{"n"'), (None, None, None, ": 2}")],
        [(0, None, "one", ""), (1, None, "two", '{"n": 2}')],
    ],
)
def test_several_calls_in_pieces(server: Server, openai: OpenAIModel, pieces: list[Any]) -> None:
    deltas = [
        called(name=name, arguments=said, **{k: v for k, v in (("index", index), ("id", id_)) if v is not None})
        for index, id_, name, said in pieces
    ]
    server.plan = [raw(stream_of(*deltas, finish="tool_calls"))]
    reply = streamed(openai)
    assert [(call.name, call.arguments) for call in reply.calls] == [("one", {}), ("two", {"n": 2})]
    assert len({call.id for call in reply.calls}) == 2


def test_calls_without_ids_get_some(server: Server, openai: OpenAIModel) -> None:
    server.ids = False
    server.plan = [Reply("", (CALL, CALL), "tools")] * 2
    ids = {call.id for reply in (chat(openai), streamed(openai)) for call in reply.calls}
    assert len(ids) == 4


def test_arguments_that_are_cut(server: Server, openai: OpenAIModel) -> None:
    server.plan = [raw(stream_of(called(index=0, id="a", name="find", arguments='{"na'), finish="length"))]
    with pytest.raises(Unavailable, match="'find' with arguments that are no JSON object, cut at the limit of tokens"):
        streamed(openai)


def test_other_accents(server: Server, openai: OpenAIModel) -> None:
    message = {"content": [{"type": "text", "text": "in "}, {"type": "text", "text": "parts"}], "reasoning": "hm"}
    server.plan = [lambda handler, _: handler.say(200, {"choices": [{"message": message}]})]
    assert chat(openai) == Reply("in parts")
    server.plan = [raw(stream_of({"refusal": "I will "}, {"refusal": "not."}))]
    assert streamed(openai) == Reply("I will not.", (), "refused")
    server.plan = [raw(stream_of({"reasoning_content": "hm", "content": "told"}, finish=None) + event("[DONE]"))]
    assert streamed(openai) == Reply("told")
    server.usage = server.done = False
    server.plan = [Reply("plain", usage=Usage(3, 4))]
    assert streamed(openai) == Reply("plain")

    def whole(handler: Handler, body: Any) -> None:  # a server that streams nothing
        handler.say(200, openai_answer(Reply("whole", (CALL,), "tools"), body, server))

    server.plan = [whole]
    assert streamed(openai) == Reply("whole", (CALL,), "tools")


def refusing(name: str, message: str) -> Callable[[Handler, Any], None]:
    """A server that refuses what it does not know, always."""

    def answer(handler: Handler, body: Any) -> None:
        handler.server.plan = [answer]
        if name in body:
            error(400, message)(handler, body)
        else:
            handler.say(200, openai_answer(Reply('{"n": 1}'), body, handler.server))

    return answer


def test_a_schema_that_the_server_does_not_know_is_told_in_words(
    server: Server, openai: OpenAIModel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "threefold")
    server.plan = [refusing("response_format", "'response_format.type' must be 'text'")]
    for _ in range(2):
        assert chat(openai, [Message("system", "Be brief."), *HELLO], schema=SCHEMA).data == {"n": 1}
    assert chat(openai, schema=SCHEMA).data == {"n": 1}
    first, second, third, fourth, fifth = (asked["messages"][0]["content"] for asked in server.asked)
    assert first == "Be brief."
    assert second == third == fourth
    assert second.startswith("Be brief.\n\nAnswer with nothing but JSON that fits")
    assert json.dumps(SCHEMA) in second
    assert fifth.startswith("Answer with nothing but JSON")
    formats = [asked.get("response_format", {}).get("type") for asked in server.asked]
    assert formats == ["json_schema", "json_object", None, None, None]
    assert sum("told in words from now on" in record.message for record in caplog.records) == 2


def test_a_server_that_falls_over_what_it_does_not_know(server: Server, openai: OpenAIModel) -> None:
    """As llama-cpp-python's does: status 500, and JSON of the older kind."""
    server.plan = [
        error(500, "1 validation error: ('body', 'response_format', 'type') should be 'json_object'"),
        '{"n": 1}',
    ]
    assert chat(openai, schema=SCHEMA).data == {"n": 1}
    assert server.asked[1]["response_format"] == {"type": "json_object", "schema": SCHEMA}


def test_several_that_learn_at_once(server: Server, openai: OpenAIModel) -> None:
    def unschooled(handler: Any, body: Any) -> None:
        if body.get("response_format", {}).get("type") == "json_schema":
            error(400, "no json_schema here")(handler, body)
        else:
            handler.say(200, openai_answer(Reply('{"n": 2}'), body, server))

    # Which of the four comes first is not told.
    server.plan = [unschooled] * 8

    async def all_at_once() -> list[Reply]:
        return await asyncio.gather(*(openai.chat([Message("user", '{"n": 2}')], schema=SCHEMA) for _ in range(4)))

    assert [reply.data for reply in asyncio.run(all_at_once())] == [{"n": 2}] * 4


@pytest.mark.parametrize(
    ("first", "then"), [("max_tokens", "max_completion_tokens"), ("max_completion_tokens", "max_tokens")]
)
def test_the_limit_of_tokens_has_two_names(server: Server, openai: OpenAIModel, first: str, then: str) -> None:
    openai._limit = first
    server.plan = [refusing(first, f"{first!r} is not supported, unlike max_completion_tokens or max_tokens")]
    for _ in range(2):
        chat(openai, max_tokens=5)
    assert [asked.get(first) for asked in server.asked] == [5, None, None]
    assert [asked.get(then) for asked in server.asked] == [None, 5, 5]
    assert OpenAIModel("https://api.openai.com/v1", "gpt")._limit == "max_completion_tokens"


def test_a_server_that_takes_neither_name_is_not_asked_for_ever(server: Server, openai: OpenAIModel) -> None:
    server.plan = [error(400, "neither max_tokens nor max_completion_tokens")] * 99
    with pytest.raises(InvalidInput, match="neither"):
        chat(openai, max_tokens=5)
    assert len(server.asked) < 9


def test_a_server_that_counts_no_streams(server: Server, openai: OpenAIModel) -> None:
    server.plan = [error(422, "stream_options: extra fields not permitted")]
    assert streamed(openai).text == streamed(openai).text == "You said: hello"
    assert ["stream_options" in asked for asked in server.asked] == [True, False, False]


def test_other_refusals_are_told_at_once(server: Server, openai: OpenAIModel) -> None:
    for ask in (chat, streamed):
        server.asked.clear()
        server.plan = [error(400, "the context length is 512 tokens")]
        with pytest.raises(InvalidInput, match=r"answered 400 \(the context length is 512 tokens\)"):
            ask(openai)
        assert len(server.asked) == 1


def test_json_of_anthropic_is_a_tool_that_must_be_called(server: Server, anthropic: AnthropicModel) -> None:
    server.plan = [Reply('{"n": 1}', finish="tools")]
    reply = chat(anthropic, schema=SCHEMA)
    assert (reply.data, reply.finish, reply.calls) == ({"n": 1}, "stop", ())
    sent = server.asked[0]
    assert sent["tool_choice"] == {"type": "tool", "name": "answer"}
    assert [tool["name"] for tool in sent["tools"]] == ["answer"]
    # With tools of its own it may call one of those first.
    own = Tool("answer", "A tool that has the same name.")
    server.plan = [Reply("", (Call("a", "answer", {"x": 1}),), "tools"), Reply("", (Call("a", "answer_", {"n": 2}),))]
    assert chat(anthropic, tools=[own], schema=SCHEMA).calls == (Call("a", "answer", {"x": 1}),)
    assert chat(anthropic, tools=[own], schema=SCHEMA).data == {"n": 2}
    assert server.asked[-1]["tool_choice"] == {"type": "any"}


def test_how_anthropic_ends_and_counts(server: Server, anthropic: AnthropicModel) -> None:
    def say(**answer: Any) -> Callable[[Handler, Any], None]:
        return lambda handler, _: handler.say(200, {"content": [{"type": "text", "text": "x"}], **answer})

    usage = {"input_tokens": 2, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 1, "output_tokens": 3}
    server.plan = [say(stop_reason="end_turn", usage=usage), say(stop_reason="refusal"), say(stop_reason="pause_turn")]
    assert chat(anthropic) == Reply("x", usage=Usage(8, 3))
    assert chat(anthropic).finish == "refused"
    assert chat(anthropic).finish == "stop"
    server.plan = [say(stop_reason="refusal")]
    with pytest.raises(InvalidInput, match="will not answer: x"):
        chat(anthropic, schema=SCHEMA)


def test_what_the_server_has(server: Server, openai: OpenAIModel, anthropic: AnthropicModel) -> None:
    for model in (openai, anthropic):
        assert asyncio.run(model.models()) == ("words:8b", "other")
    assert {asked["path"] for asked in server.asked} == {"/v1/models"}

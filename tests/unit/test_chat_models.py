"""JSON that is checked, a model that is scripted, names that are opened."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import threefold
from threefold.errors import InvalidInput, Unavailable
from threefold.model.chat import Call, Message, Reply, Tool
from threefold.models.anthropic import AnthropicModel
from threefold.models.checking import checker, values_in
from threefold.models.openai import OpenAIModel
from threefold.models.opening import open_chat
from threefold.models.scripted import ScriptedModel
from threefold.ports import ChatModel
from threefold.testing import Asked

HELLO = [Message("user", "hello")]
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
OBJECTS = st.dictionaries(st.text(max_size=4), st.none() | st.integers() | st.text(max_size=6), max_size=3)


def asked_for(*replies: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(replies)
    return asyncio.run(model.chat(HELLO, schema=SCHEMA)).data, model


@pytest.mark.parametrize(
    "said",
    [
        '{"n": 1}',
        ' \n{"n": 1}\n',
        '```json\n{"n": 1}\n```',
        'Here it is:\n\n```\n{"n": 1}\n```\nAnything else?',
        'Of course. The answer is {"n": 1}, I think.',
        'Not {"m": 2} but {"n": 1}',
        '<think>perhaps {"n": 9}?</think>{"n": 1}',
        'An unfinished { and then {"n": 1}',
    ],
)
def test_json_is_found_where_models_put_it(said: str) -> None:
    data, model = asked_for(said)
    assert data == {"n": 1}
    assert len(model.asked) == 1


def test_thoughts_without_an_end_are_looked_through_once() -> None:
    # In the square of their number this would take minutes.
    assert next(values_in("<think>" * 100_000 + '{"n": 1}')) == {"n": 1}
    assert list(values_in('<think>{"n": 9}</think>' * 2 + "<think>" * 100_000 + '{"n": 1}')) == [{"n": 1}]


@given(OBJECTS, st.text(max_size=20), st.text(max_size=20))
def test_any_object_is_found_amid_prose(value: dict[str, Any], before: str, after: str) -> None:
    said = json.dumps(value)
    assert next(values_in(said)) == value
    assert value in list(values_in(before.replace("{", "").replace("<think>", "").replace("`", "") + said + after))


@given(st.text(st.sampled_from('{}[]":,n1` \\think<>/')))
def test_any_text_is_looked_through(text: str) -> None:
    assert isinstance(list(values_in(text)), list)
    assert list(values_in("{" * 5000 + text)) is not None


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('{"n": "one"}', "Your JSON does not fit: data.n must be integer"),
        ('{"n": 1, "m": 2}', "Your JSON does not fit: data must not contain {'m'} properties"),
        ('{"n": NaN}', "Your answer holds no JSON"),
        ("I would rather not.", "Your answer holds no JSON"),
        ("", "Your answer holds no JSON"),
    ],
)
def test_the_model_is_told_what_was_wrong_and_mends_it(said: str, told: str) -> None:
    data, model = asked_for(said, '{"n": 1}')
    assert data == {"n": 1}
    first, second = model.asked
    assert second.messages[: len(HELLO)] == first.messages == tuple(HELLO)
    assert second.messages[1] == Message("assistant", said or "(nothing)")
    assert second.messages[2].text.startswith(told)
    assert json.dumps(SCHEMA) in second.messages[2].text


def test_what_stays_wrong_is_an_error_that_says_how() -> None:
    with pytest.raises(Unavailable, match=r"model 'scripted' gave no JSON that fits.*data\.n must be integer"):
        asked_for("nothing", '{"n": "x"}')
    with pytest.raises(Unavailable, match="limit of tokens within the JSON; give more max_tokens"):
        asked_for(Reply('{"n": ', finish="length"))
    with pytest.raises(InvalidInput, match="will not answer: No"):
        asked_for(Reply("No.", finish="refused"))


def test_a_call_comes_before_the_answer() -> None:
    reply = Reply("", (Call("a", "find"),), "tools")
    assert asyncio.run(ScriptedModel([reply]).chat(HELLO, [Tool("find", "")], SCHEMA)) == reply


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {},
        {"type": "string"},
        {"type": "object", "properties": 3},
        {"type": "object", "properties": {"a": {"type": "objekt"}}},
        {"type": "object", "properties": {"a": {"pattern": "("}}},
        {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}},
        {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/schema"}}},
        {"type": "object", "properties": {"a": {"$ref": "file:///etc/hostname"}}},
        {"type": "object", "x": object()},
    ],
)
def test_malformed_schemas_are_refused_and_nothing_is_fetched(schema: Any) -> None:
    with pytest.raises(InvalidInput, match="schema"):
        checker(schema)


def test_parts_of_a_schema_may_be_referred_to() -> None:
    check = checker({"type": "object", "$defs": {"a": {"type": "null"}}, "properties": {"a": {"$ref": "#/$defs/a"}}})
    assert check({"a": None}) is None
    assert check({"a": 1}) == "data.a must be null"


def test_a_scripted_model_keeps_to_its_script() -> None:
    model: ChatModel = ScriptedModel(["one", Reply("two"), Unavailable("gone"), lambda messages: messages[-1].text])

    async def ask() -> list[str]:
        said = [(await model.chat(HELLO)).text for _ in range(2)]
        with pytest.raises(Unavailable, match="gone"):
            await model.chat(HELLO)
        said += [piece for piece in [piece async for piece in model.stream(HELLO, (), 5)] if isinstance(piece, str)]
        with pytest.raises(Unavailable, match="give it another reply"):
            await model.chat(HELLO)
        return said

    assert asyncio.run(ask()) == ["one", "two", "hello"]
    assert isinstance(model, ScriptedModel)
    assert model.asked[3] == Asked(tuple(HELLO), (), None, 5)


def test_one_function_may_answer_everything() -> None:
    model = ScriptedModel(lambda messages: f"{len(messages)} said", name="counter")
    assert [asyncio.run(model.chat(HELLO * times)).text for times in (1, 3)] == ["1 said", "3 said"]
    assert repr(model) == "ScriptedModel('counter')"


@given(st.text(max_size=60))
def test_words_are_all_of_the_text(text: str) -> None:
    async def read() -> list[Any]:
        return [piece async for piece in ScriptedModel([text]).stream(HELLO)]

    *words, reply = asyncio.run(read())
    assert "".join(words) == reply.text == text
    assert all(words)


def test_a_scripted_model_can_be_cancelled() -> None:
    async def cancel() -> None:
        model = ScriptedModel(["a long tale"] * 2, delay=60)
        for work in (model.chat(HELLO), anext(model.stream(HELLO))):
            task = asyncio.ensure_future(work)
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(cancel())


@pytest.mark.parametrize(
    ("chosen", "kind", "place"),
    [
        ("http://localhost:11434/v1", OpenAIModel, "http://localhost:11434/v1"),
        ("http://localhost:11434", OpenAIModel, "http://localhost:11434/v1"),
        ("http://localhost:11434/v1/chat/completions", OpenAIModel, "http://localhost:11434/v1"),
        ("https://openrouter.ai/api/v1/", OpenAIModel, "https://openrouter.ai/api/v1"),
        ("http://[::1]:8080/v1", OpenAIModel, "http://[::1]:8080/v1"),
        ("anthropic", AnthropicModel, "https://api.anthropic.com/v1"),
        ("https://gateway.example/v1/messages", AnthropicModel, "https://gateway.example/v1"),
    ],
)
def test_names_and_addresses(chosen: str, kind: type, place: str) -> None:
    model = open_chat(chosen, "words", "key")
    assert isinstance(model, kind)
    assert (model.name, model.place) == ("words", place)
    assert "key" not in repr(model)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("gpt", "m"), "'gpt' is unknown; give 'anthropic', http"),
        (("ftp://u:p@host", "m"), "ftp://… is unknown"),
        (("http://host/v1",), "chat_model must name a model"),
        (("http://host/v1", " "), "chat_model must name a model"),
        (("anthropic", "m"), "needs chat_key"),
        (("anthropic",), "chat_model must name"),
        (("http://u:p@host/v1", "m"), "must not hold a name or a password"),
        (("http://host/v1?key=p", "m"), "a key goes into chat_key"),
        (("http://", "m"), "must be http"),
        (("http://host:port/v1", "m"), "malformed"),
        (("http://host/ü", "m"), "escaped"),
        (("http://host/v1", "m", "two words"), "chat_key must be printable"),
        (("http://host/v1", "m", ""), "chat_key must be printable"),
        ((None, "m"), "chat_model: not for chat None"),
        ((ScriptedModel([]), "m", "k"), "chat_model, chat_key: not for a chat model that is made already"),
        ((3,), "lacks name, chat"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(given: Any, message: str) -> None:
    names = dict(zip(("chat", "chat_model", "chat_key"), given, strict=False))
    with pytest.raises(InvalidInput, match=message) as caught:
        threefold.open(":memory:", embedder=None, **names)
    assert "u:p" not in str(caught.value)


def test_a_store_has_the_model_that_it_was_given() -> None:
    model = ScriptedModel([])
    with threefold.open(":memory:", embedder=None, chat=model) as db:
        assert db.chat is model
    with threefold.open(":memory:", embedder=None) as db:
        assert db.chat is None
    with threefold.open(
        ":memory:", embedder=None, chat="http://h/v1", chat_model="words", chat_key="very-secret"
    ) as db:
        assert db.chat is db.chat
        assert "very-secret" not in repr(db.config) + repr(db.chat)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from threefold.models import checking

    monkeypatch.setitem(sys.modules, "httpx2", None)
    model = open_chat("http://h/v1", "words")
    assert model is not None
    with pytest.raises(Unavailable, match=r"pip install 'threefold\[chat\]'"):
        asyncio.run(model.chat(HELLO))
    monkeypatch.setitem(sys.modules, "fastjsonschema", None)
    checking._compiled.cache_clear()
    with pytest.raises(Unavailable, match=r"pip install 'threefold\[chat\]'"):
        checker(SCHEMA)

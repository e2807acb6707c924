"""One contract for every chat model; those behind HTTP over real sockets, with servers of several habits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from chat_server import Server, serving

from threefold.models.anthropic import AnthropicModel
from threefold.models.openai import OpenAIModel
from threefold.models.scripted import ScriptedModel
from threefold.testing.contract.chat import ChatModelContract, Scripted

# Bytes one by one cut characters and lines apart; CR alone ends lines too.
HABITS: list[dict[str, Any]] = [{}, {"bite": 1, "line": "\r\n"}, {"bite": 7, "line": "\r", "done": False}]


@pytest.fixture(params=HABITS, ids=["usual", "bytes", "endless"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with serving() as running:
        for name, value in request.param.items():
            setattr(running, name, value)
        yield running


class TestScripted(ChatModelContract):
    @pytest.fixture
    def scripted(self) -> Scripted:
        return lambda *replies: ScriptedModel(replies)


class TestOpenAI(ChatModelContract):
    @pytest.fixture
    def scripted(self, server: Server) -> Scripted:
        def make(*replies: Any) -> OpenAIModel:
            server.plan = list(replies)
            return OpenAIModel(server.url, "words")

        return make


class TestAnthropic(ChatModelContract):
    @pytest.fixture
    def scripted(self, server: Server) -> Scripted:
        def make(*replies: Any) -> AnthropicModel:
            server.plan = list(replies)
            return AnthropicModel("words", "key", server.url)

        return make

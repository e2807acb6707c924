"""A server of chat models that is slow, busy, gone, moved, or lies: told, given up, asked again only where that helps.

Always a real server on this machine, never a stand-in for the client.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import aclosing
from email.utils import formatdate
from typing import Any

import pytest
from chat_server import Handler, Server, drop, error, event, raw, serving, sleep
from hypothesis import given, settings
from hypothesis import strategies as st

from threefold.errors import InvalidInput, ThreefoldError, Unavailable
from threefold.model.chat import Message, Reply, Usage
from threefold.models import wire
from threefold.models.anthropic import AnthropicModel
from threefold.models.openai import OpenAIModel
from threefold.models.talking import HttpModel
from threefold.models.wire import Patience

KEY = "sk-very-secret-4711"
HELLO = [Message("user", "hello")]
Make = Callable[..., HttpModel]
_BEGUN = {
    "openai": event({"choices": [{"delta": {"content": "half"}}]}),
    "anthropic": event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "half"}}),
}


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture(params=["openai", "anthropic"])
def spoken(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(server: Server, spoken: str) -> Make:
    """A model of either wire."""

    def made(key: str | None = KEY, url: str | None = None, **patience: float) -> HttpModel:
        own: Any = {"patience": Patience(**patience)}  # type: ignore[arg-type]
        if spoken == "openai":
            return OpenAIModel(url or server.url, "words", key, **own)
        return AnthropicModel("words", key, url or server.url, **own)

    return made


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits are counted, not waited for."""
    monkeypatch.setattr(wire.random, "uniform", lambda low, high: 0.01)


def chat(model: HttpModel) -> Reply:
    return asyncio.run(model.chat(HELLO))


def stream(model: HttpModel) -> list[Any]:
    async def read() -> list[Any]:
        return [piece async for piece in model.stream(HELLO)]

    return asyncio.run(read())


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_busy_servers_are_asked_again(server: Server, make: Make, quick: None, status: int) -> None:
    for ask in (chat, stream):
        server.asked.clear()
        server.plan = [error(status, "try later"), drop, "at last"]
        found = ask(make())
        assert (found if isinstance(found, Reply) else found[-1]).text == "at last"
        assert len(server.asked) == 3


def test_tries_have_an_end(server: Server, make: Make, quick: None) -> None:
    for ask in (chat, stream):
        server.asked.clear()
        server.plan = [error(503, "resting")] * 9
        with pytest.raises(Unavailable, match=r"answered 503 \(resting\); see that the server runs"):
            ask(make())
        assert len(server.asked) == 3


@pytest.mark.parametrize("after", ["1", "1.0", "date"])
def test_the_server_says_how_long_to_wait(server: Server, make: Make, after: str) -> None:
    server.plan = [error(429, Retry_After=formatdate(time.time() + 2, usegmt=True) if after == "date" else after)]
    started = time.monotonic()
    chat(make())
    assert time.monotonic() - started > 0.9


def test_a_wait_that_is_too_long_is_told(server: Server, make: Make) -> None:
    server.plan = [error(429, "quota", Retry_After="200")]
    with pytest.raises(Unavailable, match=r"answered 429 \(quota\) and wants to be asked again in 200 s"):
        chat(make())
    assert len(server.asked) == 1


def test_money_that_is_spent_is_not_asked_for_again(server: Server, make: Make) -> None:
    body = {"error": {"message": "insufficient_quota: pay", "code": "insufficient_quota"}}
    server.plan = [lambda handler, _: handler.say(429, body)]
    with pytest.raises(Unavailable, match="insufficient_quota"):
        chat(make())
    assert len(server.asked) == 1


def test_a_server_that_is_gone(make: Make, quick: None) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        model = make(url=f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
        for ask in (chat, stream, lambda model: asyncio.run(model.models())):
            with pytest.raises(Unavailable, match=r"cannot be reached .*see that the server runs"):
                ask(model)


@pytest.mark.parametrize("whole", [0.4, 30.0])
def test_silence_is_not_waited_for(server: Server, make: Make, whole: float) -> None:
    started = time.monotonic()
    for ask in (stream, chat) if whole < 1 else (stream,):
        server.plan = [sleep]
        with pytest.raises(Unavailable, match=r"said nothing for too long|took too long"):
            ask(make(between=0.3, whole=whole))
    assert time.monotonic() - started < 10


def test_a_trickle_that_never_ends_has_an_end(server: Server, make: Make) -> None:
    def trickle(handler: Handler, body: Any) -> None:
        handler.begin(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
        while not handler.left_within(0.05):
            handler.send(b"3\r\n:\n\n\r\n")

    server.plan = [trickle]
    with pytest.raises(Unavailable, match="took too long"):
        stream(make(whole=0.5))
    assert server.hung_up.wait(10)


def test_an_answer_without_an_end_is_left(server: Server, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "LARGEST_ANSWER", 5000)
    server.plan = ["long " * 3000] * 2
    for ask in (chat, stream):
        with pytest.raises(Unavailable, match=r"without an end|broke off"):
            ask(make())


def test_what_breaks_off_is_not_begun_again(server: Server, make: Make, spoken: str) -> None:
    for cut in (True, False):  # a connection that drops, and a stream that ends too early
        server.asked.clear()
        server.plan = [raw(_BEGUN[spoken], cut=cut)]
        got: list[Any] = []

        async def read(got: list[Any] = got) -> None:
            async with aclosing(make().stream(HELLO)) as pieces:  # type: ignore[type-var]
                while True:
                    got.append(await anext(pieces))

        with pytest.raises(Unavailable, match="broke off in the middle of an answer"):
            asyncio.run(read())
        assert got == ["half"]
        assert len(server.asked) == 1


def test_what_breaks_off_before_its_first_piece_is_asked_again(
    server: Server, make: Make, spoken: str, quick: None
) -> None:
    server.plan = [raw(": nothing yet\n\n", cut=True), raw(": nothing\n\n"), "whole"]
    assert stream(make())[-1].text == "whole"


def test_an_error_inside_a_stream(server: Server, make: Make, spoken: str, quick: None) -> None:
    busy = event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "error")
    server.plan = [raw(busy), "whole"]
    assert stream(make())[-1].text == "whole"
    server.plan = [raw(_BEGUN[spoken] + busy)]
    with pytest.raises(Unavailable, match=r"broke off.*529 \(overloaded_error: Overloaded\)"):
        stream(make())
    server.plan = [raw(event({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}))]
    with pytest.raises(InvalidInput, match="answered 400"):
        stream(make())
    # Of status 200, and no stream at all.
    server.plan = [lambda handler, _: handler.say(200, {"error": {"code": 401, "message": "who?"}})] * 2
    for ask in (chat, stream):
        with pytest.raises(InvalidInput, match="check chat_key"):
            ask(make())


@pytest.mark.parametrize(
    "answer", [b"", b"<html>a proxy's page</html>", b"\xff\xfe", b"[1]", b"{}", b"null", b"[" * 9999]
)
def test_what_is_no_answer_is_told(server: Server, make: Make, quick: None, answer: bytes) -> None:
    server.plan = [lambda handler, _: handler.say(200, answer)] * 9
    for ask in (chat, stream):
        with pytest.raises(ThreefoldError, match=server.url):
            ask(make())


_NAMES = (
    "choices delta message content tool_calls function arguments index error type usage finish_reason stop_reason "
    "content_block text name id input refusal"
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 600) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(_NAMES.split()),
            inner | st.sampled_from(["text", "tool_use", "content_block_start", "text_delta", "message_stop", "{}"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=4))
@settings(max_examples=200)
def test_any_json_is_an_answer_or_one_of_our_errors(answers: list[Any]) -> None:
    for model in (OpenAIModel("http://h/v1", "words"), AnthropicModel("words", "key", "http://h/v1")):
        for whole in (True, False):
            try:
                reader = model._reader()
                for answer in answers:
                    if whole:
                        assert isinstance(model._read(answer, {}), Reply)
                    else:
                        assert all(isinstance(piece, str) for piece in reader.take(_sent(answer)))
                assert isinstance(reader.reply(), Reply)
            except (wire.Failed, wire.Rejected):
                pass


def _sent(answer: Any) -> Any:
    return wire.Event("message", json.dumps(answer))


@pytest.mark.parametrize(
    ("status", "key", "mend"),
    [
        (400, KEY, "answered 400"),
        (401, None, "give chat_key"),
        (401, KEY, "check chat_key"),
        (403, KEY, "check chat_key"),
        (404, KEY, "the server has the model"),
        (405, KEY, "answered 405"),
        (422, KEY, "answered 422"),
        (501, KEY, "answered 501"),
        (204, KEY, "answered 204"),
    ],
)
def test_refusals_name_the_mend_and_never_the_key(
    server: Server, make: Make, status: int, key: str | None, mend: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    said = "x" * 290 + f" bad key {KEY} for model words" if key else "who are you"
    for ask in (chat, stream):
        server.plan = [error(status, said)]
        model = make(key)
        with pytest.raises(ThreefoldError, match=mend) as caught:
            ask(model)
        told = "".join(traceback.format_exception(caught.value)) + f"{caught.value!r} {model!r} {model._wire!r}"
        assert KEY not in told + caplog.text
        assert KEY[:10] not in told + caplog.text  # nor a part, cut at the end of a line
        given = server.asked[-1]
        assert key is None or str(given["key"]).endswith(key)
        assert given["version"] == ("2023-06-01" if isinstance(model, AnthropicModel) else None)


def test_a_moved_server_does_not_get_the_key_elsewhere(server: Server, make: Make) -> None:
    with serving() as other:
        for ask in (chat, stream):
            server.plan = [error(307, Location=f"{other.url}/chat/completions?token=1")]
            with pytest.raises(InvalidInput, match=rf"has moved to {other.url}/chat/completions; give that address"):
                ask(make())
        assert not other.asked


def test_a_proxy_of_the_environment_is_not_asked(server: Server, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert chat(make()).text == "You said: hello"


def test_counts_of_tokens(server: Server, make: Make) -> None:
    server.plan = [Reply("x", usage=Usage(5, 3))] * 4
    assert chat(make()).usage == Usage(5, 3)
    assert stream(make())[-1].usage == Usage(5, 3)


@pytest.mark.parametrize("name", ["connect", "between", "whole", "attempts"])
def test_patience_is_positive(name: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        Patience(**{name: 0})

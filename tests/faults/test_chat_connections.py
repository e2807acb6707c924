"""Connections to a server of chat models: given up when nobody waits, kept while somebody does, left by none.

The server says what it saw.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from chat_server import Handler, Server, anthropic_answer, openai_answer, serving, sleep

import threefold
from threefold.model.chat import Message, Reply
from threefold.models import wire
from threefold.models.anthropic import AnthropicModel
from threefold.models.openai import OpenAIModel
from threefold.models.talking import HttpModel

HELLO = [Message("user", "hello")]
OPEN_FILES = Path("/proc/self/fd")
Make = Callable[[], HttpModel]


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
    if spoken == "openai":
        return lambda: OpenAIModel(server.url, "words", "key")
    return lambda: AnthropicModel("words", "key", server.url)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits are counted, not waited for."""
    monkeypatch.setattr(wire.random, "uniform", lambda low, high: 0.01)


def test_a_task_that_is_cancelled_gives_its_connection_up(server: Server, make: Make) -> None:
    """The server sees it: what nobody waits for is not computed on."""

    async def cancel(work: Any) -> None:
        task = asyncio.ensure_future(work)
        await asyncio.to_thread(server.answering.wait, 10)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.hung_up.wait, 10)

    async def read(model: HttpModel) -> None:
        async for _ in model.stream(HELLO):
            pass

    async def both() -> None:
        model = make()
        for work in (model.chat, None):
            server.hung_up.clear()
            server.answering.clear()
            if work is not None:
                server.plan = [sleep]
                await cancel(work(HELLO))
            else:
                server.plan, server.bite, server.pause = ["a long tale " * 50], 200, 0.05
                await cancel(read(model))
        await model.close()

    asyncio.run(both())


def test_a_stream_that_is_left_gives_its_connection_up(server: Server, make: Make) -> None:
    server.plan, server.bite, server.pause = ["a long tale " * 50], 200, 0.05

    async def leave() -> None:
        async with aclosing(make().stream(HELLO)) as pieces:
            async for _ in pieces:
                break
        assert await asyncio.to_thread(server.hung_up.wait, 10)

    asyncio.run(leave())


def test_one_connection_serves_many_questions(server: Server, make: Make) -> None:
    async def ask() -> None:
        model = make()
        for _ in range(5):
            await model.chat(HELLO)
            assert [piece async for piece in model.stream(HELLO)]
        await model.close()

    asyncio.run(ask())
    assert server.connections == 1


def test_a_kept_connection_that_the_server_closed_is_no_failure(server: Server, make: Make, quick: None) -> None:
    def bye(handler: Handler, body: Any) -> None:
        speak = anthropic_answer if isinstance(model, AnthropicModel) else openai_answer
        handler.say(200, speak(Reply("first"), body, server))
        handler.close_connection = True  # without a word of it

    async def ask() -> list[str]:
        said = [(await model.chat(HELLO)).text for _ in range(2)]
        await model.close()
        return said

    model, server.plan = make(), [bye, "second"]
    assert asyncio.run(ask()) == ["first", "second"]
    assert server.connections == 2


def _sockets() -> int:
    return sum("socket" in _target(each) for each in OPEN_FILES.iterdir())


def _target(entry: Path) -> str:
    try:
        return str(entry.readlink())
    except OSError:
        return ""


@pytest.mark.skipif(not OPEN_FILES.is_dir(), reason="counts sockets where Linux lists them")
def test_fifty_stores_leave_no_thread_and_no_socket(server: Server, spoken: str) -> None:
    address = server.url + ("/messages" if spoken == "anthropic" else "")

    def once(how: int) -> None:
        db = threefold.open(
            ":memory:", embedder=None, background=False, chat=address, chat_model="words", chat_key="key"
        )
        assert db.chat is not None
        model = db.chat

        async def ask() -> None:
            assert (await model.chat(HELLO)).text == "You said: hello"
            if how % 3 == 1:
                db.close()  # in the loop that the connections belong to
                await asyncio.sleep(0)

        asyncio.run(ask())
        if how % 3 != 2:  # the third is forgotten
            db.close()

    once(0)
    gc.collect()
    threads, sockets = threading.active_count(), _sockets()
    for how in range(50):
        once(how)
    gc.collect()
    deadline = time.monotonic() + 10
    # The server's own side takes a moment to see that its clients are gone.
    while (server.open or threading.active_count() > threads) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert server.open == 0
    assert (threading.active_count(), _sockets()) <= (threads, sockets)


def test_one_model_in_several_loops_at_once(server: Server, make: Make) -> None:
    model, said = make(), []

    def work() -> None:
        said.extend(asyncio.run(model.chat(HELLO)).text for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == ["You said: hello"] * 20
    assert not model._wire._clients._held


def test_closing_from_another_loop_waits_for_nothing(server: Server, make: Make) -> None:
    model, ready, end = make(), threading.Event(), threading.Event()

    async def stay() -> None:
        await model.chat(HELLO)
        ready.set()
        while not end.is_set():
            await asyncio.sleep(0.01)

    thread = threading.Thread(target=asyncio.run, args=(stay(),))
    thread.start()
    assert ready.wait(10)
    model.drop()
    deadline = time.monotonic() + 10
    while server.open and time.monotonic() < deadline:
        time.sleep(0.01)
    assert server.open == 0
    end.set()
    thread.join()

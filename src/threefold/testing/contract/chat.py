"""The contract of a chat model as tests that anybody can run over their own.

In a test module of yours::

    from threefold.testing.contract.chat import ChatModelContract

    class TestMine(ChatModelContract):
        @pytest.fixture
        def scripted(self):
            return lambda *replies: MyModel(...)     # one whose service will give these replies, one after the other

How a service is made to answer so is up to you: a server on this machine that speaks its wire, at best.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from typing import Any

import pytest

from threefold.errors import InvalidInput, Unavailable
from threefold.model.chat import Call, Message, Reply, Tool, Usage
from threefold.ports import ChatModel

Scripted = Callable[..., ChatModel]
ASKED = (Message("system", "You are brief."), Message("user", "Where is the ferry?"))
TOOLS = (Tool("find", "Finds a place.", {"type": "object", "properties": {"name": {"type": "string"}}}),)
TEXT = "Na rzece: 渡し船 ⛴️, at 19:40.\n\nWould you go?  "
SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
# A reply is waited for no longer, whatever is broken.
LONGEST = 30.0


class ChatModelContract:
    """`ChatModel`."""

    @pytest.fixture
    def scripted(self) -> Scripted:
        """Makes a model that gives the replies that it is called with; override it."""
        raise NotImplementedError

    def test_an_answer_is_whole(self, scripted: Scripted) -> None:
        """Its text is exactly what was said, and it has a name."""
        model = scripted(Reply(TEXT, usage=Usage(12, 7)))
        reply = run(model, lambda: model.chat(ASKED))
        assert (reply.text, reply.finish, reply.calls, reply.data) == (TEXT, "stop", (), None)
        assert reply.usage == Usage(12, 7)
        assert model.name

    def test_a_stream_gives_pieces_and_then_the_answer(self, scripted: Scripted) -> None:
        """The pieces are the text, in more than one; the last is the whole answer."""
        *pieces, reply = streamed(scripted(Reply(TEXT, usage=Usage(12, 7))))
        assert "".join(pieces) == TEXT
        assert len(pieces) > 2
        assert all(isinstance(piece, str) and piece for piece in pieces)
        assert reply == Reply(TEXT, usage=Usage(12, 7))

    @pytest.mark.parametrize("how", ["chat", "stream"])
    def test_tools_are_called(self, scripted: Scripted, how: str) -> None:
        """Two calls, with arguments of every kind, and text before them."""
        calls = (
            Call("call_1", "find", {"name": "Łódź “quoted” {}", "deep": [{"a": None}]}),
            Call("call_2", "find", {}),
        )
        model = scripted(Reply("I look.", calls, "tools"))
        reply = run(model, lambda: model.chat(ASKED, TOOLS)) if how == "chat" else streamed(model, TOOLS)[-1]
        assert (reply.text, reply.calls, reply.finish) == ("I look.", calls, "tools")

    def test_results_of_tools_are_told(self, scripted: Scripted) -> None:
        """A conversation with calls and results in it goes on, also without tools."""
        call = Call("call_1", "find", {"name": "ferry"})
        told = [*ASKED, Message("assistant", "", (call,)), Message("tool", "at the pier", call="call_1")]
        for tools in (TOOLS, ()):
            model = scripted("At the pier.")
            assert run(model, partial(model.chat, told, tools)).text == "At the pier."

    def test_json_is_checked_and_asked_for_again(self, scripted: Scripted) -> None:
        """What does not fit costs another answer, and what never fits is no answer."""
        model = scripted('{"place": "pier"}')
        assert run(model, lambda: model.chat(ASKED, schema=SCHEMA)).data == {"place": "pier"}
        mended = scripted('{"plaice": "fish"}', '{"place": "pier"}')
        assert run(mended, lambda: mended.chat(ASKED, schema=SCHEMA)).data == {"place": "pier"}
        broken = scripted('{"plaice": "fish"}', '{"place": 3}')
        with pytest.raises(Unavailable, match="place"):
            run(broken, lambda: broken.chat(ASKED, schema=SCHEMA))

    def test_a_malformed_schema_is_refused(self, scripted: Scripted) -> None:
        """Before anything is asked."""
        model = scripted()
        for schema in ({}, {"type": "array"}, {"type": "object", "properties": 3}):
            with pytest.raises(InvalidInput, match="schema"):
                run(model, partial(model.chat, ASKED, schema=schema))

    @pytest.mark.parametrize("finish", ["length", "refused"])
    def test_how_it_ended_is_told(self, scripted: Scripted, finish: Any) -> None:
        """An answer that was cut, or not given, is no error: it says so."""
        model = scripted(Reply("The ferry is", finish=finish), Reply("The ferry is", finish=finish))
        assert run(model, lambda: model.chat(ASKED, max_tokens=3)).finish == finish
        assert streamed(model)[-1].finish == finish

    def test_it_may_be_used_in_one_event_loop_after_another(self, scripted: Scripted) -> None:
        """As by programs that call `asyncio.run` more than once."""
        model = scripted("one", "two", "three")
        said = [asyncio.run(asyncio.wait_for(model.chat(ASKED), LONGEST)).text for _ in range(3)]
        assert said == ["one", "two", "three"]

    def test_many_may_ask_at_once(self, scripted: Scripted) -> None:
        """Each gets an answer of its own."""
        model = scripted(*map(str, range(20)))

        async def all_at_once() -> list[Reply]:
            return await asyncio.gather(*(model.chat(ASKED) for _ in range(20)))

        assert sorted(int(reply.text) for reply in run(model, all_at_once)) == list(range(20))

    def test_a_stream_may_be_left(self, scripted: Scripted) -> None:
        """Leaving it in the middle harms nothing that comes after."""
        model = scripted(TEXT * 50, "after")

        async def leave() -> str:
            async with aclosing(model.stream(ASKED)) as pieces:  # type: ignore[type-var]
                async for _ in pieces:
                    break
            return (await model.chat(ASKED)).text

        assert run(model, leave) == "after"

    def test_closing_twice_is_fine(self, scripted: Scripted) -> None:
        """Also where nothing was asked."""
        model = scripted("one")

        async def close() -> None:
            await model.close()
            await model.chat(ASKED)
            await model.close()
            await model.close()

        asyncio.run(close())


def run(model: ChatModel, make: Callable[[], Any]) -> Any:
    """The result of what `make` begins, and the model closed after it."""

    async def work() -> Any:
        try:
            return await asyncio.wait_for(make(), LONGEST)
        finally:
            await model.close()

    return asyncio.run(work())


def streamed(model: ChatModel, tools: tuple[Tool, ...] = ()) -> list[Any]:
    """All that a stream gives."""

    async def read() -> list[Any]:
        return [piece async for piece in model.stream(ASKED, tools)]

    found: list[Any] = run(model, read)
    return found

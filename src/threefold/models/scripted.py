"""A chat model that says what it was told to say: for tests and demonstrations, with no key and no network."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from threefold.errors import Unavailable
from threefold.model.chat import Message, Reply, Tool
from threefold.models.checking import checker, fitting

Scripted = str | Reply | Exception | Callable[[Sequence[Message]], str | Reply]
"""A text, a whole reply, an error to raise, or a function that makes one of the messages."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the model was given."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    schema: Mapping[str, Any] | None = None
    max_tokens: int | None = None


class ScriptedModel:
    """Gives `replies` one after the other; a single function answers everything.

    Attributes:
        asked: what it was given, each time.
    """

    def __init__(
        self,
        replies: Iterable[Scripted] | Callable[[Sequence[Message]], str | Reply],
        name: str = "scripted",
        delay: float = 0.0,
    ) -> None:
        """`delay` is how many seconds it takes before each answer, and in a stream before each word.

        A reply that is no JSON fitting the schema that was asked for costs another one, as with a real model.
        """
        self.name, self.asked = name, list[Asked]()
        self._replies: Iterator[Scripted] = repeat(replies) if callable(replies) else iter(replies)
        self._delay = delay

    def __repr__(self) -> str:
        return f"ScriptedModel({self.name!r})"

    async def chat(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Reply:
        """The next reply.

        Raises:
            Unavailable: there are no more. Otherwise what the script says.
        """

        async def ask(messages: Sequence[Message]) -> Reply:
            self.asked.append(Asked(tuple(messages), tuple(tools), schema, max_tokens))
            await asyncio.sleep(self._delay)
            return self._next(messages)

        if schema is None:
            return await ask(messages)
        checker(schema)
        return await fitting(ask, self.name, messages, schema)

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), max_tokens: int | None = None
    ) -> AsyncIterator[str | Reply]:
        """The next reply, word by word, and then whole."""
        self.asked.append(Asked(tuple(messages), tuple(tools), None, max_tokens))
        reply = self._next(messages)
        for word in re.findall(r"\s*\S+|\s+$", reply.text):
            await asyncio.sleep(self._delay)
            yield word
        await asyncio.sleep(0)
        yield reply

    async def close(self) -> None:
        """Nothing to release."""

    def _next(self, messages: Sequence[Message]) -> Reply:
        reply = next(self._replies, None)
        if reply is None:
            raise Unavailable(f"model {self.name!r} has nothing more to say: give it another reply")
        if isinstance(reply, Exception):
            raise reply
        said = reply(messages) if callable(reply) else reply
        if isinstance(said, Reply):
            return said
        return Reply(said)

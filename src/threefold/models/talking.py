"""What every model behind HTTP does alike: ask, learn what the server does not know, check JSON, stream."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any, Final, final

from threefold.errors import InvalidInput
from threefold.model.chat import Message, Reply, Tool
from threefold.models.address import checked_key, checked_model
from threefold.models.checking import checker, fitting
from threefold.models.failures import Rejected
from threefold.models.wire import Patience, Reader, Wire

# Of a server that knows nothing of what is optional, each is learned once.
_MOST_LESSONS: Final = 5
# To see whether a server is there, one does not wait for long.
_LOOK: Final = Patience(connect=5.0, between=10.0, whole=10.0, attempts=1)

log = logging.getLogger("threefold")


class HttpModel:
    """A chat model behind an address. A subclass says how messages and answers look on its wire.

    Attributes:
        name: the model as the server calls it.
    """

    path: str
    """Where it is talked to, below the address."""

    def __init__(self, base: str, model: str, key: str | None, patience: Patience | None) -> None:
        self.name = checked_model(model)
        key = checked_key(key)
        self._wire = Wire(base, key, self._headers(key), patience or Patience())

    @property
    def place(self) -> str:
        """The address that is asked, without secrets."""
        return self._wire.base

    @final
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.place!r}, {self.name!r})"

    async def chat(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Reply:
        """See `threefold.ports.ChatModel`."""
        _check(messages, max_tokens)
        ask = partial(self._asked, tools=tools, schema=schema, max_tokens=max_tokens)
        if schema is None:
            return await ask(messages)
        checker(schema)  # a malformed one is told before anything is asked
        return await fitting(ask, self.name, messages, schema)

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), max_tokens: int | None = None
    ) -> AsyncIterator[str | Reply]:
        """See `threefold.ports.ChatModel`."""
        _check(messages, max_tokens)
        for lesson in range(_MOST_LESSONS + 1):
            body = {**self._body(_merged(messages), tools, None, max_tokens), **self._streamed()}
            given = False
            try:
                async with aclosing(self._wire.stream(self.path, body, self._reader)) as pieces:
                    async for piece in pieces:
                        given = True
                        yield piece
                return
            except Rejected as error:
                self._learn(error, body, lesson if not given else _MOST_LESSONS)

    async def models(self) -> tuple[str, ...] | None:
        """The models that the server says it has, None where it does not say: a look that costs nothing.

        Raises:
            Unavailable, InvalidInput: it cannot be reached, or refuses the key.
        """
        try:
            return await self._wire.ask("/models", None, _listed, _LOOK)
        except Rejected as error:
            if error.status in {400, 404, 405}:
                return None
            raise self._wire.refused(error) from None

    async def close(self) -> None:
        """Release connections; safe to call twice. A model that is asked again opens new ones."""
        await self._wire.close()

    def drop(self) -> None:
        """Release connections from code that cannot wait: each event loop closes its own."""
        self._wire.drop()

    async def _asked(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        schema: Mapping[str, Any] | None,
        max_tokens: int | None,
    ) -> Reply:
        for lesson in range(_MOST_LESSONS + 1):
            body = self._body(_merged(messages), tools, schema, max_tokens)
            try:
                return await self._wire.ask(self.path, body, partial(self._read, body=body))
            except Rejected as error:
                self._learn(error, body, lesson)
        raise AssertionError("the last lesson ends in an error")

    def _learn(self, error: Rejected, body: Mapping[str, Any], lesson: int) -> None:
        """Go on where the server does not know a part of the request that can be left out.

        Raises:
            InvalidInput: it refuses something else.
        """
        learned = None if error.status in {401, 402, 403, 413} else self._learned(error.said, body)
        if learned is None or lesson == _MOST_LESSONS:
            raise self._wire.refused(error) from None
        log.info("%s: %s", self.place, learned)

    def _headers(self, key: str | None) -> Mapping[str, str]:
        raise NotImplementedError

    def _body(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        schema: Mapping[str, Any] | None,
        max_tokens: int | None,
    ) -> dict[str, Any]:
        raise NotImplementedError

    def _streamed(self) -> Mapping[str, Any]:
        return {"stream": True}

    def _read(self, answer: Any, body: Mapping[str, Any]) -> Reply:
        raise NotImplementedError

    def _reader(self) -> Reader:
        raise NotImplementedError

    def _learned(self, said: str, body: Mapping[str, Any]) -> str | None:  # noqa: ARG002 - for those that learn
        """What was learned from a rejection of `body`, in a sentence, where asking otherwise may help."""
        return None


def _check(messages: Sequence[Message], max_tokens: int | None) -> None:
    if all(message.role == "system" for message in messages):
        raise InvalidInput("messages must hold one that is not of the role 'system'")
    if max_tokens is not None and max_tokens < 1:
        raise InvalidInput(f"max_tokens {max_tokens!r} must be positive, or None for the model's own")


def _merged(messages: Sequence[Message]) -> list[Message]:
    """Neighbours of one role as one message, a blank line between: templates of some models refuse any others.

    Results of tools stay apart, each being that of a call.
    """
    found: list[Message] = []
    for message in messages:
        before = found[-1] if found else None
        if before is None or before.role != message.role or message.role == "tool" or before.calls:
            found.append(message)
        else:
            texts = (text for text in (before.text, message.text) if text.strip())
            found[-1] = replace(message, text="\n\n".join(texts))
    return found


def _listed(answer: Any) -> tuple[str, ...] | None:
    found = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(found, list):
        return None
    return tuple(str(each["id"]) for each in found if isinstance(each, dict) and "id" in each)

"""One server of models, spoken to over HTTP: patience, tries again, streams, errors that name the mend, never the key.

It follows no redirects and asks no proxy, which keeps the key where it was meant to go, and reads nothing from the
environment but where certificates are (`SSL_CERT_FILE`, as all of Python's TLS does).
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, TypeVar

from threefold.errors import InvalidInput, Unavailable
from threefold.model.chat import Reply
from threefold.model.clean import storable
from threefold.models.clients import Clients, mapped
from threefold.models.failures import Failed, Rejected, failure, message_of, shortened
from threefold.models.reading import json_of
from threefold.models.sse import Event, EventParser

if TYPE_CHECKING:
    import httpx2

# An answer of a model is some hundred kilobytes at most, in events some ten times that.
LARGEST_ANSWER: Final = 64 * 2**20
# What of an error's page is read.
_LARGEST_ERROR: Final = 64 * 2**10
# The longest wait that a server may ask for and get; both makers' own clients take 60 s.
LONGEST_WAIT: Final = 60.0
# So long a stream that is complete may take to end; what comes late costs a connection, nothing else.
_ENDING: Final = 0.5
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a server is waited for, in seconds, and how often it is asked.

    `connect`, `whole` (an answer with all its tries) and `attempts` are what OpenAI's and Anthropic's own clients take:
    5 s, 10 minutes, and two tries more. `between` is the longest silence in a stream: a local model that reads a long
    prompt on a CPU says nothing for a minute.
    """

    connect: float = 5.0
    between: float = 120.0
    whole: float = 600.0
    attempts: int = 3

    def __post_init__(self) -> None:
        for name in ("connect", "between", "whole", "attempts"):
            if not getattr(self, name) > 0:
                raise InvalidInput(f"patience: {name} {getattr(self, name)!r} must be positive")


class Reader(Protocol):
    """Makes an answer out of the events of one stream."""

    done: bool

    def take(self, event: Event) -> Iterable[str]:
        """The text that an event brings. Raises `Failed` or `Rejected` where it is an error."""
        ...

    def reply(self) -> Reply:
        """The answer whole. Raises `Failed` where it is not."""
        ...


@dataclass(slots=True)
class _Deadline:
    at: float


@dataclass
class Wire:
    """Posts JSON below the address `base`, with `headers`, in which `key` may stand; from any number of event loops."""

    base: str
    key: str | None
    headers: Mapping[str, str] = field(repr=False)
    patience: Patience = Patience()

    def __post_init__(self) -> None:
        self._clients = Clients(self.base, self.patience.connect)

    def __repr__(self) -> str:
        return f"Wire({self.base!r})"

    async def ask(
        self,
        path: str,
        body: Mapping[str, Any] | None,
        reading: Callable[[Any], _Read],
        patience: Patience | None = None,
    ) -> _Read:
        """What `reading` makes of the JSON that answers a post of `body`, or a get where there is none.

        Raises:
            Rejected: for good. Unavailable: it cannot be reached, is busy, or takes too long.
        """
        patience = patience or self.patience
        end = asyncio.get_running_loop().time() + patience.whole
        for attempt in range(1, patience.attempts + 1):
            try:
                async with self._answer(path, body, patience.whole, _Deadline(end)) as response:
                    return reading(json_of(await self._read(response, LARGEST_ANSWER, _Deadline(end)), "an answer"))
            except Failed as failed:
                await self._before_next(failed, attempt, patience, end)
        raise AssertionError("the last try ends in one of both")

    async def stream(
        self, path: str, body: Mapping[str, Any], reading: Callable[[], Reader]
    ) -> AsyncGenerator[str | Reply, None]:
        """The pieces of text and the answer whole, as a new `reading` makes them of the events.

        Raises:
            as `ask`. What fails before a piece was given is tried again, never what fails after it.
        """
        deadline = _Deadline(asyncio.get_running_loop().time() + self.patience.whole)
        for attempt in range(1, self.patience.attempts + 1):
            reader, given = reading(), False
            try:
                async with aclosing(self._events(path, body, deadline)) as events:
                    async for event in events:
                        for piece in reader.take(event):
                            given = True
                            yield piece
                        if reader.done:
                            break
                    reply = reader.reply()
                    given = True
                    yield reply
                    await self._end(events, deadline)
                return
            except Failed as failed:
                if given:
                    self._unavailable(f"broke off in the middle of an answer: it {failed.why}")
                await self._before_next(failed, attempt, self.patience, deadline.at)

    async def close(self) -> None:
        """Close the connections; those that other event loops hold are closed there, and not waited for."""
        await self._clients.close()

    def drop(self) -> None:
        """As `close`, from code that cannot wait."""
        self._clients.drop()

    def refused(self, error: Rejected) -> InvalidInput:
        """What a caller is told of a rejection: where, what, and the mend."""
        if 300 <= error.status < 400:
            return InvalidInput(f"{self.base} has moved{self._hidden(error.said)}; give that address")
        mend = ""
        if error.status in {401, 403}:
            mend = "give chat_key (THREEFOLD_CHAT_KEY)" if self.key is None else "check chat_key"
        elif error.status == 404:
            mend = "check the address, and that the server has the model"
        said = self._hidden(error.said)
        told = f"{self.base} answered {error.status}" + (f" ({said})" if said else "")
        return InvalidInput(f"{told}; {mend}" if mend else told)

    async def _events(self, path: str, body: Mapping[str, Any], deadline: _Deadline) -> AsyncGenerator[Event, None]:
        """The events of one try; an answer that is no stream is one event."""
        async with self._answer(path, body, self.patience.between, deadline) as response:
            if "json" in response.headers.get("Content-Type", ""):
                yield Event(
                    "message", (await self._read(response, LARGEST_ANSWER, deadline)).decode("utf-8", "replace")
                )
                return
            parser, size = EventParser(), 0
            async with aclosing(response.aiter_bytes()) as chunks:
                while (chunk := await _before(deadline, chunks)) is not None:
                    size += len(chunk)
                    if size > LARGEST_ANSWER:
                        raise Failed("sent an answer without an end", again=False)
                    for event in parser.feed(chunk):
                        yield event

    async def _end(self, events: AsyncIterator[Event], deadline: _Deadline) -> None:
        """Read a stream to its end where it is near, so that the connection can be used again."""
        deadline.at = min(deadline.at, asyncio.get_running_loop().time() + _ENDING)
        try:
            async for _ in events:
                pass
        except Failed:
            pass

    @asynccontextmanager
    async def _answer(
        self, path: str, body: Mapping[str, Any] | None, silence: float, deadline: _Deadline
    ) -> AsyncIterator[httpx2.Response]:
        """The response where it is 200, with its body to be read.

        Raises:
            Failed, Rejected: as the status or the connection says. InvalidInput: the certificate is not trusted.
        """
        client = await self._clients.of_this_loop()
        data = None if body is None else storable(json.dumps(body, ensure_ascii=False)).encode()
        headers = {**self.headers, "Content-Type": "application/json"}
        with mapped(self.base):
            request = client.build_request(
                "GET" if data is None else "POST", self.base + path, content=data, headers=headers,
                timeout=self._clients.timeout(silence),
            )  # fmt: skip
            try:
                async with asyncio.timeout_at(deadline.at):
                    response = await client.send(request, stream=True)
            except TimeoutError:
                raise Failed("took too long", again=False) from None
            async with aclosing(response):
                if response.status_code != 200:
                    raise await self._failure(response, deadline)
                yield response

    async def _failure(self, response: httpx2.Response, deadline: _Deadline) -> Failed | Rejected:
        headers = response.headers
        if 300 <= response.status_code < 400:
            # Without what stands after `?`, which may be anything.
            target = headers.get("Location", "").partition("?")[0]
            return Rejected(response.status_code, f" to {target}" if target else "")
        text = (await self._read(response, _LARGEST_ERROR, deadline, cut=True)).decode("utf-8", "replace")
        try:
            said = message_of(json.loads(text))
        except (ValueError, RecursionError):
            said = message_of(text)
        return failure(response.status_code, said, headers.get("Retry-After"))

    async def _read(self, response: httpx2.Response, largest: int, deadline: _Deadline, cut: bool = False) -> bytes:
        read, size = [], 0
        async with aclosing(response.aiter_bytes()) as chunks:
            while (chunk := await _before(deadline, chunks)) is not None:
                read.append(chunk)
                size += len(chunk)
                if size > largest and cut:
                    break
                if size > largest:
                    raise Failed("sent an answer without an end", again=False)
        return b"".join(read)

    async def _before_next(self, failed: Failed, attempt: int, patience: Patience, end: float) -> None:
        """Wait before the next try, where there is one."""
        if failed.again and attempt < patience.attempts:
            # Anywhere below a bound that doubles, so that many clients do not come back at the same moment.
            wait = random.uniform(0.0, min(8.0, 0.5 * 2**attempt)) if failed.after is None else failed.after  # noqa: S311
            if wait <= LONGEST_WAIT and asyncio.get_running_loop().time() + wait < end:
                await asyncio.sleep(wait)
                return
        later = f" and wants to be asked again in {failed.after:.0f} s" if failed.after else ""
        mend = "; see that the server runs and can be reached, and try again" if failed.again else ""
        self._unavailable(failed.why, later + mend)

    def _unavailable(self, why: str, mend: str = "") -> NoReturn:
        raise Unavailable(f"{self.base} {self._hidden(why)}{mend}") from None

    def _hidden(self, text: str) -> str:
        return shortened(text if self.key is None else text.replace(self.key, "…"))


async def _before(deadline: _Deadline, chunks: AsyncIterator[bytes]) -> bytes | None:
    try:
        async with asyncio.timeout_at(deadline.at):
            return await anext(chunks, None)
    except TimeoutError:
        raise Failed("took too long", again=False) from None

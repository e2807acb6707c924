"""One HTTP client for each event loop: connections belong to the loop in which they were made.

Users call `asyncio.run` several times, and a summary is made in a loop of its own. A client lives in an asynchronous
generator of its loop, which `asyncio.run` closes at its end: no connection outlives the loop, and nobody has to ask.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Final

from threefold.errors import InvalidInput, Unavailable
from threefold.models.failures import Failed

if TYPE_CHECKING:
    import httpx2

_CLOSING: Final[set[asyncio.Future[None]]] = set()
"""Closings at work: a loop holds its tasks but weakly."""


class Clients:
    """Clients for one address, made where they are needed."""

    def __init__(self, base: str, connect: float) -> None:
        self._secure, self._connect = base.startswith("https:"), connect
        self._lock = threading.Lock()
        self._held: dict[asyncio.AbstractEventLoop, AsyncGenerator[httpx2.AsyncClient, None]] = {}
        self._client: dict[asyncio.AbstractEventLoop, httpx2.AsyncClient] = {}

    async def of_this_loop(self) -> httpx2.AsyncClient:
        """The client of the running loop.

        Raises:
            Unavailable: the library is not installed.
        """
        loop = asyncio.get_running_loop()
        with self._lock:
            found = self._client.get(loop)
        if found is not None:
            return found
        holder = self._holding(loop)
        client = await anext(holder)  # never waits, so no other task of this loop comes between
        with self._lock:
            for ended in [each for each in self._held if each.is_closed()]:
                self._held.pop(ended)
                self._client.pop(ended, None)
            self._held[loop], self._client[loop] = holder, client
        return client

    async def close(self) -> None:
        """Close this loop's client, and let other loops close theirs."""
        with self._lock:
            holder = self._held.pop(asyncio.get_running_loop(), None)
            self._client.pop(asyncio.get_running_loop(), None)
        if holder is not None:
            await holder.aclose()
        self.drop()

    def drop(self) -> None:
        """Let every loop close its client as soon as it can; never waits."""
        with self._lock:
            held, self._held, self._client = self._held, {}, {}
        for loop, holder in held.items():
            with suppress(RuntimeError):  # the loop has ended, and closed it
                loop.call_soon_threadsafe(_close, loop, holder)

    def timeout(self, silence: float) -> httpx2.Timeout:
        """How long is waited for the next bytes, and for a connection."""
        import httpx2

        return httpx2.Timeout(silence, connect=self._connect)

    async def _holding(self, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[httpx2.AsyncClient, None]:
        client = self._made()
        try:
            yield client
        finally:
            with self._lock:
                if self._client.get(loop) is client:
                    self._held.pop(loop, None)
                    self._client.pop(loop, None)
            await client.aclose()

    def _made(self) -> httpx2.AsyncClient:
        try:
            import httpx2
        except ImportError:
            raise Unavailable("chat models are not installed; pip install 'threefold[chat]'") from None
        return httpx2.AsyncClient(
            verify=self._context,
            trust_env=False,  # no proxy and no password out of a file that nobody named
            follow_redirects=False,
            headers={"User-Agent": "threefold", "Accept-Encoding": "identity"},
            limits=httpx2.Limits(max_connections=64, max_keepalive_connections=8),
        )

    @cached_property
    def _context(self) -> ssl.SSLContext:
        """Certificates take some time to load: once for all loops, and not where there is no TLS."""
        return ssl.create_default_context() if self._secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _close(loop: asyncio.AbstractEventLoop, holder: AsyncGenerator[httpx2.AsyncClient, None]) -> None:
    async def closing() -> None:
        await holder.aclose()

    task = loop.create_task(closing())
    _CLOSING.add(task)
    task.add_done_callback(_CLOSING.discard)


@contextmanager
def mapped(base: str) -> Iterator[None]:
    """The client's errors as ours."""
    import httpx2

    try:
        yield
    except httpx2.ReadTimeout:
        raise Failed("said nothing for too long", again=False) from None
    except (httpx2.TransportError, httpx2.StreamError) as error:
        _refuse_certificate(base, error)
        said = str(error) or "no answer"
        # Of the transport's errors these alone lie in what was asked, not on the way.
        again = not isinstance(error, httpx2.LocalProtocolError | httpx2.UnsupportedProtocol | httpx2.StreamError)
        raise Failed(f"cannot be reached ({type(error).__name__}: {said})", again) from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise Failed(f"cannot be understood ({type(error).__name__}: {error})", again=False) from None


def _refuse_certificate(base: str, error: BaseException) -> None:
    """Raises InvalidInput where a certificate was the reason."""
    import ssl

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise InvalidInput(
                f"{base} has a certificate that is not trusted ({cause.verify_message}); "
                "SSL_CERT_FILE names an authority of your own"
            ) from None
        cause = cause.__cause__ or cause.__context__

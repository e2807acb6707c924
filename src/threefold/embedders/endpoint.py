"""One address that answers JSON posts: kept connections, tries again, errors that name the mend and never the key.

The standard library's client is enough for one kind of request to one server: it keeps connections open and checks
certificates, and nothing is to be installed. It follows no redirects, which keeps the key where it was meant to go.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import ssl
import threading
import time
import weakref
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from threefold.errors import InvalidInput, ThreefoldError, Unavailable
from threefold.model.times import retry_after

LARGEST_ANSWER: Final = 256 * 2**20
PAUSE_SECONDS: Final = 10.0
LONGEST_PAUSE: Final = 300.0
_AGAIN: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_TOO_LARGE: Final = re.compile("token|length|context|too l|large|batch|maximum|exceed", re.IGNORECASE)


@dataclass(slots=True)
class Rejected(Exception):
    """The server refuses the content, not the caller; `too_large` where it says that there is too much of it.

    For whoever posts to handle; it is none of the errors that a caller meets.
    """

    why: str
    too_large: bool


@dataclass(slots=True)
class _Failed(Exception):
    """One try that failed in passing: why, and after how many seconds the server wants to be asked again."""

    why: str
    after: float | None = None


class Endpoint:
    """Posts JSON to `url`. May be used from several threads; each has a connection of its own meanwhile.

    After a failure other calls fail at once for some seconds, or for as long as the server said: a search must not
    wait for a server that is known to be down.
    """

    def __init__(self, url: str, key: str | None) -> None:
        self._secure, self._host, self._port, self._path = _address(url)
        self._key = _checked_key(key)
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()
        self._pid = os.getpid()
        weakref.finalize(self, _close, self._idle)
        self._paused: tuple[float, ThreefoldError] | None = None
        self._context = ssl.create_default_context() if self._secure else None

    @property
    def place(self) -> str:
        """The address without what stands after `?`, for people to read."""
        name = f"[{self._host}]" if ":" in self._host else self._host
        port = "" if self._port is None else f":{self._port}"
        return f"http{'s' if self._secure else ''}://{name}{port}{self._path.partition('?')[0]}"

    def post(self, body: dict[str, Any], seconds: float, attempts: int) -> Any:
        """The JSON that answers `body`; all `attempts` together take no longer than `seconds`, about.

        Raises:
            Rejected: the server refuses the content. InvalidInput: it refuses the key, the address or the model.
            Unavailable: it cannot be reached, or is busy.
        """
        self._fail_while_paused()
        try:
            answer = self._tried(json.dumps(body).encode(), time.monotonic() + seconds, attempts)
        except ThreefoldError as error:
            if self._paused is None:
                self._paused = (time.monotonic() + PAUSE_SECONDS, error)
            raise
        self._paused = None
        return answer

    def _fail_while_paused(self) -> None:
        paused = self._paused  # another thread may take it away
        if paused is None:
            return
        until, error = paused
        left = until - time.monotonic()
        if left > 0:
            raise type(error)(f"{error} (not asked again for {left:.0f} s)")
        self._paused = None

    def _tried(self, data: bytes, end: float, attempts: int) -> Any:
        for attempt in range(1, attempts + 1):
            try:
                return self._once(data, end)
            except _Failed as failed:
                last = failed
            # Doubling, at random below it, so that many processes do not come back at the same moment.
            wait = last.after if last.after is not None else 0.25 * 2**attempt * random.random()  # noqa: S311
            if attempt == attempts or time.monotonic() + wait >= end:
                break
            time.sleep(wait)
        error = Unavailable(f"{self.place} {self._hidden(last.why)}; see that the server runs and can be reached")
        if last.after is not None:
            self._paused = (time.monotonic() + min(max(last.after, PAUSE_SECONDS), LONGEST_PAUSE), error)
        raise error

    def _once(self, data: bytes, end: float) -> Any:
        for fresh in (False, True):
            connection, used = self._connection(fresh)
            try:
                status, headers, answer = self._exchange(connection, data, end)
            except ssl.SSLCertVerificationError as error:
                connection.close()
                raise InvalidInput(
                    f"{self.place} has a certificate that is not trusted ({error.verify_message}); "
                    "SSL_CERT_FILE names an authority of your own"
                ) from None
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if used and not isinstance(error, TimeoutError):
                    continue  # the server closed a connection that was kept; that is no failure
                said = str(error) or "no answer"
                raise _Failed(f"cannot be reached ({type(error).__name__}: {said})") from None
            self._keep(connection)
            return self._read(status, headers, answer)
        raise _Failed("closed the connection")

    def _exchange(
        self, connection: http.client.HTTPConnection, data: bytes, end: float
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        connection.timeout = max(0.05, end - time.monotonic())
        if connection.sock is not None:
            connection.sock.settimeout(connection.timeout)
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "threefold"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        connection.request("POST", self._path, data, headers)
        response = connection.getresponse()
        read, size = [], 0
        while chunk := response.read(1 << 16):
            read.append(chunk)
            size += len(chunk)
            if size > LARGEST_ANSWER:
                raise http.client.HTTPException("the answer has no end")
            if time.monotonic() > end:
                raise TimeoutError("the answer took too long")
        return response.status, response.headers, b"".join(read)

    def _connection(self, fresh: bool) -> tuple[http.client.HTTPConnection, bool]:
        """A connection, and whether it was used before."""
        with self._lock:
            if self._pid != os.getpid():  # a forked child must not share its parent's connections
                _close(self._idle)
                self._pid = os.getpid()
            if self._idle and not fresh:
                return self._idle.pop(), True
        if self._context is not None:
            return http.client.HTTPSConnection(self._host, self._port, context=self._context), False
        return http.client.HTTPConnection(self._host, self._port), False

    def _keep(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if connection.sock is not None and len(self._idle) < 8:
                self._idle.append(connection)
                return
        connection.close()

    def _read(self, status: int, headers: http.client.HTTPMessage, answer: bytes) -> Any:
        if status == 200:
            try:
                return json.loads(answer)
            except ValueError:
                raise Unavailable(f"{self.place} answered something that is not JSON; check the url") from None
        said = self._hidden(_message(answer))
        if status in _AGAIN:
            raise _Failed(f"answered {status}{said}", retry_after(headers.get("Retry-After")))
        if status in {401, 403}:
            mend = "give embedder_key (THREEFOLD_EMBEDDER_KEY)" if self._key is None else "check embedder_key"
            raise InvalidInput(f"{self.place} answered {status}, the key was not accepted{said}; {mend}")
        if status == 404:
            raise InvalidInput(f"{self.place} answered 404{said}; check the url, and that the server has the model")
        if 300 <= status < 400:
            target = urlsplit(headers.get("Location") or "")
            raise InvalidInput(f"{self.place} has moved to {target.scheme}://{target.hostname}{target.path}; give that")
        raise Rejected(f"{self.place} answered {status}{said}", status == 413 or bool(_TOO_LARGE.search(said)))

    def _hidden(self, text: str) -> str:
        return text if self._key is None else text.replace(self._key, "…")


def _close(connections: list[http.client.HTTPConnection]) -> None:
    while connections:
        connections.pop().close()


def _address(url: str) -> tuple[bool, str, int | None, str]:
    """Whether it is TLS, host, port, path with what stands after `?`."""
    try:
        parsed = urlsplit(url)
        port = parsed.port
        (parsed.hostname or "").encode("idna")
    except ValueError as error:
        raise InvalidInput(f"embedder url is malformed ({error}); give http(s)://host:port/v1") from None
    if parsed.scheme not in {"http", "https"} or not parsed.hostname:
        raise InvalidInput("embedder url must be http(s)://host:port/v1")
    if parsed.username is not None or parsed.password is not None:
        raise InvalidInput("embedder url must not hold a name or a password; give embedder_key")
    path = parsed.path.rstrip("/") or "/v1"
    if not path.endswith("/embeddings"):
        path += "/embeddings"
    if re.search(r"[\x00-\x20\x7f-\uffff]", path + parsed.query):
        raise InvalidInput("embedder url holds characters that must be escaped as %XX")
    return parsed.scheme == "https", parsed.hostname, port, path + (f"?{parsed.query}" if parsed.query else "")


def _checked_key(key: str | None) -> str | None:
    if key is not None and not re.fullmatch(r"[\x21-\x7e]+", key):
        raise InvalidInput("embedder_key must be printable ASCII without spaces or line ends, or None")
    return key


def _message(answer: bytes) -> str:
    """What the server says about an error, on a line, cut short."""
    text = answer.decode("utf-8", "replace")
    try:
        said: Any = json.loads(text)
    except ValueError:
        said = text
    for name in ("error", "message", "detail"):
        if isinstance(said, dict) and name in said:
            said = said[name]
    line = " ".join(str(said).split())[:200]
    return f" ({line})" if line else ""

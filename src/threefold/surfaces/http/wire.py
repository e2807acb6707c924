"""Connections: so many at once, and each must go on in time."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class _Wire(H11Protocol):
    """A connection. uvicorn itself takes any number, and waits without an end for a head that comes slowly, for a body
    that nobody reads any more, and for a client that does not take its answer.
    """

    most: int
    seconds: float

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """See `asyncio.Protocol.connection_made`."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.abort()
        else:
            self._look()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol.data_received`."""
        super().data_received(data)
        self._look()

    def pause_writing(self) -> None:
        """See `asyncio.Protocol.pause_writing`."""
        super().pause_writing()
        self._writing = self.loop.call_later(self.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """See `asyncio.Protocol.resume_writing`."""
        super().resume_writing()
        self._stop_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol.connection_lost`."""
        self._stop_reading()
        self._stop_writing()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Close the connection if what is there is no request, unless one is there in time."""
        if self.conn.their_state is not h11.IDLE and self.conn.our_state is not h11.DONE:
            self._stop_reading()
        elif self._reading is None:
            self._reading = self.loop.call_later(self.seconds, self.transport.close)

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _stop_writing(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None


def wire(most: int, seconds: float) -> type[asyncio.Protocol]:
    """Connections, of which there are at most so many. A request must begin within so many seconds, with all its
    headers, and who is answered must take what is sent within as many.
    """
    return type("Wire", (_Wire,), {"most": most, "seconds": seconds})

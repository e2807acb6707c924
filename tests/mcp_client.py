"""The SDK's own client in memory, in both eras of the protocol; and an app that does what apps should not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar, TypeVar

from mcp import Client
from mcp_types import CallToolResult

import threefold
from threefold import Caller, Resolved, Service, operation
from threefold.errors import Forbidden, NotFound
from threefold.model.scope import Scope
from threefold.surfaces.mcp import Opening, serving

T = TypeVar("T")
ERAS = {"legacy": "2025-11-25", "auto": "2026-07-28"}
READ = frozenset({"*:read", "mem:propose", "cnv:propose"})


def caller(user: str = "ann", grants: frozenset[str] | None = READ, **scope: Any) -> Caller:
    return Caller(Scope(user, **{"agent": "mcp", **scope}), grants)


def session(
    store: threefold.Threefold | Opening,
    work: Callable[[Client], Awaitable[T]],
    mode: str = "auto",
    who: Caller | None = None,
    **client: Any,
) -> T:
    """What `work` gives, done as a client of the store."""

    async def run() -> T:
        async with Client(serving(store, who or caller()), mode=mode, **client) as connected:
            assert connected.protocol_version == ERAS[mode]
            return await work(connected)

    return asyncio.run(run())


def text_of(result: CallToolResult) -> str:
    (item,) = result.content
    assert item.type == "text"
    return item.text


class Tasks(Service):
    """Issues, and much that goes wrong."""

    namespace = "task"
    line = "Issues of a team"
    kinds: ClassVar[Mapping[str, str]] = {"issue": "a thing to do, task:issue:<id>", "picture": "what it looks like"}

    def __init__(self) -> None:
        self.go, self.begun, self.meet = threading.Event(), threading.Event(), threading.Barrier(2)

    def resolve(self, caller: Caller, ref: Any) -> Resolved:
        if ref.id == "secret":
            raise Forbidden(f"{ref}: only for its author")
        if ref.id == "broken":
            raise KeyError("the tracker is down at /etc/tracker")
        if caller.scope.tenant != "default" or ref.id != "7":
            raise NotFound(f"{ref}: no such issue")
        if ref.kind == "picture":
            return Resolved(str(ref), "picture", {"name": "a.png"}, title="a.png", content=b"\x89PNG")
        return Resolved(str(ref), "issue", {"title": "Fix the door"}, "Fix the door\nIt squeaks.")

    @operation()
    def list(self, caller: Caller, limit: int = 5) -> dict[str, Any]:
        """List issues."""
        return {"issues": [{"ref": "task:issue:7", "title": "Fix the door"}, {"ref": "task:issue:secret"}][:limit]}

    @operation()
    def numbers(self, caller: Caller) -> list[int]:
        """Give what is no object."""
        return [1, 2]

    @operation()
    def much(self, caller: Caller, texts: int, size: int, keys: int = 0) -> dict[str, Any]:
        """Give much."""
        entries = [{"ref": "task:issue:7", "text": "wörter " * (size // 7)} for _ in range(texts)]
        return {"entries": entries, "next": "x" * 300, **{str(n): n for n in range(keys)}}

    @operation()
    def broken(self, caller: Caller) -> dict[str, Any]:
        """Fail as nobody should."""
        raise KeyError("secret of /etc/tracker")

    @operation()
    def odd(self, caller: Caller) -> dict[str, Any]:
        """Give what JSON has not."""
        return {"number": float("nan"), "at": datetime.now(UTC)}

    @operation()
    def unheard(self, caller: Caller) -> dict[str, Any]:
        """Give what nothing can be made of."""
        return {"thing": object()}

    @operation()
    def wait(self, caller: Caller) -> dict[str, Any]:
        """Wait until somebody says go."""
        self.begun.set()
        self.go.wait(60)
        return {}

    @operation()
    def both(self, caller: Caller) -> dict[str, Any]:
        """Wait for another call that waits."""
        self.meet.wait(60)
        return {}

    @operation("write", destructive=True)
    def close(self, caller: Caller, id: str) -> dict[str, Any]:  # noqa: A002
        """Close an issue for good."""
        return {"closed": id}

"""MCP in the same server: each request as the one who sends it, in both eras of the protocol."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import httpx2
import pytest
from http_server import Server, problem, served
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_client import ERAS

import threefold
from threefold import Service, operation
from threefold.services import Caller

T = TypeVar("T")


class Echo(Service):
    """An app that comes later."""

    namespace = "echo"
    line = "Says who asks"

    @operation()
    def who(self, caller: Caller) -> dict[str, Any]:
        """Say who asks."""
        return {"user": caller.scope.user, "agent": caller.scope.agent}


@pytest.fixture(params=ERAS)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(db: threefold.Threefold) -> Iterator[Server]:
    db.publish(Echo())
    for user in ("ann", "bob"):
        db.user(user).mem.remember(f"the secret of {user}")
    with served(db) as found:
        yield found


async def within(server: Server, mode: str, token: str | None, work: Callable[[Client], Awaitable[T]]) -> T:
    """What `work` gives, done as a client with a token."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            assert client.protocol_version == ERAS[mode]
            return await work(client)


async def told(client: Client, name: str, **given: Any) -> Any:
    found = await client.call_tool(name, given)
    return found.content[0].text if found.is_error else found.structured_content


def test_each_asks_as_the_one_of_its_token(server: Server, mode: str) -> None:
    async def memories(client: Client) -> list[str]:
        return [each["memory"] for each in (await told(client, "mem_list"))["memories"]]

    async def everyone() -> list[Any]:
        tokens = [server.token("ann"), server.token("bob"), None] * 5
        return await asyncio.gather(*(within(server, mode, token, memories) for token in tokens))

    ann, bob = ["the secret of ann"], ["the secret of bob"]
    assert asyncio.run(everyone()) == [ann, bob, ann] * 5


def test_each_tool_needs_its_grant(server: Server, mode: str) -> None:
    async def work(client: Client) -> tuple[list[str], Any, Any]:
        names = [each.name for each in (await client.list_tools()).tools]
        return names, await told(client, "mem_search", query="secret"), await told(client, "echo_who")

    names, found, who = asyncio.run(
        within(server, mode, server.token(grants=["mem:read", "echo:read"], agent="bot"), work)
    )
    assert {"mem_search", "echo_who"} < set(names)
    assert not {"mem_upsert", "conv_search", "context"} & set(names)
    assert found["memories"][0]["memory"] == "the secret of ann"
    assert who == {"user": "ann", "agent": "bot"}


def test_a_resource_is_read_as_the_one_who_asks(server: Server, mode: str) -> None:
    ref = server.db.user("ann").mem.list()[0].ref

    async def work(client: Client) -> str:
        try:
            return (await client.read_resource(ref)).contents[0].text  # type: ignore[union-attr]
        except MCPError as error:
            return str(error)

    assert asyncio.run(within(server, mode, server.token("ann"), work)) == "the secret of ann"
    assert "no such resource" in asyncio.run(within(server, mode, server.token("bob"), work))


def test_what_an_app_publishes_is_there_with_the_next_request(server: Server, mode: str) -> None:
    async def names(client: Client) -> set[str]:
        return {each.name for each in (await client.list_tools()).tools}

    assert "echo_who" in asyncio.run(within(server, mode, None, names))
    server.db.withdraw("echo")
    assert "echo_who" not in asyncio.run(within(server, mode, None, names))
    server.db.publish(Echo())
    assert "echo_who" in asyncio.run(within(server, mode, None, names))
    with server.client() as http:
        assert http.get("/health").status_code == 200


def test_who_may_not_come_in_is_told_as_elsewhere(server: Server) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    accept = {"Accept": "application/json, text/event-stream"}
    with server.client(**accept) as http:
        assert http.post("/mcp", json=body).status_code == 200
        problem(http.post("/mcp", json=body, headers={"Authorization": "Bearer tf_x"}), 401)
        problem(http.post("/mcp", json=body, headers={"Host": "evil.example"}), 401)
        problem(http.post("/mcp", json=body, headers={"Origin": "http://evil.example"}), 403)
        problem(http.post("/mcp", content=b"{}", headers={"Content-Type": "text/plain"}), 403)
        problem(http.get("/mcp"), 405)
        problem(http.delete("/mcp"), 405)
        assert (
            http.post("/mcp", content=b" " * 2_000_000, headers={"Content-Type": "application/json"}).status_code == 413
        )
        for wrong in (b"{", b"[]", b'{"jsonrpc": "2.0"}', b'{"jsonrpc": "2.0", "id": 1, "method": "nope"}'):
            answered = http.post("/mcp", content=wrong, headers={"Content-Type": "application/json"})
            assert answered.status_code < 500
            assert "Traceback" not in answered.text


async def listening(server: Server, secret: str, begun: asyncio.Event) -> None:
    """Listen for changes until the stream ends."""
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"}, timeout=60) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with Client(transport, mode="auto") as client, client.listen(tools_list_changed=True) as events:
            begun.set()
            async for _ in events:
                pass


async def listens(server: Server, secret: str) -> asyncio.Task[None]:
    begun = asyncio.Event()
    made = asyncio.ensure_future(listening(server, secret, begun))
    there = asyncio.ensure_future(begun.wait())
    await asyncio.wait((made, there), timeout=30, return_when=asyncio.FIRST_COMPLETED)
    there.cancel()
    return made


def test_who_listens_is_counted_as_a_stream_and_keeps_no_other_out(db: threefold.Threefold) -> None:
    async def work(server: Server) -> None:
        bob = server.token("bob", grants=["mem:read"])
        open_ = [await listens(server, bob) for _ in range(2)]
        assert not any(each.done() for each in open_)
        with pytest.raises((MCPError, ExceptionGroup)):
            await (await listens(server, bob))
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {server.token()}"}, timeout=60) as http:
            assert (await http.get(f"{server.url}/v1/whoami")).status_code == 200
        for each in open_:
            each.cancel()
        await asyncio.wait(open_)

    with served(db, concurrent=1, own_streams=2) as server:
        asyncio.run(work(server))


def test_who_listens_is_told_no_more_once_the_token_is_revoked(
    db: threefold.Threefold, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("threefold.surfaces.http.streams.QUIET", 0.05)

    async def work(server: Server) -> None:
        made = server.db.tokens.create("bob", grants=["mem:read"])
        listener = await listens(server, made.secret)
        assert not listener.done()
        server.db.tokens.revoke(made.token.id)
        assert (await asyncio.wait((listener,), timeout=30))[0]
        with suppress(Exception):
            listener.result()

    with served(db) as server:
        asyncio.run(work(server))


def test_who_listens_keeps_no_server_from_ending(db: threefold.Threefold, caplog: pytest.LogCaptureFixture) -> None:
    begun = threading.Event()

    async def work(server: Server, secret: str) -> None:
        listener = await listens(server, secret)
        begun.set()
        await asyncio.wait((listener,), timeout=60)
        listener.exception()

    with served(db) as server:
        thread = threading.Thread(target=asyncio.run, args=(work(server, server.token()),), daemon=True)
        thread.start()
        assert begun.wait(30)
    thread.join(60)
    assert not thread.is_alive()
    assert "graceful shutdown exceeded" not in caplog.text

"""MCP in the same server: each request as the one who sends it, in both eras of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
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

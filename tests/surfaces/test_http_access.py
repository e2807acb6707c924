"""Who may come in over HTTP, and that nothing of what is sent reaches what is another's."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from http_server import ANN, Server, problem, served

import threefold
from threefold import Service, operation
from threefold.model.scope import Scope
from threefold.services import Caller
from threefold.surfaces.http.gate import is_loopback
from threefold.surfaces.http.limits import Rates
from threefold.surfaces.http.problems import Refused
from threefold.testing.fakes import Clock

Open = Callable[..., threefold.Threefold]
JSON = {"Content-Type": "application/json"}


class Slow(Service):
    """An app that waits until it is told to go on."""

    namespace = "slow"
    line = "Waits"

    def __init__(self) -> None:
        self.begun, self.go = threading.Semaphore(0), threading.Event()

    @operation()
    def wait(self, caller: Caller) -> dict[str, Any]:
        """Wait."""
        self.begun.release()
        self.go.wait(30)
        return {}


@pytest.fixture
def server(db: threefold.Threefold) -> Iterator[Server]:
    for user, tenant in [("ann", "default"), ("bob", "default"), ("ann", "acme")]:
        handle = db.user(user, tenant)
        with handle.turn("trip", turn="1") as turn:
            turn.prompt(f"the secret of {user} of {tenant}")
            turn.attach(("note.txt", f"file of {user} of {tenant}".encode()))
        handle.mem.remember(f"the secret of {user} of {tenant}")
        handle.doc.ingest(f"the secret of {user} of {tenant}", f"notes of {user} of {tenant}")
        handle.cnv.board("plans").pin("conv:conversation:trip", note=f"secret of {user} of {tenant}")
    with served(db) as found:
        yield found


def test_scope_comes_from_the_token_and_from_nothing_that_is_sent(server: Server) -> None:
    bob, acme = server.db.user("bob"), server.db.user("ann", "acme")
    theirs = [bob.mem.list()[0], acme.mem.list()[0]]
    documents = [bob.doc.list()[0], acme.doc.list()[0]]
    token = server.token()
    more = {"X-User": "bob", "X-Tenant": "acme", "X-Forwarded-User": "bob", "Cookie": "user=bob; token=x"}
    with server.client(token, **more) as http:
        for path in (
            "/v1/conv/search?query=secret", "/v1/mem/search?query=secret", "/v1/doc/search?query=secret",
            "/v1/cnv/search?query=secret", "/v1/search?query=secret", "/v1/context?goal=secret", "/v1/mem/records",
            "/v1/conv/turns", "/v1/doc/documents", "/v1/cnv/boards/plans", "/v1/mem/hotset", "/v1/conv/list",
            "/v1/refs/conv:ar:conv_trip.turn_1.user.prompt", "/v1/refs/cnv:plans",
            "/v1/refs/conv:fi:conv_trip.turn_1.user.attachments%2Fnote.txt?raw=1",
        ):  # fmt: skip
            answered = http.get(path)
            assert answered.status_code == 200, path
            assert "bob" not in answered.text, path
            assert "acme" not in answered.text, path
        for record in theirs:
            for path in (
                f"/v1/mem/records/{record.id}",
                f"/v1/refs/{record.ref}",
                f"/v1/mem/records/{record.id}/history",
            ):
                problem(http.get(path), 404)
            problem(http.delete(f"/v1/mem/records/{record.id}"), 404)
            problem(http.patch(f"/v1/mem/records/{record.id}", json={"memory": "taken"}), 404)
            assert http.get("/v1/describe", params={"refs": record.ref}).json()["objects"][0]["standing"] == "gone"
            problem(http.get("/v1/fetch", params={"id": record.ref}), 404)
        for document in documents:
            problem(http.get(f"/v1/doc/documents/{document.id}"), 404)
            problem(http.get(f"/v1/refs/{document.ref}?raw=1"), 404)
            problem(http.delete(f"/v1/doc/documents/{document.id}"), 404)
        for name in ("user", "tenant", "scope", "app", "agent", "realm", "caller"):
            problem(http.get(f"/v1/mem/list?{name}=bob"), 422)
            problem(http.post("/v1/mem/list", json={name: "bob"}), 422)
        archive = http.get("/v1/export").content
        assert b"bob" not in archive
        problem(http.post("/v1/turns", json={"conversation": "c", "user": "bob"}), 422)
        http.delete("/v1/conv/conversations/trip")
    assert len(bob.conv.conversations()) == len(acme.conv.conversations()) == 1


def test_a_token_may_do_what_it_was_given(server: Server) -> None:
    with server.client(server.token(grants=["mem:read", "doc:write"])) as http:
        assert http.get("/v1/mem/list").status_code == 200
        assert (
            "needs the grant 'mem:write'" in problem(http.post("/v1/mem/upsert", json={"memory": "x"}), 403)["detail"]
        )
        for method, path in [
            ("GET", "/v1/conv/list"), ("GET", "/v1/refs/conv:conversation:trip"), ("GET", "/v1/export"),
            ("GET", "/v1/refs/conv:conversation:trip?raw=1"), ("GET", "/v1/refs/conv:conversation:trip/editions"),
            ("POST", "/v1/turns"), ("POST", "/v1/import?name=x.jsonl"), ("GET", "/v1/context?goal=x"),
            ("GET", "/metrics"),
        ]:  # fmt: skip
            problem(http.request(method, path, **({"json": {}} if method == "POST" else {})), 403)
        assert http.post("/v1/doc/files?name=a.md", content=b"# A").status_code == 200
        assert [each["namespace"] for each in http.get("/v1/services").json()["services"]] == ["mem", "doc"]
    with server.client(server.token(grants=["*:read"])) as http:
        assert http.get("/v1/context?goal=secret").status_code == 200
        assert "by this name" in problem(http.get("/metrics"), 403)["detail"]
        problem(http.post("/v1/doc/files?name=a.md", content=b"# A"), 403)
    with server.client(server.token()) as http:  # every grant to what is its user's
        problem(http.get("/metrics"), 403)
    with server.client(server.token(grants=["metrics:read"])) as http:
        assert http.get("/metrics").status_code == 200
        problem(http.get("/v1/mem/list"), 403)


def test_as_an_agent_or_an_app_it_is_one(server: Server) -> None:
    with server.client(server.token(agent="planner")) as http:
        assert http.post("/v1/mem/upsert", json={"memory": "likes tea"}).json()["status"] == "proposed"
        http.post("/v1/turns", json={"conversation": "new", "turn": "1", "submissions": [{"text": "x"}]})
        assert http.get("/v1/conv/turns?conversation=new").json()["turns"][0]["agent"] == "planner"
    with server.client(server.token(app="crm")) as http:
        assert http.get("/v1/conv/list").json()["conversations"] == []
        problem(http.get("/v1/refs/conv:conversation:trip"), 403)
        problem(http.post("/v1/turns", json={"conversation": "trip", "submissions": [{"text": "x"}]}), 403)


@pytest.mark.parametrize(
    "given",
    ["Bearer", "Bearer tf_", "Bearer tf_" + "x" * 43, "bearer nonsense", "Basic YW5uOng=", "tf_x", "Bearer tf_é",
     "Token tf_x", "Bearer " + "x" * 5_000],
)  # fmt: skip
def test_a_wrong_token_is_refused_even_on_this_machine(server: Server, given: str) -> None:
    with server.client() as http:
        answered = http.get("/v1/mem/list", headers={"Authorization": given.encode()})
        problem(answered, 401)
        assert answered.headers["www-authenticate"].startswith("Bearer realm=")
        assert given not in answered.text or given == "Bearer"


def test_no_token_in_a_query_counts(server: Server) -> None:
    with served(server.db, local=None) as strict, strict.client() as http:
        problem(http.get(f"/v1/mem/list?access_token={server.token()}&token={server.token()}"), 401)
        for path in (
            "/v1/mem/list",
            "/v1/openapi.json",
            "/v1/services",
            "/metrics",
            "/v1/nope",
            "/v1/refs/x",
            "/v1/export",
        ):
            problem(http.get(path), 401)
        for path in ("/v1/turns", "/v1/doc/files", "/v1/import", "/mcp", "/v1/mem/records"):
            problem(http.post(path, json={}), 401)
        assert http.get("/health").status_code == http.get("/ready").status_code == 200


def test_a_token_that_is_revoked_or_over_is_refused_at_once_in_every_process(open_db: Open, clock: Clock) -> None:
    first = open_db()
    second = open_db() if first.name != ":memory:" else first
    with served(first, local=None) as here, served(second, local=None) as there:
        made = first.tokens.create("ann", expires=timedelta(hours=1))
        with here.client(made.secret) as http, there.client(made.secret) as other:
            assert http.get("/v1/mem/list").status_code == other.get("/v1/mem/list").status_code == 200
            second.tokens.revoke(made.token.id)
            problem(http.get("/v1/mem/list"), 401)
            problem(other.get("/v1/mem/list"), 401)
        made = first.tokens.create("ann", expires=timedelta(hours=1))
        with here.client(made.secret) as http:
            assert http.get("/v1/mem/list").status_code == 200
            clock.advance(timedelta(hours=1))
            problem(http.get("/v1/mem/list"), 401)


def test_two_processes_answer_one_key_once(open_db: Open) -> None:
    first = open_db()
    second = open_db() if first.name != ":memory:" else first
    key = {"Idempotency-Key": "0f8fad5b-d9cb-469f-a165-70867728950e"}
    with served(first) as here, served(second) as there, here.client() as http, there.client() as other:
        made = http.post("/v1/cnv/suggest", json={"board": "b", "ref": "conv:conversation:x"}, headers=key)
        again = other.post("/v1/cnv/suggest", json={"board": "b", "ref": "conv:conversation:x"}, headers=key)
        assert (again.status_code, again.content) == (200, made.content)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 401),
        ({"Host": "evil.example:8484"}, 401),
        ({"Host": "127.0.0.1.evil.example"}, 401),
        ({"Host": "localhost.evil.example"}, 401),
        ({"Host": ""}, 401),
        ({"Host": "0.0.0.0"}, 401),
        ({"Host": "[::1"}, 401),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://localhost.evil.example"}, 403),
        ({"Origin": "http://localhost:1"}, 403),
        ({"Origin": "file://"}, 403),
        ({"Origin": ""}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"X-Forwarded-For": "203.0.113.7"}, 401),
        ({"Forwarded": "for=203.0.113.7"}, 401),
        ({"Via": "1.1 proxy"}, 401),
    ],
)
def test_without_a_token_this_machine_alone_asks(server: Server, headers: dict[str, str], status: int) -> None:
    with server.client() as http:
        for method, path in [("GET", "/v1/mem/list"), ("POST", "/v1/mem/list"), ("POST", "/mcp"), ("GET", "/metrics")]:
            body = {"json": {}} if method == "POST" else {}
            problem(http.request(method, path, headers=headers, **body), status)


@pytest.mark.parametrize(
    "headers",
    [{}, {"Host": "localhost"}, {"Host": "LOCALHOST:99"}, {"Host": "[::1]:8484"}, {"Host": "127.8.9.1"},
     {"Host": "app.localhost"}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}],
)  # fmt: skip
def test_by_its_own_names_it_answers(server: Server, headers: dict[str, str]) -> None:
    with server.client() as http:
        assert http.get("/v1/mem/list", headers=headers).status_code == 200
        same = {"Origin": f"http://{headers.get('Host', server.host)}", **headers}
        assert http.post("/v1/mem/list", json={}, headers=same).status_code == 200


def test_no_page_of_another_site_changes_anything(server: Server) -> None:
    forms = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x")
    with server.client() as http:
        for kind in forms:
            for path in (
                "/v1/mem/upsert",
                "/v1/turns",
                "/v1/doc/files?name=a.md",
                "/v1/import?name=a",
                "/v1/mem/reconcile",
            ):
                answered = http.post(path, content=b'{"memory": "x"}', headers={"Content-Type": kind})
                assert "X-Threefold-Request" in problem(answered, 403)["detail"].title()
        problem(http.post("/v1/mem/reconcile"), 403)
        marked = {"Content-Type": "text/plain", "X-Threefold-Request": "1"}
        assert http.post("/v1/doc/files?name=a.md", content=b"# A", headers=marked).status_code == 200
        same = {"Content-Type": "text/plain", "Sec-Fetch-Site": "same-origin", "Origin": server.url}
        assert http.post("/v1/doc/files?name=b.md", content=b"# B", headers=same).status_code == 200
        answered = http.request("OPTIONS", "/v1/mem/upsert", headers={"Origin": "http://evil.example"})
        assert not any(name.startswith("access-control") for name in answered.headers)
    assert {"a.md", "b.md"} < {each.source for each in server.db.user("ann").doc.list()}
    assert len(server.db.user("ann").mem.list()) == 1


def test_names_that_it_goes_by_are_told(db: threefold.Threefold) -> None:
    with served(db, local=None, hosts=("threefold.example",)) as server, server.client(server.token()) as http:
        for host in ("threefold.example", "threefold.example:443", "THREEFOLD.example", "localhost:1", "127.0.0.1"):
            assert http.get("/v1/mem/list", headers={"Host": host}).status_code == 200
        assert "--allowed-host" in problem(http.get("/v1/mem/list", headers={"Host": "10.0.0.1"}), 421)["detail"]
        proxied = {"Host": "127.0.0.1:8484", "Origin": "https://threefold.example", "X-Forwarded-For": "203.0.113.7"}
        assert http.get("/v1/mem/list", headers=proxied).status_code == 200
    with served(db, local=None) as server, server.client(server.token()) as http:
        assert http.get("/v1/mem/list", headers={"Host": "any.example"}).status_code == 200
        problem(http.get("/v1/mem/list", headers={"Host": "any.example", "Origin": "https://other.example"}), 403)


def test_names_of_this_machine() -> None:
    for host in ("localhost", "127.0.0.1", "::1", "127.1.2.3", "a.localhost"):
        assert is_loopback(host)
    for host in ("", "0.0.0.0", "::", "10.0.0.1", "localhost.example", "example", "notlocalhost", "::ffff:8.8.8.8"):
        assert not is_loopback(host)


def test_a_body_is_bounded(server: Server) -> None:
    with served(server.db, json_bytes=1000) as small, small.client() as http:
        assert http.post("/v1/mem/search", json={"query": "x" * 500}).status_code == 200
        assert "1,000 bytes" in problem(http.post("/v1/mem/search", json={"query": "x" * 1000}), 413)["detail"]

        def endless() -> Iterator[bytes]:
            for _ in range(100):
                yield b" " * 100

        problem(http.post("/v1/mem/search", content=endless(), headers=JSON), 413)


def test_what_takes_too_long_is_told(db: threefold.Threefold) -> None:
    slow = Slow()
    db.publish(slow)
    with served(db, seconds=0.05) as server, server.client() as http:
        assert "longer than 0.05 seconds" in problem(http.get("/v1/slow/wait"), 504)["detail"]
        slow.go.set()
    with served(db, seconds=0.2) as server, socket.create_connection(server.host.split(":")) as wire:
        wire.sendall(
            b"POST /v1/mem/list HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 9\r\n\r\n{"
        )
        assert wire.recv(4096).startswith(b"HTTP/1.1 408 ")


def test_more_than_so_many_at_once_are_refused_and_those_that_were_taken_answered(db: threefold.Threefold) -> None:
    slow = Slow()
    db.publish(slow)
    with served(db, concurrent=2, threads=2) as server:
        found: list[int] = []

        def ask() -> None:
            with server.client() as http:
                found.append(http.get("/v1/slow/wait").status_code)

        asking = [threading.Thread(target=ask) for _ in range(2)]
        for each in asking:
            each.start()
        for _ in asking:
            assert slow.begun.acquire(timeout=30)
        with server.client() as http:
            answered = http.get("/v1/mem/list")
            problem(answered, 503)
            assert answered.headers["retry-after"] == "1"
            assert http.get("/health").status_code == 200
        slow.go.set()
        for each in asking:
            each.join()
        assert found == [200, 200]


def test_a_token_asks_so_often_in_a_minute(db: threefold.Threefold) -> None:
    with served(db, rate=3) as server, server.client(server.token()) as http, server.client(server.token()) as other:
        for _ in range(3):
            assert http.get("/v1/mem/list").status_code == 200
        answered = http.get("/v1/mem/list")
        assert "at most 3 requests in a minute" in problem(answered, 429)["detail"]
        assert int(answered.headers["retry-after"]) >= 1
        assert other.get("/v1/mem/list").status_code == 200


def test_a_token_may_have_a_rate_of_its_own(db: threefold.Threefold) -> None:
    with served(db, rate=3) as server:
        slower, faster = server.token(rate=1), server.token(rate=100)
        with server.client(slower) as http:
            assert http.get("/v1/mem/list").status_code == 200
            assert "at most 1 requests in a minute" in problem(http.get("/v1/mem/list"), 429)["detail"]
        with server.client(faster) as http:
            assert [http.get("/v1/mem/list").status_code for _ in range(5)] == [200] * 5


def test_rates_fill_again_with_time() -> None:
    at = 0.0
    rates = Rates(60, lambda: at)
    for _ in range(60):
        rates.take("a")
    with pytest.raises(Refused) as refused:
        rates.take("a")
    assert refused.value.headers == {"Retry-After": "1"}
    rates.take("b")
    at = 1.0
    rates.take("a")
    with pytest.raises(Refused):
        rates.take("a")
    at = 1e9
    for _ in range(60):
        rates.take("a")
    with pytest.raises(Refused):
        rates.take("a")


def test_the_local_user_is_the_one_that_was_named(db: threefold.Threefold) -> None:
    db.user("bob", "acme").mem.remember("likes tea")
    with served(db, local=Scope("bob", "acme")) as server, server.client() as http:
        assert len(http.get("/v1/mem/list").json()["memories"]) == 1
    with served(db, local=ANN) as server, server.client() as http:
        assert http.get("/v1/mem/list").json()["memories"] == []

"""What comes over the wire as no client of ours sends it: slow, huge, doubled, packed, cut, from others."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import quote

import pytest
from http_server import Server, problem, served
from test_http_lanes import Viewer
from waiting import wait_until

import threefold
from threefold.surfaces.http import streams

SECRET = b"the secret of bob"
JSON = b"Content-Type: application/json\r\n"


@pytest.fixture
def db() -> Iterator[threefold.Threefold]:
    with threefold.open(":memory:", embedder=None, background=False) as opened:
        for user in ("ann", "bob"):
            opened.user(user).mem.remember(f"the secret of {user}")
            with opened.user(user).turn("trip", turn="1") as turn:
                turn.prompt(f"the secret of {user}")
                turn.attach(("note.txt", f"the secret of {user}".encode()))
        yield opened


@pytest.fixture
def server(db: threefold.Threefold) -> Iterator[Server]:
    with served(db) as made:
        yield made


def wire(server: Server) -> socket.socket:
    host, port = server.host.split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def told(connection: socket.socket) -> bytes:
    """All that comes until the server closes."""
    found = b""
    while piece := connection.recv(65536):
        found += piece
    return found


def told_or_reset(connection: socket.socket) -> bytes:
    try:
        return told(connection)
    except ConnectionError:
        return b""


def sent(server: Server, request: bytes) -> bytes:
    """What a request is answered, until the server closes."""
    with wire(server) as connection:
        with suppress(ConnectionError):  # it may not read to the end of what it does not want
            connection.sendall(request)
        return told_or_reset(connection)


@pytest.mark.parametrize(
    "request_",
    [
        # What one reader takes for one request, another takes for two.
        b"POST /v1/mem/search HTTP/1.1\r\nHost: localhost\r\n" + JSON +
        b"Content-Length: 5\r\nContent-Length: 50\r\n\r\n{}   GET /v1/mem/list HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /v1/mem/search HTTP/1.1\r\nHost: localhost\r\n" + JSON + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"POST /v1/mem/search HTTP/1.1\r\nHost: localhost\r\n" + JSON + b"Content-Length: +2\r\n\r\n{}",
        b"POST /v1/mem/search HTTP/1.1\r\nHost: localhost\r\n" + JSON + b"Content-Length: -1\r\n\r\n{}",
        b"GET /v1/mem/list HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        b"GET /v1/mem/list HTTP/1.1\r\n\r\n",
        b"GET /v1/mem/list HTTP/1.1\r\nHost: localhost\r\nX: a\rb\r\n\r\n",
        b"GET /v1/mem/list HTTP/1.1\r\nHost: localhost\r\nX y: a\r\n\r\n",
        b"GET /v1/mem/list HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
        b"GET /v1/mem/\xc3\xbc HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /v1/mem/list?" + b"x" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /v1/mem/list HTTP/1.1\r\nHost: localhost\r\n" + b"X-Y: z\r\n" * 30_000 + b"\r\n",
    ],
)  # fmt: skip
def test_what_is_no_request_is_refused_and_nothing_behind_it_is_read(server: Server, request_: bytes) -> None:
    answered = sent(server, request_)
    assert answered.startswith(b"HTTP/1.1 400 ") or answered == b""
    assert answered.count(b"HTTP/1.1") <= 1
    assert SECRET not in answered
    with server.client() as http:
        assert http.get("/health").status_code == 200


def test_two_lengths_are_one_by_the_pieces(server: Server) -> None:
    smuggled = b"GET /v1/mem/list HTTP/1.1\r\nHost: localhost\r\n\r\n"
    head = b"POST /v1/mem/upsert HTTP/1.1\r\nHost: localhost\r\n" + JSON
    head += b"Connection: close\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
    answered = sent(server, head + b"2\r\n{}\r\n0\r\n\r\n" + smuggled)
    assert answered.startswith(b"HTTP/1.1 422 ")
    assert answered.count(b"HTTP/1.1") == 1
    assert SECRET not in answered


@pytest.mark.parametrize(
    "path",
    [
        "/v1/../v1/mem/list", "/v1/refs/..%2f..%2fbob", "/v1/mem/records/..%2F..%2Fbob", "/v1/mem/records/%00",
        "/v1/mem/records/%2e%2e", "/v1/mem/records/%252e%252e%252fbob", "/v1/mem/records/" + "a" * 8_000,
        "/v1/refs/conv:fi:conv_trip.turn_1.user.attachments%2F..%2F..%2F..%2Fetc%2Fpasswd?raw=1",
        "/v1/refs/conv:fi:conv_trip.turn_1.user.attachments%252Fnote.txt?raw=1", "/v1/doc/documents/%2Fetc%2Fpasswd",
        "/v1/lanes/%00", "/v1/lanes/" + "x" * 5_000, "/v1/lanes/%20/events",
        "/v1/conv/conversations/%00/turns", "//v1/mem/list", "/v1//mem/list", "/v1/mem/list/", "/v1/mem%2flist",
        "/v1/services/%2e%2e/x", "/%2e%2e/v1/mem/list",
        "/js/%2e%2e%2f%2e%2e%2fhttp%2fgate.py", "/..%5c..%5chttp%5cgate.py", "/css/..%2f..%2f__init__.py",
    ],
)  # fmt: skip
def test_no_path_leads_anywhere_else(server: Server, path: str) -> None:
    answered = sent(server, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    status = int(answered[9:12])
    assert status in (404, 410, 422, 405), answered[:300]
    for each in (b"of bob", b"root:", b"import ", b"Traceback"):
        assert each not in answered


def test_a_head_that_comes_slowly_is_not_waited_for(db: threefold.Threefold) -> None:
    with served(db, seconds=0.3) as server:
        with wire(server) as connection:
            assert told(connection) == b""
        with wire(server) as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: loc")
            assert told(connection) == b""
        with wire(server) as connection:  # nor a second one
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /heal")
            answered = told(connection)
            assert answered.count(b"HTTP/1.1 200") == 1


def test_a_body_that_comes_slowly_is_refused_at_every_address(db: threefold.Threefold) -> None:
    accepts = b"Accept: application/json, text/event-stream\r\n"
    with served(db, seconds=0.3, long_seconds=0.3) as server:
        for path in (
            b"/v1/mem/search",
            b"/v1/turns",
            b"/v1/lanes/trip",
            b"/mcp",
            b"/v1/doc/files?name=a",
            b"/v1/import?name=a",
        ):
            with wire(server) as connection:
                head = b"POST " + path + b" HTTP/1.1\r\nHost: localhost\r\nX-Threefold-Request: 1\r\n" + JSON + accepts
                connection.sendall(head + b'Content-Length: 100\r\n\r\n{"a')
                answered = connection.recv(65536)
                assert answered.startswith(b"HTTP/1.1 408 "), (path, answered[:200])


def test_a_body_that_nobody_reads_is_not_taken_for_ever(db: threefold.Threefold) -> None:
    with served(db, seconds=0.3) as server, wire(server) as connection:
        head = b"POST /v1/nowhere/at/all HTTP/1.1\r\nHost: localhost\r\n" + JSON
        connection.sendall(head + b"Content-Length: 100000000\r\n\r\n{")
        assert connection.recv(65536).startswith(b"HTTP/1.1 404 ")

        def closed() -> bool:
            try:
                connection.sendall(b" ")
            except OSError:
                return True
            return False

        assert wait_until(closed)


def test_so_many_connections_are_taken(db: threefold.Threefold) -> None:
    with served(db, connections=5, seconds=30) as server:
        held = [wire(server) for _ in range(5)]
        with wire(server) as one_more:
            assert told_or_reset(one_more) == b""
        for each in held:
            each.close()

        def answers() -> bool:
            with wire(server) as again:
                again.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                return told_or_reset(again).startswith(b"HTTP/1.1 200")

        assert wait_until(answers)


@pytest.mark.parametrize("packed", ["gzip", "deflate", "br", "gzip, gzip"])
def test_a_packed_body_is_refused(server: Server, packed: str) -> None:
    body = gzip.compress(b'{"query": "x"}')
    marked = {"Content-Encoding": packed, "X-Threefold-Request": "1"}
    with server.client(**marked) as http:
        for path in ("/v1/mem/search", "/v1/turns", "/mcp", "/v1/lanes/trip", "/v1/doc/files?name=a.md"):
            answered = http.post(path, content=body, headers={"Content-Type": "application/json"})
            assert "Content-Encoding" in problem(answered, 415)["detail"]
    with server.client(**{"Content-Encoding": "identity"}) as http:
        assert http.post("/v1/mem/search", json={"query": "x"}).status_code == 200


def test_other_protocols_are_not_spoken(server: Server) -> None:
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n"
    answered = sent(server, b"GET /v1/mem/list HTTP/1.1\r\nHost: localhost\r\n" + upgrade + b"\r\n")
    assert b" 101 " not in answered
    answered = sent(server, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert answered[9:12] in (b"400", b"404")
    for method in (b"CONNECT localhost:80", b"TRACE /v1/mem/list", b"OPTIONS *"):
        answered = sent(server, method + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert answered[9:12] in (b"404", b"405", b"400"), answered[:100]


def test_head_is_what_get_would_be_told_without_the_rest(server: Server) -> None:
    with server.client() as http:
        for path in (
            "/v1/mem/list",
            "/v1/lanes/trip",
            "/v1/lanes/trip/events",
            "/health",
            "/",
            "/v1/agents",
            "/v1/export",
        ):
            answered = http.head(path)
            assert (answered.status_code, answered.content) == (200, b""), path


@pytest.mark.parametrize(
    "header", ["X-Forwarded-Proto", "X-Forwarded-Port", "X-Real-IP", "CF-Connecting-IP", "True-Client-IP"]
)
def test_what_a_proxy_passes_on_needs_a_token(server: Server, header: str) -> None:
    with server.client(**{header: "x"}) as http:
        problem(http.get("/v1/mem/list"), 401)


def test_a_key_is_its_callers_alone(server: Server) -> None:
    key = {"Idempotency-Key": "one-and-the-same"}
    body = {"memory": "likes tea"}
    with server.client(server.token("ann")) as ann, server.client(server.token("bob")) as bob:
        first = ann.post("/v1/mem/records", json=body, headers=key)
        second = bob.post("/v1/mem/records", json=body, headers=key)
        assert "idempotency-replayed" not in second.headers
        assert first.status_code == second.status_code == 200
    with server.client(server.token("ann")) as other:
        assert "idempotency-replayed" not in other.post("/v1/mem/records", json=body, headers=key).headers


def test_a_stream_ends_when_its_token_does(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "QUIET", 0.1)
    made = server.db.tokens.create("ann", grants=["*:read", "conv:write"])
    viewer, other = Viewer(server, made.secret), Viewer(server)
    server.db.tokens.revoke(made.token.id)
    viewer.thread.join(30)
    assert not viewer.thread.is_alive()
    with server.client() as http:
        http.post("/v1/lanes/trip", json={"text": "still here?"})
    assert other.ends()
    assert viewer.told == []


def test_so_many_streams_are_open_at_once(db: threefold.Threefold) -> None:
    with served(db, streams=3, own_streams=2) as server:
        ann, bob = server.token("ann"), server.token("bob")
        held = [Viewer(server, ann), Viewer(server, ann)]
        with server.client(ann) as http:
            assert "2 streams are open" in problem(http.get("/v1/lanes/trip/events"), 429)["detail"]
            assert http.get("/v1/mem/list").status_code == 200
        held.append(Viewer(server, bob))
        with server.client() as http:
            problem(http.get("/v1/lanes/trip/events"), 503)
        assert len(held) == 3
    assert all(not each.told for each in held)


def test_what_is_sent_to_lanes_is_counted_among_requests(db: threefold.Threefold) -> None:
    with served(db, concurrent=1, seconds=30) as server, wire(server) as connection:
        head = b"POST /v1/lanes/trip HTTP/1.1\r\nHost: localhost\r\n" + JSON
        connection.sendall(head + b'Content-Length: 100\r\n\r\n{"text')
        with server.client() as http:
            assert wait_until(lambda: http.post("/v1/lanes/trip", json={"text": "x"}).status_code == 503)
            assert http.get("/health").status_code == 200


@pytest.mark.parametrize(
    "name", ['a"b\r\nX-Evil: 1.txt', "a\x00b.txt", "../../etc/passwd", "C:\\x\\..\\y.txt", "\u202egpj.exe", "a" * 300]
)
def test_names_of_files_are_parts_of_no_path_and_no_header(server: Server, name: str) -> None:
    turn = {"conversation": "c", "turn": "1", "attachments": [{"name": name, "data": "eA=="}]}
    with server.client() as http:
        answered = http.post("/v1/turns", json=turn)
        if answered.status_code != 200:
            problem(answered, 422)
            return
        view = server.db.user("ann").conv.turn(answered.json()["ref"])
        read = http.get(f"/v1/refs/{quote(view.attachments[0].ref, safe='')}?raw=1")
        assert read.content == b"x"
        assert "x-evil" not in read.headers
        given = read.headers["content-disposition"]
        assert ".." not in given.partition("filename=")[2].strip('".')[:2]
        assert json.dumps(given).isascii()

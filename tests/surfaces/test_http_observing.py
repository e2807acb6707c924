"""What is told of requests: headers, figures, spans, logs, and how the server is; and the pages."""

from __future__ import annotations

import io
import json
import logging
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from http_server import Server, problem, served
from waiting import wait_until

import threefold
from threefold import Service, operation
from threefold.errors import Unavailable
from threefold.services import Caller
from threefold.surfaces.http import pages
from threefold.surfaces.http.logs import Lines

SECRET = "Zinnoberrot"


class Breaks(Service):
    """An app that raises what it was given."""

    namespace = "broken"
    line = "Breaks"

    @operation()
    def fail(self, caller: Caller, text: str) -> dict[str, Any]:
        """Raise it."""
        raise KeyError(text)

    @operation()
    def odd(self, caller: Caller) -> Any:
        """Give what is no JSON."""
        return {"it": object()}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[threefold.Threefold]:
    with threefold.open(tmp_path / "store", embedder=None, background=False, durable=False) as opened:
        opened.publish(Breaks())
        yield opened


@pytest.fixture
def server(db: threefold.Threefold) -> Iterator[Server]:
    with served(db) as found:
        yield found


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What the server logs, as JSON lines."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Lines(as_json=True))
    logger = logging.getLogger("threefold")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield stream
    logger.removeHandler(handler)
    logger.setLevel(before)


def test_every_answer_has_headers_that_keep_it_where_it_belongs(server: Server) -> None:
    with server.client() as http:
        for answered in (http.get("/health"), http.get("/v1/mem/list"), http.get("/nope"), http.get("/v1/refs/x")):
            headers = answered.headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "DENY"
            assert headers["referrer-policy"] == "no-referrer"
            assert headers["cross-origin-resource-policy"] == "same-origin"
            assert headers["content-security-policy"].startswith("default-src 'none'")
            assert headers["cache-control"] == "no-store"
            assert re.fullmatch("[0-9a-f]{16}", headers["x-request-id"])
            assert "server" not in headers


def test_how_it_is(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with server.client() as http:
        assert http.get("/health").json() == {"status": "ok", "version": threefold.__version__}
        assert http.get("/ready").json() == {"status": "ready"}

        def find(_: str) -> None:
            raise Unavailable("connection to server at 10.0.0.1 failed")

        monkeypatch.setattr(server.db.tokens, "find", find)
        said = problem(http.get("/ready"), 503)["detail"]
        assert "10.0.0.1" not in said
        assert http.get("/health").status_code == 200


def test_figures_for_prometheus(server: Server) -> None:
    with server.client() as http:
        http.get("/v1/mem/list")
        http.get("/v1/mem/list")
        http.get(f"/v1/mem/search?query={SECRET}&nope=1")
        http.get(f"/v1/refs/mem:record:{SECRET}")
        http.request(SECRET.upper(), f"/{SECRET}")
        answered = http.get("/metrics")
    assert answered.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answered.text.splitlines()
    assert 'threefold_http_requests_total{method="GET",route="/v1/mem/list",status="200"} 2' in lines
    assert 'threefold_http_requests_total{method="GET",route="/v1/mem/search",status="422"} 1' in lines
    assert 'threefold_http_requests_total{method="OTHER",route="/{path}",status="405"} 1' in lines
    assert 'threefold_http_request_duration_seconds_count{method="GET",route="/v1/mem/list"} 2' in lines
    assert 'threefold_http_request_duration_seconds_bucket{method="GET",route="/v1/mem/list",le="+Inf"} 2' in lines
    assert "threefold_http_requests_in_flight 1" in lines
    assert "threefold_rows_pending 0" in lines
    assert SECRET not in answered.text
    for line in lines:
        assert re.fullmatch(r"# (HELP|TYPE) \w+ .+|\w+(\{(\w+=\"[^\"]*\",?)+\})? [\d.e+-]+", line), line


def test_the_log_has_no_content_no_question_no_reference_and_no_secret(server: Server, log: io.StringIO) -> None:
    token = server.token()
    with server.client(token, **{"User-Agent": SECRET, "Referer": f"http://x/{SECRET}"}) as http:
        http.post("/v1/mem/upsert", json={"memory": SECRET})
        http.get("/v1/mem/search", params={"query": SECRET, SECRET: SECRET})
        http.get(f"/v1/refs/conv:conversation:{SECRET}")
        http.get(f"/{SECRET}")
        http.get(f"/v1/{SECRET}/{SECRET}")
        http.post("/v1/mem/search", content=f'{{"{SECRET}', headers={"Content-Type": "application/json"})
        problem(http.get("/v1/broken/fail", params={"text": SECRET}), 500)
        problem(http.get("/v1/broken/odd"), 500)
        http.get("/v1/mem/list", headers={"Authorization": f"Bearer {SECRET}"})
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        accept = {"Accept": "application/json, text/event-stream"}
        for name in ("broken_fail", SECRET):
            http.post("/mcp", json={**call, "params": {"name": name, "arguments": {"text": SECRET}}}, headers=accept)
        http.request(SECRET.upper(), "/")
    assert wait_until(lambda: log.getvalue().count('"route"') == 12)
    said = log.getvalue()
    assert SECRET.lower() not in said.lower()
    assert token not in said
    lines = [json.loads(line) for line in said.splitlines()]
    failed = [each for each in lines if each["level"] == "error"]
    assert any("KeyError at" in each["message"] and "test_http_observing.py" in each["message"] for each in failed)


def test_plain_lines_are_for_people() -> None:
    record = logging.LogRecord("threefold.http.requests", logging.INFO, "", 0, "", (), None)
    record.noted = {"request": "0a", "method": "GET", "route": "/v1/x", "status": 200, "ms": 1.5}
    assert Lines(as_json=False).format(record).endswith("Z GET /v1/x 200 1.5 ms 0a")
    record = logging.LogRecord("threefold", logging.WARNING, "", 0, "background work: %s", ("x",), None)
    assert Lines(as_json=False).format(record).endswith("Z WARNING threefold: background work: x")
    assert json.loads(Lines(as_json=True).format(record))["message"] == "background work: x"


@pytest.mark.parametrize(
    ("name", "said", "given", "told"),
    [
        ("threefold.host", "lane of conversation %r: %s: %s", (SECRET, "KeyError", KeyError(SECRET)),
         "lane of conversation '…': …: KeyError"),
        ("threefold.context", "%s", (f"'own': {SECRET}",), "…"),
        ("threefold.mcp", "a request failed", (), "a request failed: KeyError"),
        ("asyncio", f"Task exception was never retrieved\nfuture: KeyError({SECRET!r})", (),
         "Task exception was never retrieved"),
        ("other", "%d of %(x)s", (SECRET,), ""),
        ("other", "%(count)d of %(what)s", ({"count": 2, "what": SECRET},), "2 of …"),
    ],
)  # fmt: skip
def test_what_agents_engines_and_libraries_say_is_kept_back(name: str, said: str, given: tuple, told: str) -> None:
    kind = (KeyError, KeyError(SECRET), None) if name == "threefold.mcp" else None
    record = logging.LogRecord(name, logging.WARNING, "", 0, said, given, kind)
    assert json.loads(Lines(as_json=True).format(record))["message"] == told


class Collector(HTTPServer):
    """Takes what OpenTelemetry sends."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Taking)
        self.sent, self.came = b"", threading.Event()


class _Taking(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        self.server.sent += self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.server.came.set()

    def log_message(self, *_: object) -> None:
        pass


def test_spans_are_sent_where_an_endpoint_is_configured(
    db: threefold.Threefold, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("opentelemetry.sdk")
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    collector = Collector()
    thread = threading.Thread(target=collector.serve_forever)
    thread.start()
    try:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_port}")
        with served(db) as server, server.client() as http:
            parent = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
            http.get("/v1/mem/search", params={"query": SECRET}, headers=parent)
            http.get(f"/v1/refs/mem:record:{SECRET}")
        assert collector.came.wait(30)
    finally:
        collector.shutdown()
        thread.join()
        collector.server_close()
    assert b"GET /v1/mem/search" in collector.sent
    assert b"/v1/refs/{ref}" in collector.sent
    assert bytes.fromhex("0af7651916cd43dd8448eb211c80319c") in collector.sent
    assert SECRET.encode() not in collector.sent


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "web"
    (folder / "js").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>ü</title>", "utf-8")
    (folder / "js" / "app.js").write_text("export const x = 1\n")
    (folder / "notes.secret").write_text(SECRET)
    (tmp_path / "outside.html").write_text(SECRET)
    return folder


def test_pages_load_nothing_from_elsewhere(
    db: threefold.Threefold, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages.routes, "__defaults__", (site,))
    with served(db, local=None) as server, server.client() as http:
        page, script = http.get("/"), http.get("/js/app.js")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert script.headers["content-type"] == "text/javascript; charset=utf-8"
        for each in (page, script):
            policy = each.headers["content-security-policy"]
            assert policy.startswith("default-src 'self'; script-src 'self'; style-src 'self'")
            assert "unsafe" not in policy
            assert each.headers["x-content-type-options"] == "nosniff"
            assert http.get(each.url, headers={"If-None-Match": each.headers["etag"]}).status_code == 304
        (site / "js" / "app.js").write_text("export const x = 2\n")
        assert http.get("/js/app.js", headers={"If-None-Match": script.headers["etag"]}).text == "export const x = 2\n"
        for path in ("/notes.secret", "/../outside.html", "/%2e%2e/outside.html", "/..%2foutside.html", "/js", "/js/",
                     "/js/../../outside.html", "//etc/passwd", "/%00", "/index.html/", "/web/index.html"):  # fmt: skip
            assert SECRET not in problem(http.get(path), 404)["detail"]
        problem(http.get("/v1/mem/list"), 401)
        problem(http.post("/", json={}), 405)


def test_without_pages_there_are_none(server: Server, tmp_path: Path) -> None:
    assert pages.routes(tmp_path) == []

"""`threefold serve` and `threefold tokens`, as processes of their own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Run, command_line, told
from http_server import problem
from serve_process import ROOT, serving, start
from waiting import wait_until

import threefold

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals are sent to the process")


@POSIX
@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_it_answers_until_a_signal_says_to_stop(store: str, sign: signal.Signals) -> None:
    with serving(store, "--log-json") as (process, http):
        assert http.post("/v1/mem/records", json={"memory": "the secret word is Zinnober"}).status_code == 200
        found = http.get("/v1/mem/search", params={"query": "Zinnober"}).json()["memories"]
        assert len(found) == 1
        assert http.get(f"/v1/refs/{found[0]['ref']}").status_code == 200
        problem(http.get("/v1/mem/search", params={"query": "Zinnober", "Zinnober": "x"}), 422)
        problem(http.get("/Zinnober"), 404)
        problem(http.get("/v1/mem/list", headers={"Authorization": "Bearer Zinnober"}), 401)
        process.send_signal(sign)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "")
    lines = [json.loads(line) for line in err.splitlines()]
    assert [(each["method"], each["route"], each["status"]) for each in lines] == [
        ("POST", "/v1/mem/records", 200), ("GET", "/v1/mem/search", 200), ("GET", "/v1/refs/{ref}", 200),
        ("GET", "/v1/mem/search", 422), ("GET", "/{path}", 404), ("GET", "/v1/{namespace}/{operation}", 401),
    ]  # fmt: skip
    assert all(each.keys() == {"at", "level", "logger", "request", "method", "route", "status", "ms"} for each in lines)
    assert "Zinnober" not in err
    assert found[0]["id"] not in err
    with threefold.open(store, embedder=None, background=False) as db:
        assert len(db.user("ann").mem.list()) == 1


@POSIX
def test_what_is_being_answered_when_it_is_told_to_stop_is_answered(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    with serving(store) as (process, http):
        host, port = http.base_url.host, http.base_url.port
        body = b'{"memory": "likes tea"}'
        with socket.create_connection((host, port)) as wire:
            head = b"POST /v1/mem/records HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            head += b"Content-Length: %d\r\n\r\n"
            wire.sendall(head % len(body) + body[:5])
            assert http.get("/health").status_code == 200
            process.send_signal(signal.SIGTERM)
            assert wait_until(lambda: refuses(host, port))
            wire.sendall(body[5:])
            assert wire.recv(4096).startswith(b"HTTP/1.1 200 ")
        assert process.wait(60) == 0
    with threefold.open(store, embedder=None, background=False) as db:
        assert len(db.user("ann").mem.list()) == 1


def refuses(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return True
    return False


def test_without_json_it_says_in_a_line_where_it_is(tmp_path: Path) -> None:
    process = start(str(tmp_path / "store"), "serve", "--port", "0")
    try:
        line = process.stdout.readline()
    finally:
        process.kill()
        process.communicate()
    assert line.startswith("threefold serves ")
    assert "at http://127.0.0.1:" in line
    assert line.endswith("as ann; Ctrl-C stops it\n")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    call = command_line(tmp_path)
    assert call("remember", "prefers trains").returncode == 0
    return call


def test_from_elsewhere_it_needs_tokens(run: Run, tmp_path: Path) -> None:
    for given in (["--host", "0.0.0.0"], ["--host", "::"], ["--require-token"]):
        refused = run("serve", "--port", "0", *given)
        assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1)
        assert "threefold tokens create" in refused.stderr
    made = told(run, "tokens", "create", "--grant", "mem:read", "--name", "laptop", "--expires", "90d")
    with serving(str(tmp_path / "store"), "--require-token") as (_, http):
        problem(http.get("/v1/mem/list"), 401)
        mine = {"Authorization": f"Bearer {made['token']}"}
        assert len(http.get("/v1/mem/list", headers=mine).json()["memories"]) == 1
        problem(http.post("/v1/mem/upsert", json={"memory": "x"}, headers=mine), 403)
        assert run("tokens", "revoke", made["id"]).stdout == f"{made['id']} holds no more\n"
        problem(http.get("/v1/mem/list", headers=mine), 401)


def test_tokens_are_made_listed_and_revoked(run: Run, tmp_path: Path) -> None:
    made = run("tokens", "create", "--user", "bob", "--write", "--agent", "планировщик", "--app", "crm", "--rate", "60")
    assert made.returncode == 0
    assert made.stdout.startswith("tf_")
    assert made.stdout.count("\n") == made.stderr.count("\n") == 1
    assert made.stdout.strip() not in made.stderr
    other = told(run, "tokens", "create", "--name", "my laptop")
    assert other["grants"] == ["*:read", "cnv:propose", "mem:propose"]
    listed = told(run, "tokens", "list")
    assert listed["tokens"] == [{key: value for key, value in other.items() if key != "token"}]
    everyone = run("tokens", "list", "--all").stdout
    assert "default/bob" in everyone
    assert "планировщик" in everyone
    assert "rate 60" in everyone
    assert made.stdout.strip() not in everyone
    assert "my laptop" in run("tokens", "list").stdout
    for each in tmp_path.rglob("*"):
        if each.is_file():
            content = each.read_bytes()
            assert made.stdout.strip().encode() not in content
            assert other["token"].encode() not in content
    assert told(run, "tokens", "revoke", other["id"]) == {"revoked": other["id"]}
    assert told(run, "tokens", "list")["tokens"] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tokens", "revoke", "tok_0"], "token 'tok_0' does not exist"),
        (["tokens", "create", "--expires", "soon"], "--expires 'soon' is no time; write it like 90d"),
        (["tokens", "create", "--grant", "mem"], "--grant: 'mem' is none; write NAMESPACE:read"),
        (["tokens", "create", "--grant", "mem:read", "--write"], "--write gives every grant"),
        (["serve", "--workers", "0"], "--workers must be a whole number from 1"),
        (["serve", "--host", "203.0.113.1"], "give an"),
        (["serve", "--db", ":memory:", "--workers", "2"], "a store in memory is one process's own"),
        (["serve", "--port", "99999"], "--port 99999 must be"),
        (["serve", "--agent", "helpers"], "agent 'helpers' must be MODULE:NAME"),
        (["serve", "--agent", "no_such_module:x"], "module 'no_such_module' cannot be loaded from here"),
    ],
)
def test_what_is_off_is_said_in_one_line(run: Run, arguments: list[str], said: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert said in done.stderr


def test_agents_of_ones_own_answer(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "agents"
    folder.mkdir()
    (folder / "helpers.py").write_text(
        "from threefold import Agent\n"
        "def helper(run):\n    'Helps with trips.'\n    return f'I heard {run.goal!r}.'\n"
        "silent = Agent('silent', 'has no function')\n"
    )
    with serving(str(tmp_path / "store"), "--agent", "helpers:helper", folder=folder) as (_, http):
        assert [each["name"] for each in http.get("/v1/agents").json()["agents"]] == ["helper"]
        http.post("/v1/lanes/trip", json={"text": "Porto?"})
        assert wait_until(lambda: http.get("/v1/conv/turns?conversation=trip").json()["turns"])
        turn = http.get("/v1/conv/search?query=heard").json()["hits"][0]
        assert (turn["text"], turn["agent"]) == ("I heard 'Porto?'.", "helper")
    process = start(str(tmp_path / "store"), "serve", "--port", "0", "--agent", "helpers:silent", folder=folder)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.count("\n")) == (1, "", 1)
    assert "agent 'silent' has no function of its own; name a chat model with --chat" in err


def test_where_an_agent_fails_is_in_the_log_without_its_words(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def breaks(run):\n    raise ValueError(f'no {run.goal}')\n")
    with serving(str(tmp_path / "store"), "--agent", "broken:breaks", folder=tmp_path) as (process, http):
        http.post("/v1/lanes/trip", json={"text": "Zinnober"})
        assert wait_until(lambda: http.get("/v1/conv/turns?conversation=trip").json()["turns"])
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=60)
    assert "… failed: ValueError at broken.py:2\n" in log
    assert "Zinnober" not in log


def test_a_port_that_is_taken_is_said(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run("serve", "--port", str(taken.getsockname()[1]), "--host", "127.0.0.1")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "give another with --port" in done.stderr


def test_without_the_extra_it_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "starlette.py").write_text("raise ImportError('no starlette')")
    path = os.pathsep.join([str(tmp_path), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, "-m", "threefold", "--db", str(tmp_path / "store"), "serve"],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "pip install 'threefold[serve]'" in done.stderr

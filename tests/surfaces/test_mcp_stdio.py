"""`threefold mcp`, a process of its own, over its real standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from command_line import SOURCE, Run, command_line
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_client import ERAS, text_of

import threefold

NOISY = '''
import logging, os, subprocess, sys, threading
from threefold import Service, operation

print("loaded")
logging.getLogger("noisy").addHandler(logging.StreamHandler(sys.stdout))

class Noisy(Service):
    namespace = "noisy"
    line = "Prints wherever it can"

    @operation()
    def make(self, caller) -> dict:
        """Print everywhere: 喧嘩."""
        print("printed and not flushed, 喧嘩")
        print("printed", file=sys.__stdout__, flush=True)
        os.write(1, b"written\\n")
        subprocess.run([sys.executable, "-c", "print('a child')"], check=True)
        read = subprocess.run([sys.executable, "-c", "import sys; sys.exit(len(sys.stdin.read()))"]).returncode
        logging.getLogger("noisy").critical("logged")
        logging.getLogger().debug("whispered")
        return {"read": read, "said": "喧嘩"}

    @operation()
    def hang(self, caller) -> dict:
        """Never end."""
        print("hangs", file=sys.stderr, flush=True)
        threading.Event().wait()
'''


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return command_line(tmp_path)


def install(folder: Path) -> None:
    """An app that publishes its service, as an installed package does."""
    (folder / "noisy.py").write_text(NOISY, "utf-8")
    package = folder / "noisy-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: noisy\nVersion: 1.0\n", "utf-8")
    (package / "entry_points.txt").write_text("[threefold.services]\nnoisy = noisy:Noisy\n", "utf-8")


def environment(folder: Path) -> dict[str, str]:
    plain = {k: v for k, v in os.environ.items() if not k.startswith("THREEFOLD")}
    path = f"{SOURCE}{os.pathsep}{folder}"
    # As on Windows, where text is not UTF-8 unless it is told to be.
    return {**plain, "PYTHONPATH": path, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}


def command(folder: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "threefold", "--db", str(folder / "store"), "--user", "ann", "mcp", *arguments]


def session(
    folder: Path, work: Callable[[Client], Awaitable[None]], mode: str, *arguments: str, errors: Path | None = None
) -> None:
    program, *rest = command(folder, *arguments)
    parameters = StdioServerParameters(command=program, args=rest, env=environment(folder))

    async def run_() -> None:
        with (errors or folder / "errors").open("w", encoding="utf-8") as errlog:
            async with Client(stdio_client(parameters, errlog), mode=mode) as client:
                assert client.protocol_version == ERAS[mode]
                await work(client)

    asyncio.run(run_())


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command(folder, *arguments), env=environment(folder), stdin=pipe, stdout=pipe, stderr=pipe
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def send(process: subprocess.Popen[bytes], method: str, number: int | None = None, **params: Any) -> None:
    message = {"jsonrpc": "2.0", "method": method, "params": params, **({} if number is None else {"id": number})}
    assert process.stdin is not None
    process.stdin.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")
    process.stdin.flush()


def answer(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None
    return dict(json.loads(process.stdout.readline()))


def greet(process: subprocess.Popen[bytes]) -> None:
    client = {"name": "test", "version": "1"}
    send(process, "initialize", 1, protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
    assert answer(process)["result"]["serverInfo"]["name"] == "threefold"
    send(process, "notifications/initialized")


@pytest.mark.parametrize("mode", ERAS)
def test_a_session_from_an_empty_place_to_a_memory_that_is_found(tmp_path: Path, mode: str) -> None:
    async def work(client: Client) -> None:
        assert {"search", "fetch", "context", "mem_propose"} <= {
            each.name for each in (await client.list_tools()).tools
        }
        proposed = await client.call_tool("mem_propose", {"memory": "fährt lieber 電車", "context": "\u2028\x7f🚆"})
        assert "電車" in text_of(proposed)
        found = await client.call_tool("mem_proposals", {})
        assert found.structured_content["memories"][0]["memory"] == "fährt lieber 電車"
        ref = found.structured_content["memories"][0]["ref"]
        assert (await client.read_resource(ref)).contents
        with pytest.raises(MCPError, match="no such resource"):
            await client.read_resource("mem:record:mem_0")
        with pytest.raises(MCPError, match="unknown tool"):
            await client.call_tool("mem_delete", {"id": ref})

    session(tmp_path, work, mode)
    errors = (tmp_path / "errors").read_text("utf-8")
    assert errors == f"threefold mcp: a new store at {tmp_path / 'store'}\n"
    with threefold.open(tmp_path / "store", background=False) as db:
        (proposal,) = db.user("ann").mem.proposals()
        assert [(each.by, each.agent) for each in db.user("ann").mem.history(proposal.id)] == [("agent", "mcp")]


def test_grants_and_the_agent_are_those_of_the_command_line(tmp_path: Path) -> None:
    async def narrow(client: Client) -> None:
        assert {each.name for each in (await client.list_tools()).tools} == {
            "mem_search", "mem_policy", "mem_list", "mem_proposals", "mem_get", "mem_history", "mem_hotset",
            "doc_upsert", "doc_delete", "services", "about", "whoami",
        }  # fmt: skip

    async def wide(client: Client) -> None:
        made = await client.call_tool("mem_upsert", {"memory": "drinks tea"})
        assert made.structured_content["status"] == "active"

    session(tmp_path, narrow, "auto", "--grant", "mem:read", "--grant=doc:write")
    session(tmp_path, wide, "auto", "--write", "--agent", "")


@pytest.mark.parametrize("arguments", [(), ("--verbose",)])
def test_whoever_prints_or_logs_only_the_protocol_is_on_standard_output(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    install(tmp_path)
    with started(tmp_path, *arguments) as process:
        greet(process)
        send(process, "tools/call", 2, name="noisy_make", arguments={})
        made = answer(process)
        assert made["result"]["structuredContent"] == {"read": 0, "said": "喧嘩"}, made
        assert process.stdin is not None
        process.stdin.write(b'\nno JSON\n{"jsonrpc": "2.0"}\n[1]\n\xff\xfe\n{"jsonrpc":"2.0","id":3,"method":"ping"}\n')
        process.stdin.flush()
        assert answer(process) == {"jsonrpc": "2.0", "id": 3, "result": {}}
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    for line in out.splitlines():
        assert json.loads(line)["jsonrpc"] == "2.0"
    told = errors.decode("utf-8")
    for noise in ("loaded", "printed and not flushed", "printed\n", "written", "a child", "logged"):
        assert noise in told
    assert ("whispered" in told) is bool(arguments)
    assert "Traceback" not in told


@pytest.mark.parametrize(
    "sign",
    [
        None,
        pytest.param(signal.SIGTERM, marks=pytest.mark.skipif(sys.platform == "win32", reason="kills there")),
        pytest.param(signal.SIGINT, marks=pytest.mark.skipif(sys.platform == "win32", reason="not to one process")),
    ],
)
def test_it_ends_when_the_client_leaves_or_a_signal_says_so(tmp_path: Path, sign: signal.Signals | None) -> None:
    with started(tmp_path) as process:
        greet(process)
        send(process, "tools/call", 2, name="mem_propose", arguments={"memory": "drinks tea"})
        assert answer(process)["result"]["isError"] is False
        if sign is not None:
            process.send_signal(sign)
            assert process.stdout is not None
            assert process.stdout.read() == b""
            process.wait(60)
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"")
    assert errors.decode().splitlines() == [f"threefold mcp: a new store at {tmp_path / 'store'}"]
    # Nothing of a store that was closed is left in its log.
    assert {each.suffix for each in (tmp_path / "store").iterdir() if each.is_file()} <= {".db", ".sqlite", ""}


def test_a_call_that_never_ends_does_not_keep_it(tmp_path: Path) -> None:
    install(tmp_path)
    with started(tmp_path) as process:
        greet(process)
        send(process, "tools/call", 2, name="noisy_hang", arguments={})
        assert process.stderr is not None
        while process.stderr.readline() != b"hangs\n":
            pass
        send(process, "notifications/cancelled", requestId=2)
        send(process, "ping", 3)
        assert answer(process) == {"jsonrpc": "2.0", "id": 3, "result": {}}
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"")
    assert b"a call did not end" in errors
    assert b"Traceback" not in errors


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe ends otherwise there")
def test_a_client_that_does_not_listen_any_more_ends_it_too(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        greet(process)
        assert process.stdout is not None
        process.stdout.close()
        send(process, "ping", 2)
        assert process.wait(60) == 0
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()


def test_a_store_that_cannot_be_opened_is_told_to_the_client_too(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file, not a folder")
    with started(tmp_path) as process:
        greet(process)
        send(process, "tools/call", 2, name="conv_list", arguments={})
        result = answer(process)["result"]
        assert result["isError"] is True
        assert str(tmp_path) not in json.dumps(result)
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"")
    assert b"`threefold doctor` says more" in errors
    assert b"Traceback" not in errors


def test_without_the_extra_one_line_says_how_to_get_it(tmp_path: Path) -> None:
    code = "import sys; sys.modules['mcp'] = None; from threefold.surfaces.cli.main import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "mcp", "--user", "ann"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.endswith("pip install 'threefold[mcp]'")


def test_wrong_grants_are_refused(run: Run) -> None:
    for arguments in (("--grant", "mem"), ("--grant", "mem:delete"), ("--grant", "mem:read", "--write")):
        done = run("mcp", *arguments)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("threefold: --")
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("host", ["claude-code", "claude-desktop", "cursor", "vscode", "codex"])
def test_what_is_printed_for_a_host_starts_it(run: Run, tmp_path: Path, host: str) -> None:
    done = run("mcp", "--print-config", host, "--grant", "mem:read", "--agent", "ö", "--tenant", "t")
    assert done.returncode == 0, done.stderr
    if host == "codex":
        server = tomllib.loads(done.stdout)["mcp_servers"]["threefold"]
    else:
        (servers,) = json.loads(done.stdout).values()
        server = servers["threefold"]
    assert server.get("type", "stdio") == "stdio"
    assert Path(server["command"]).is_absolute()
    assert server["args"][-7:] == ["--user", "ann", "--tenant", "t", "mcp", "--grant=mem:read", "--agent", "ö"][-7:]
    parameters = StdioServerParameters(command=server["command"], args=server["args"], env=environment(tmp_path))

    async def work() -> None:
        with (tmp_path / "errors").open("w") as errlog:
            async with Client(stdio_client(parameters, errlog)) as client:
                assert len((await client.list_tools()).tools) == 10

    asyncio.run(work())
    assert (tmp_path / "store").is_dir()
    told = json.loads(run("mcp", "--print-config", host, "--json").stdout)
    assert told["host"] == host
    assert "threefold" in told["configuration"]

"""What one can do, all can do: every operation gives the same in Python, on the command line, over MCP and HTTP."""

from __future__ import annotations

import json
import re
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from http_server import served
from mcp_client import Tasks, caller, session

import threefold
from threefold.services import Operation, published
from threefold.surfaces.cli import main as cli
from threefold.testing.fakes import HashEmbedder

REF = "conv:ar:conv_trip.turn_1.user.prompt"
# What is needed beside `VALUES`; what waits or fails by design is called elsewhere.
APART = {"task_broken", "task_odd", "task_unheard", "task_wait", "task_both", "task_numbers"}
VALUES: dict[str, Any] = {
    "query": "harbour", "goal": "harbour", "refs": [REF, "mem:record:mem_0"], "ref": REF, "board": "lisbon",
    "name": "trip", "conversation": "trip", "texts": 2, "size": 20,
}  # fmt: skip


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with something of each kind; the app `task` is installed as a package's would be."""
    entry = EntryPoint("task", "mcp_client:Tasks", published.GROUP)
    monkeypatch.setattr(published, "entry_points", lambda group: [entry] if group == published.GROUP else [])
    monkeypatch.setenv("THREEFOLD_EMBEDDER", "none")
    monkeypatch.setattr("getpass.getuser", lambda: "ann")
    with threefold.open(tmp_path, embedder=None, background=False) as db:
        ann = db.user("ann")
        with ann.turn("trip", turn="1") as turn:
            turn.prompt("Where is the harbour?")
            turn.answer("Behind the 駅")
        ann.mem.remember("prefers the harbour")
        ann.doc.ingest("# Harbour\n\nThe harbour is old.", source="guide.md")
        ann.cnv.board("lisbon").pin(REF, note="für später")
    return tmp_path


def arguments(operation: Operation, ids: dict[str, str]) -> dict[str, Any]:
    values = VALUES | {"id": ids.get(operation.namespace, REF)}
    return {name: values[name] for name in operation.takes.get("required", ())}


def plain(value: Any) -> str:
    """As JSON, but for moments of the call and scores that fall with time."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    text = re.sub(r'"(computed_at|at|because)": "[^"]*"', '""', text)
    return re.sub(r"\d\.\d{3,}(e-\d+)?", lambda found: f"{float(found[0]):.2f}", text)


def named(asked: list[tuple[Operation, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    return [(each.full_name, given) for each, given in asked]


def queried(given: dict[str, Any]) -> dict[str, Any]:
    return {name: json.dumps(value) if isinstance(value, dict) else value for name, value in given.items()}


async def call(client: Any, name: str, given: dict[str, Any]) -> Any:
    return await client.call_tool(name, given)


def test_every_operation_is_on_every_surface(store: Path) -> None:
    with threefold.open(store, embedder=None, background=False) as db:
        names = [each.full_name for each in db.user("ann").services.operations()]
        assert len(set(names)) == len(names)
        tools = session(db, lambda client: client.list_tools(), who=caller(grants=None)).tools
    assert sorted(each.name for each in tools) == sorted([*names, "services", "about"])
    assert {"conv_search", "conv_catalog", "mem_search", "mem_get", "mem_propose", "cnv_list", "cnv_get", "cnv_pin",
            "doc_search", "context", "search", "fetch", "task_list"} <= set(names)  # fmt: skip


def test_what_reads_gives_the_same_on_every_surface(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with threefold.open(store, embedder=None, background=False) as db:
        ann = db.user("ann")
        ids = {"mem": ann.mem.list()[0].id, "doc": "guide.md"}
        asked = [
            (each, arguments(each, ids))
            for each in ann.services.operations()
            if each.access == "read" and each.full_name not in APART
        ]
        in_python = {each.full_name: each(caller(grants=None, agent=None), given) for each, given in asked}

        async def over_mcp(client: Any) -> dict[str, Any]:
            return {
                each.full_name: (await client.call_tool(each.full_name, given)).structured_content
                for each, given in asked
            }

        given_over_mcp = session(db, over_mcp, who=caller(grants=None, agent=None))
        with served(db) as server, server.client() as http:
            paths = {
                each.full_name: f"/v1/{each.full_name.replace('_', '/', each.namespace != 'all')}" for each, _ in asked
            }
            posted = {name: http.post(paths[name], json=given).json() for name, given in named(asked)}
            gotten = {name: http.get(paths[name], params=queried(given)).json() for name, given in named(asked)}
    for operation, given in asked:
        name = operation.full_name
        command = ["--db", str(store), "call", operation.namespace, operation.name, json.dumps(given)]
        assert cli.main(command) == 0, name
        on_the_command_line = json.loads(capsys.readouterr().out)
        assert plain(on_the_command_line) == plain(in_python[name]), name
        assert plain(given_over_mcp[name]) == plain(in_python[name]), name
        assert plain(posted[name]) == plain(in_python[name]), name
        assert plain(gotten[name]) == plain(in_python[name]), name


def test_what_is_refused_is_refused_with_the_same_words(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = [
        ("conv", "search", {}), ("conv", "search", {"query": "x", "limit": 0}), ("mem", "get", {"id": "mem_0"}),
        ("cnv", "get", {"board": "nowhere"}), ("cnv", "move", {"board": "lisbon", "card": "x", "x": 1, "y": 2}),
        ("doc", "search", {"query": "x", "filter": {"a": {"nope": 1}}}), ("conv", "get", {"ref": "nonsense"}),
        ("all", "fetch", {"id": "task:issue:9"}), ("mem", "list", {"cursor": "x"}), ("all", "forget", {}),
        ("all", "forget", {"confirm": "bob"}), ("all", "whoami", {"user": "bob"}),
    ]  # fmt: skip
    with threefold.open(store, embedder=None, background=False) as db:
        for namespace, name, given in wrong:
            operation = db.user("ann").services.operation(namespace, name)
            with pytest.raises(threefold.ThreefoldError) as refused:
                operation(caller(grants=None, agent=None), given)
            said = str(refused.value)
            asked = partial(call, name=operation.full_name, given=given)
            result = session(db, asked, who=caller(grants=None, agent=None))
            assert result.is_error
            assert [item.text for item in result.content] == [said]
            with served(db) as server, server.client() as http:
                path = f"/v1/{name}" if namespace == "all" else f"/v1/{namespace}/{name}"
                assert http.post(path, json=given).json()["detail"] == said
            assert cli.main(["--db", str(store), "call", namespace, name, json.dumps(given)]) == 1
            assert capsys.readouterr().err == f"threefold: {said}\n"


def test_an_app_is_on_every_surface_as_a_realm_is(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--db", str(store), "services"]) == 0
    assert Tasks.line in capsys.readouterr().out
    assert cli.main(["--db", str(store), "show", "task:issue:7"]) == 0
    assert capsys.readouterr().out == "Fix the door\nIt squeaks.\n"
    assert cli.main(["--db", str(store), "board", "pin", "lisbon", "task:issue:7"]) == 0
    assert cli.main(["--db", str(store), "board", "show", "lisbon"]) == 0
    assert "Fix the door (issue)" in capsys.readouterr().out
    with threefold.open(store, embedder=HashEmbedder(8), background=False) as db:
        found = session(db, lambda client: client.read_resource("task:issue:7"))
    assert [each.text for each in found.contents] == ["Fix the door\nIt squeaks."]  # type: ignore[union-attr]

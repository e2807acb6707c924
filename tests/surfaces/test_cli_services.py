"""services and call: every operation from the command line, as the table has it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Run, command_line, told

import threefold


@pytest.fixture
def run(tmp_path: Path) -> Run:
    call = command_line(tmp_path)
    assert call("remember", "prefers trains").returncode == 0
    return call


def test_what_there_is_and_what_each_is(run: Run, tmp_path: Path) -> None:
    lines = run("services").stdout.splitlines()
    assert [line.split()[0] for line in lines][:3] == ["all", "conv", "mem"]
    about = run("services", "mem").stdout
    assert "propose" in about
    assert "mem:propose" in about
    schema = run("services", "mem", "search").stdout
    assert "threefold call mem search query=…" in schema
    with threefold.open(tmp_path / "store", background=False) as db:
        services = db.user("ann").services
        assert told(run, "services") == {"services": [each._asdict() for each in services.introductions()]}
        for each in services.introductions():
            assert told(run, "services", each.namespace) == services.about(each.namespace)
        assert told(run, "services", "mem", "search") == services.schema("mem", "search")


def test_an_operation_is_called_by_names_and_values(run: Run) -> None:
    assert told(run, "call", "mem", "search", "query=how does she travel", "limit=1", "explain=true")["memories"]
    assert told(run, "call", "mem", "search", "query=trains", "layers=session", "layers=working")["memories"] == []
    assert told(run, "call", "mem", "search", "query=trains", 'layers=["longterm"]')["memories"]
    made = told(run, "call", "doc", "upsert", '{"text": "# Visum\\n\\n60 €", "source": "visa"}', 'metadata={"年": 1}')
    assert told(run, "call", "doc", "get", f"id={made['id']}")["metadata"] == {"年": 1}
    assert told(run, "call", "doc", "search", "query=visum", 'filter={"年": 1}')["chunks"]
    assert told(run, "call", "doc", "search", "query=visum", 'filter={"年": 2}')["chunks"] == []
    assert "年" in run("call", "doc", "list").stdout


def test_as_an_agent_it_only_proposes(run: Run) -> None:
    made = told(run, "call", "mem", "upsert", "memory=likes tea", "--agent", "planner")
    assert made["status"] == "proposed"
    refused = run("call", "mem", "confirm", f"id={made['id']}", "--agent", "planner")
    assert refused.returncode == 1
    assert "the person's" in refused.stderr
    assert told(run, "call", "mem", "confirm", f"id={made['ref']}")["status"] == "active"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["mem", "search"], "missing required field `query`"),
        (["mem", "search", "query=x", "limit=many"], "limit: Expected `int`, got `str`"),
        (["mem", "search", "query=x", "limit=1000"], "limit: Expected `int` <= 100"),
        (["mem", "search", "query=x", "user=bob"], "unknown field `user`"),
        (["mem", "search", "trains"], "argument 'trains' has no value; write trains=…"),
        (["mem", "search", "{broken"], "is no JSON"),
        (["doc", "search", "query=x", "filter=year"], "filter: 'year' is no JSON"),
        (["mem", "serach"], "no operation 'serach'; it has search"),
        (["task", "list"], "service 'task' is not published; there are all, conv, mem"),
    ],
)
def test_what_is_off_is_said_in_one_line(run: Run, arguments: list[str], said: str) -> None:
    done = run("call", *arguments)
    assert done.returncode == 1
    assert done.stdout == ""
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_arguments_come_from_standard_input(tmp_path: Path, run: Run) -> None:
    command = [sys.executable, "-m", "threefold", "--db", str(tmp_path / "store"), "--user", "ann"]
    done = subprocess.run(
        [*command, "call", "mem", "search", "-"],
        input=json.dumps({"query": "trains"}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["memories"][0]["memory"] == "prefers trains"


def test_any_reference_is_shown(run: Run) -> None:
    memory = told(run, "recall", "trains")["memories"][0]
    assert run("show", memory["ref"]).stdout == "prefers trains\n"
    assert told(run, "show", memory["ref"])["kind"] == "memory"
    gone = run("show", "mem:record:mem_0")
    assert (gone.returncode, gone.stderr.count("\n")) == (1, 1)
    nobody = run("show", "task:issue:7")
    assert "service 'task' is not published" in nobody.stderr

"""board: the operations of `cnv`, made from the table of operations, as a person uses them."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Run, command_line, told

from threefold.services.cnv import CnvService
from threefold.surfaces.cli.main import acts_of, parser


@pytest.fixture
def run(tmp_path: Path) -> Run:
    call = command_line(tmp_path)
    assert call("remember", "prefers trains").returncode == 0
    return call


def memory(run: Run) -> str:
    return str(told(run, "recall", "trains")["memories"][0]["ref"])


def test_every_operation_of_boards_is_an_act_and_no_other() -> None:
    commands = acts_of(parser())
    names = {"get": "show", "upsert": "create", "suggest_bin": "suggest-bin"}
    operations = CnvService(lambda caller: pytest.fail("only the table is looked at")).operations
    assert list(acts_of(commands["board"])) == [names.get(name, name) for name in operations]
    for name, act in acts_of(commands["board"]).items():
        assert act.description, name
        assert "--json" in act.format_help()


def test_a_board_is_pinned_to_looked_at_and_found(run: Run) -> None:
    ref = memory(run)
    pinned = run("board", "pin", "lisbon", ref, "--note", "für die Reise", "--x", "40", "--y", "-8.5")
    assert (pinned.returncode, pinned.stderr) == (0, "")
    assert "40,-8.5" in pinned.stdout
    assert (
        run("board", "suggest", "lisbon", "task:issue:7", "--why", "she likes it", "--agent", "planner").returncode == 0
    )
    shown = run("board", "show", "lisbon").stdout
    for part in ("prefers trains (memory)", "note: für die Reise", "suggested by planner: she likes it", "cnv:lisbon"):
        assert part in shown
    board = told(run, "board", "show", "lisbon")
    assert [card["shown"]["standing"] for card in board["cards"]] == ["there", "unknown"]
    assert told(run, "board", "search", "trains")["hits"][0]["ref"] == ref
    assert run("board", "search", "trains").stdout.splitlines()[1].strip() == ref
    rendered = run("board", "render", "lisbon").stdout
    assert "> shows: prefers trains" in rendered
    assert "1 suggested" in run("board", "list").stdout
    assert run("show", "cnv:lisbon").stdout.startswith("lisbon\nfür die Reise")


def test_a_board_is_arranged_by_the_person_alone(run: Run) -> None:
    ref = memory(run)
    made = told(run, "board", "create", "lisbon", "--title", "Lisbon 旅行")
    assert (made["title"], made["cards"]) == ("Lisbon 旅行", 0)
    card = told(run, "board", "pin", "lisbon", ref)["id"]
    assert told(run, "board", "move", "lisbon", card, "1", "2", "--revision", "2")["rect"]["y"] == 2
    refused = run("board", "move", "lisbon", card, "5", "5", "--revision", "2")
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1)
    assert "read it again" in refused.stderr
    agent = run("board", "bin", "lisbon", card, "--agent", "planner")
    assert agent.returncode == 1
    assert "person" in agent.stderr
    done = told(run, "board", "edit", "lisbon", f'[{{"op": "bin", "card": "{card}"}}, {{"op": "archive"}}]')
    assert (done["archived"], done["cards"][0]["state"]) == (True, "binned")
    assert told(run, "board", "list")["boards"] == []
    assert len(told(run, "board", "list", "--archived")["boards"]) == 1
    assert told(run, "board", "show", "lisbon", "--revision", "2")["cards"][0]["state"] == "placed"
    assert told(run, "board", "restore", "lisbon", ref)["state"] == "placed"
    assert [each["acts"] for each in told(run, "board", "history", "lisbon")["revisions"]][-1] == ["rename"]
    assert told(run, "board", "delete", "lisbon")["stores"]["turns"] == 1
    assert run("board", "show", "lisbon").returncode == 1


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["board", "show", "nowhere"], 1, "nowhere"),
        (["board", "pin", "lisbon", "nonsense"], 1, "reference"),
        (["board", "pin", "lisbon", "mem:record:x", "--x", "left"], 1, "x: Expected `float`"),
        (["board", "edit", "lisbon", "[{]"], 2, "is no JSON"),
        (["board", "edit", "lisbon", "{}"], 1, "list"),
        (["board"], 2, "ACT"),
        (["board", "pin"], 2, "BOARD"),
        (["board", "list", "--limit", "0"], 1, "limit: Expected `int` >= 1"),
    ],
)
def test_what_is_off_is_said_in_one_line(run: Run, arguments: list[str], status: int, said: str) -> None:
    done = run(*arguments)
    assert done.returncode == status
    assert said in done.stderr
    assert status == 2 or done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr

"""Agents of one's own in a server: they answer in lanes, and are told of."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from http_server import problem, served
from test_http_lanes import Viewer

import threefold
from threefold import Agent, Capability
from threefold.errors import Conflict, InvalidInput
from threefold.host.loading import load_agents

DEPLOYS = Agent("deployer", "deploys things", (Capability("deploy", "deployment of services", 0.9),), executor=str)


async def helper(run: object) -> str:
    """Helps with trips."""
    return "Take the train."


@pytest.fixture
def db() -> threefold.Threefold:
    return threefold.open(":memory:", embedder=None, background=False)


def test_they_are_told_of_and_answer(db: threefold.Threefold) -> None:
    with db, served(db, [helper, DEPLOYS]) as server, server.client() as http:
        assert http.get("/v1/agents").json() == {
            "agents": [
                {"name": "helper", "description": "Helps with trips.", "capabilities": []},
                {
                    "name": "deployer",
                    "description": "deploys things",
                    "capabilities": [{"id": "deploy", "description": "deployment of services", "confidence": 0.9}],
                },
            ]
        }
        viewer = Viewer(server, agent="helper")
        assert http.post("/v1/lanes/trip", json={"text": "Porto?", "agent": "helper"}).status_code == 202
        assert viewer.ends()[-1]["result"]["agent"] == "helper"
        said = problem(http.post("/v1/lanes/trip", json={"text": "x", "agent": "nobody"}), 404)["detail"]
        assert "there are: helper, deployer" in said
        with server.client(server.token(grants=["mem:read"])) as other:
            problem(other.get("/v1/agents"), 403)


def test_without_any_none_are_told_of(db: threefold.Threefold) -> None:
    with db, served(db) as server, server.client() as http:
        assert http.get("/v1/agents").json() == {"agents": []}


def test_two_of_one_name_are_refused(db: threefold.Threefold) -> None:
    with db, pytest.raises(Conflict, match="'helper' is registered already"), served(db, [helper, helper]):
        pass


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    path = tmp_path / "own_agents.py"
    path.write_text(
        "from threefold import Agent\n"
        "def one(run):\n    'The first.'\n    return 'one'\n"
        "class Kind:\n    pass\n"
        "two = Agent('two', 'the second', executor=one)\n"
        "both = [one, two]\n"
        "finder = Agent('finder', executor=one)\n"
        "def none():\n    return 'none'\n"
        "nobody = []\n"
    )
    (tmp_path / "broken_agents.py").write_text("import json\n1 / 0\n")
    yield path
    for name in ("own_agents", "broken_agents"):
        sys.modules.pop(name, None)


def test_they_are_found_by_name_in_the_working_directory(module: Path) -> None:
    assert [each.name for each in load_agents(["own_agents:one", "own_agents:two"])] == ["one", "two"]
    assert [each.description for each in load_agents(["own_agents:both"])] == ["The first.", "the second"]
    assert load_agents([]) == ()


@pytest.mark.parametrize(
    ("names", "error", "said"),
    [
        (["own_agents"], InvalidInput, "'own_agents' must be MODULE:NAME"),
        ([":one"], InvalidInput, "must be MODULE:NAME"),
        (["no_such:one"], InvalidInput, "module 'no_such' cannot be loaded from here: ModuleNotFoundError"),
        (["broken_agents:x"], InvalidInput, "ZeroDivisionError: division by zero"),
        (["own_agents:three"], InvalidInput, "module 'own_agents' has no 'three'"),
        (["own_agents:Kind"], InvalidInput, "Kind is a class"),
        (["own_agents:__doc__"], InvalidInput, "None is no Agent"),
        (["own_agents:one", "own_agents:both"], Conflict, "own_agents:both: an agent 'one' is registered already"),
        (["own_agents:finder"], Conflict, "'finder' is that of a built-in agent"),
        (["own_agents:none"], InvalidInput, "agent 'none' is called with one argument, the run: too many"),
        (["own_agents:nobody"], InvalidInput, "own_agents:nobody: it is an empty list"),
    ],
)
def test_what_is_no_agent_is_refused(module: Path, names: list[str], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        load_agents(names)

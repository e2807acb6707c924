"""Context and ask on the command line, as a person types it; and the example that ships."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Run, command_line, told

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return command_line(tmp_path)


def test_from_a_question_to_where_the_answer_came_from(run: Run, tmp_path: Path) -> None:
    assert "no store" in run("context", "x").stderr
    (tmp_path / "guide.md").write_text("# Fähren\n\nDie Fähre nach Porto Santo geht um acht Uhr.\n", "utf-8")
    assert run("ingest", "guide.md").returncode == 0
    assert run("remember", "fährt lieber Zug", "--kind", "preference").returncode == 0

    asked = told(run, "ask", "Wann geht die Fähre nach Porto Santo?", "--thread", "madeira")
    assert (asked["agent"], asked["status"], asked["thread"]) == ("finder", "completed", "madeira")
    assert "um acht Uhr" in asked["answer"]
    ((label, ref),) = asked["citations"].items()
    assert ref.startswith("doc:")
    assert "um acht Uhr" in run("show", ref).stdout
    assert told(run, "show", asked["ref"])["value"]["messages"][0]["text"] == "Wann geht die Fähre nach Porto Santo?"

    found = told(run, "context", "und die Fähre zurück von Porto Santo?", "--thread", "madeira", "--budget", "300")
    assert found["estimated_tokens"] <= found["budget"] == 300
    assert [entry["section"] for entry in found["memories"]] == ["longterm"]
    assert found["thread"]["messages"][0]["text"] == "Wann geht die Fähre nach Porto Santo?"

    said = run("context", "Fähre nach Porto Santo").stdout
    assert "> Die Fähre nach Porto Santo geht um acht Uhr." in said
    explained = run("context", "Fähre nach Porto Santo", "--explain", "--budget", "60").stdout
    assert "of 60 tokens" in explained
    assert "left out" in explained
    plain = run("ask", "Wann geht die Fähre nach Porto Santo?")
    assert plain.returncode == 0
    assert label in plain.stdout
    assert "recorded as conv:ar:conv_intent-" in plain.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("context", "x", "--budget", "-3"), 1, "budget -3 must be"),
        (("context", "x", "--budget", "many"), 2, "invalid int value"),
        (("context", "x", "--engine", "none"), 1, "context engine 'none' is not registered; there are default"),
        (("context",), 2, "required: goal"),
        (("ask", "x", "--thread", " "), 1, "thread is empty"),
    ],
)
def test_a_mistake_is_told_in_one_line(run: Run, arguments: tuple[str, ...], status: int, said: str) -> None:
    assert run("remember", "something").returncode == 0
    done = run(*arguments)
    assert done.returncode == status
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_the_example_runs_without_a_key() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / "deploy_assistant.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"},
        capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "512 CPU units" in done.stdout
    assert "cited: d1 = doc:org_" in done.stdout
    assert "m1  longterm" in done.stdout
    assert "k1  organizational" in done.stdout
    assert "the thread: 2 messages before this one" in done.stdout

"""Redaction chosen from the command line and the environment, and what is shown of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from secrets_of_tests import PERSONAL, SECRETS

ROOT = Path(__file__).parent.parent.parent
KEY, MAIL = SECRETS["github pat"], PERSONAL["email"]

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    pytest.importorskip("kingfisher_sdk", reason="the extra `redact` is not installed")

    def call(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        plain = {k: v for k, v in os.environ.items() if not k.startswith("THREEFOLD")}
        path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        own = {"PYTHONPATH": path, "THREEFOLD_DB": str(tmp_path / "store"), "THREEFOLD_USER": "ann"}
        return subprocess.run(
            [sys.executable, "-m", "threefold", *arguments],
            env={**plain, **own, **environment},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )

    return call


def test_a_history_is_imported_by_the_rule_that_was_named(run: Run, tmp_path: Path) -> None:
    line = {"conversation": "trip", "id": "1", "role": "user", "content": f"{KEY} of {MAIL}"}
    history = tmp_path / "history.jsonl"
    history.write_text(json.dumps({**line, "at": "2026-05-01T10:00:00Z"}) + "\n", "utf-8")
    done = run("import", str(history), "--embedder", "none", THREEFOLD_REDACT="secrets")
    assert done.stdout.startswith("1 turn imported"), done.stderr
    (hit,) = json.loads(run("search", "redacted", "--json", "--embedder", "none").stdout)["hits"]
    assert hit["text"] == f"[redacted: github pat] of {MAIL}"
    shown = run("show", hit["turn_ref"] if "turn_ref" in hit else hit["ref"].replace("user.prompt", "turn.log")).stdout
    assert "redacted: 1 github pat" in shown


def test_an_option_goes_before_the_environment(run: Run) -> None:
    kept = run("remember", f"write to {MAIL}", "--redact", "secrets+personal", "--json", THREEFOLD_REDACT="secrets")
    memory = json.loads(kept.stdout)["memory"]
    assert (memory["memory"], memory["redacted"]) == ("write to [redacted: email]", {"email": 1})
    literal = run("remember", f"call {MAIL}", "--redact", "none", "--json", THREEFOLD_REDACT="secrets+personal")
    assert json.loads(literal.stdout)["memory"]["memory"] == f"call {MAIL}"


def test_an_unknown_rule_is_refused_by_name(run: Run) -> None:
    done = run("remember", "anything", THREEFOLD_REDACT="all")
    assert done.returncode == 1
    assert "'all'" in done.stderr
    assert "secrets+personal" in done.stderr

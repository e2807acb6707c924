"""Threads on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import threefold
from threefold.surfaces.cli.main import main


@pytest.fixture
def store(tmp_path: Path) -> str:
    with threefold.open(tmp_path / "s", embedder=None, background=False) as db:
        thread = db.user("ann").thread("旅行 trip")
        for number in range(60):
            thread.add("user" if number % 2 == 0 else "assistant", f"Message {number} \x1b[1m", author="Ann")
        db.user("ann").thread("other").create()
    return str(tmp_path / "s")


def told(capsys: pytest.CaptureFixture[str], store: str, *arguments: str) -> Any:
    assert main(["--db", store, "--user", "ann", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_threads_are_listed_shown_archived_and_reopened(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert {entry["name"] for entry in told(capsys, store, "threads", "list")["threads"]} == {"旅行 trip", "other"}
    shown = told(capsys, store, "threads", "show", "旅行 trip")
    assert (shown["summarised"], len(shown["messages"]), shown["status"]) == (10, 50, "active")
    assert shown["summary"].startswith("user: Message 0")
    assert shown["messages"][0]["ref"].startswith("conv:ar:conv_旅行%20trip.turn_")
    assert len(told(capsys, store, "threads", "show", "旅行 trip", "--window", "3")["messages"]) == 3
    assert told(capsys, store, "threads", "archive", "旅行 trip")["status"] == "archived"
    assert [entry["name"] for entry in told(capsys, store, "threads", "list")["threads"]] == ["other"]
    assert len(told(capsys, store, "threads", "list", "--archived")["threads"]) == 2
    reopened = told(capsys, store, "threads", "reopen", "旅行 trip")
    assert (reopened["status"], reopened["messages"], reopened["archived"]) == ("active", 60, None)


def test_what_a_person_reads_holds_nothing_that_a_terminal_obeys(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    base = ["--db", store, "--user", "ann", "threads"]
    for arguments, shows in (
        (["list"], "旅行 trip"),
        (["list", "--archived"], "other"),
        (["show", "旅行 trip"], "summary of the first 10 messages"),
        (["show", "other"], "0 tokens, active"),
        (["archive", "other"], "other: archived"),
        (["list", "--archived"], "archived"),
    ):
        assert main([*base, *arguments]) == 0
        said = capsys.readouterr().out
        assert shows in said
        assert "\x1b" not in said
    assert main([*base, "show", "nowhere"]) == 1
    assert "nowhere" in capsys.readouterr().err
    assert main(["--db", store, "--user", "bob", "threads", "list"]) == 0
    assert capsys.readouterr().out == "no threads\n"

"""Curated memory on the command line, as a person types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Run, command_line, told


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return command_line(tmp_path)


def test_a_memory_from_the_first_word_to_its_end(run: Run) -> None:
    assert run("recall", "x").returncode == 1  # there is no store yet
    made = told(run, "remember", "喜欢坐火车", "--kind", "preference", "--tag", "旅行", "--context", "里斯本")["memory"]
    assert (made["memory"], made["tags"], made["status"]) == ("喜欢坐火车", ["旅行"], "active")
    proposed = told(run, "remember", "likes", "window", "seats", "--agent", "planner")["memory"]
    assert proposed["status"] == "proposed"
    assert [m["id"] for m in told(run, "memories", "proposals")["memories"]] == [proposed["id"]]
    assert told(run, "memories", "confirm", proposed["id"], "--why", "asked her")["memory"]["status"] == "active"
    found = told(run, "recall", "火车", "--tag", "旅行", "--explain")
    assert [(m["id"], m["matched"]) for m in found["memories"]] == [(made["id"], ["火车"])]
    assert "explain" in found["memories"][0]
    changed = told(
        run, "memories", "update", made["id"], "--memory", "喜欢坐夜火车", "--add-tag", "夜", "--revision", "1"
    )
    assert (changed["memory"]["revision"], changed["memory"]["tags"]) == (2, ["旅行", "夜"])
    assert run("memories", "update", made["id"], "--memory", "x", "--revision", "1").returncode == 1
    assert told(run, "memories", "undo", made["id"])["memory"]["memory"] == "喜欢坐火车"
    assert [h["act"] for h in told(run, "memories", "history", made["id"])["history"]] == [
        "remembered",
        "updated",
        "undone",
    ]
    assert told(run, "memories", "pin", made["id"])["memory"]["pinned"]
    assert told(run, "memories", "hotset")["hotset"][0]["because"]["pinned"]
    shown = told(run, "memories", "show", made["id"])["memory"]
    assert shown["scores"]["confidence"] == 0.8
    assert told(run, "memories", "policy", "auto", "--kind", "preference") == {"rule": "auto", "kinds": ["preference"]}
    assert told(run, "memories", "decay") == {"ran": True}
    assert told(run, "memories", "decay") == {"ran": False}
    assert told(run, "memories", "retire", proposed["id"])["memory"]["status"] == "retired"
    assert told(run, "memories", "delete", made["id"])["removed"]["turns"] == 1
    assert told(run, "memories", "list")["memories"] == []


def test_what_a_person_reads(run: Run) -> None:
    said = run("remember", "prefers trains", "--tag", "travel")
    assert said.stdout.splitlines()[0] == "prefers trains"
    id_ = said.stdout.split()[2].strip(",")
    for arguments, expected in (
        (("recall", "trains"), "1. prefers trains  score"),
        (("memories", "list"), "#travel"),
        (("memories", "hotset"), "salience 0.78"),
        (("memories", "show", id_), "stated by user"),
        (("memories", "history", id_), "remembered by user"),
        (("memories", "policy"), "agents: propose"),
        (("memories", "proposals"), "nothing is proposed"),
        (("memories", "delete", id_), "with its history"),
        (("memories", "list"), "no memories"),
        (("recall", "trains"), "nothing found"),
    ):
        done = run(*arguments)
        assert (done.returncode, expected in done.stdout) == (0, True), (arguments, done)
    for arguments in (("memories", "show", "mem_none"), ("memories", "pin", "x"), ("remember", " ")):
        done = run(*arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done
    assert run("memories").returncode == 2


def test_what_says_the_same_is_merged_and_taken_back(run: Run) -> None:
    for text in ("The user prefers trains", "user prefers trains.", "likes tea"):
        run("remember", text)
    assert "nothing was changed; --apply does it" in run("memories", "reconcile").stdout
    done = told(run, "memories", "reconcile", "--apply")
    assert [step["act"] for step in done["steps"]] == ["merge"]
    assert len(told(run, "memories", "list")["memories"]) == 2
    assert len(told(run, "memories", "reconcile", "--undo", done["id"])["undone"]) == 2
    assert len(told(run, "memories", "list")["memories"]) == 3
    assert run("memories", "reconcile", "--undo", done["id"]).returncode == 1


def test_files_in_and_out(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mem0.json").write_text(json.dumps({"results": [{"id": "1", "memory": "likes tea"}, {"memory": ""}]}))
    assert told(run, "memories", "import", "mem0.json")["imported"] == 1
    assert told(run, "memories", "sync", "notes")["written"] != []
    (page,) = (tmp_path / "notes").glob("*.md")
    page.write_text(page.read_text("utf-8").replace("likes tea", "likes green tea"), "utf-8")
    assert len(told(run, "memories", "sync", "notes")["updated"]) == 1
    assert told(run, "recall", "tea")["memories"][0]["memory"] == "likes green tea"
    page = next((tmp_path / "notes").glob("*.md"))
    page.write_text("+++\nid = 5\n+++\n", "utf-8")
    done = run("memories", "sync", "notes")
    assert (done.returncode, "id must be text" in done.stderr) == (1, True)

"""Choosing an embedder from the command line and the environment; what doctor says of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import Run, command_line
from embedding_server import Server, serving

KEY = "sk-very-secret-4711"
SAID = {
    "en": ["Plan a weekend in Lisbon", "Fish at Ponto Final"],
    "hi": ["लिस्बन में सप्ताहांत की योजना", "पोंटो फिनाल में मछली"],
}


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return command_line(tmp_path)


def history(tmp_path: Path, language: str) -> str:
    lines = [
        {"conversation": "trip", "id": str(i), "role": "user", "content": said, "at": f"2026-05-01T10:0{i}:00Z"}
        for i, said in enumerate(SAID[language])
    ]
    path = tmp_path / "history.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return str(path)


def test_a_server_is_chosen_by_the_environment_and_never_told_on(run: Run, server: Server, tmp_path: Path) -> None:
    environment = {
        "THREEFOLD_EMBEDDER": server.url,
        "THREEFOLD_EMBEDDER_MODEL": "words",
        "THREEFOLD_EMBEDDER_KEY": KEY,
        "THREEFOLD_EMBEDDER_DIMENSIONS": "24",
    }
    assert run("import", history(tmp_path, "en"), **environment).returncode == 0
    found = run("search", "weekend", "--json", **environment)
    assert json.loads(found.stdout)["mode"] == "hybrid"
    doctor = run("doctor", **environment)
    assert doctor.returncode == 0, doctor.stdout
    assert f"✓ embedder: words@24, 24 dimensions, at {server.url}/embeddings" in doctor.stdout
    assert "languages" not in doctor.stdout
    assert {asked["key"] for asked in server.asked} == {f"Bearer {KEY}"}
    # Without the environment it is another model: said, and nothing of the old one is dropped unasked.
    lost = run("doctor")
    assert "made by 'words@24', this program has 'threefold-static-2'" in lost.stdout
    refused = run("reembed")
    assert refused.returncode == 1
    assert "name it with --embedder" in refused.stderr
    assert json.loads(run("search", "weekend", "--json").stdout)["mode"] == "lexical"
    assert run("doctor", **environment).returncode == 0
    changed = run("reembed", "--embedder", "bundled", "--json", **environment)
    assert json.loads(changed.stdout)["embedder"] == "threefold-static-2"
    assert json.loads(run("search", "weekend", "--json").stdout)["mode"] == "hybrid"
    assert "✓ languages: the embedder knows 2 of 2 texts looked at" in run("doctor").stdout
    assert KEY not in found.stdout + found.stderr + doctor.stdout + lost.stdout


def test_doctor_says_that_a_server_is_gone(run: Run, server: Server, tmp_path: Path) -> None:
    run("import", history(tmp_path, "en"))
    server.shutdown()
    server.server_close()
    said = run("doctor", "--embedder", server.url, "--embedder-model", "words")
    assert said.returncode == 1
    assert "✗ embedder: does not work, search goes by words alone" in said.stdout
    assert "see that the server runs" in said.stdout


def test_doctor_says_when_the_embedder_does_not_know_the_script(run: Run, tmp_path: Path) -> None:
    assert run("import", history(tmp_path, "hi")).returncode == 0
    said = run("doctor")
    assert said.returncode == 1
    assert "✗ languages: 'threefold-static-2' does not know the script of 2 of 2 texts" in said.stdout


def test_none_and_mistakes(run: Run, tmp_path: Path) -> None:
    run("import", history(tmp_path, "en"))
    assert "✓ embedder: none" in run("doctor", "--embedder", "none").stdout
    assert json.loads(run("search", "weekend", "--json", THREEFOLD_EMBEDDER="none").stdout)["mode"] == "lexical"
    assert "'gpt' is unknown" in run("search", "weekend", "--embedder", "gpt").stderr
    assert "embedder_model" in run("search", "weekend", "--embedder-model", "x").stderr
    # What the environment says for a server does not stand in the way of another choice.
    assert run("search", "weekend", "--embedder", "bundled", THREEFOLD_EMBEDDER_KEY=KEY).returncode == 0
    wrong = run("search", "x", THREEFOLD_EMBEDDER="http://h/v1", THREEFOLD_EMBEDDER_DIMENSIONS="many")
    assert "must be a number" in wrong.stderr

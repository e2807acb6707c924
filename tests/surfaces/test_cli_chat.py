"""Choosing a chat model from the command line and the environment; what doctor says of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chat_server import Handler, Server, error, serving
from command_line import Run, command_line

from threefold.model.chat import Call, Reply

KEY = "sk-very-secret-4711"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return command_line(tmp_path)


def test_without_one_nothing_is_said_of_it(run: Run) -> None:
    assert "chat" not in run("doctor").stdout
    # What the environment says beside the name means nothing without it.
    assert "chat" not in run("doctor", THREEFOLD_CHAT_KEY=KEY, THREEFOLD_CHAT_MODEL="words").stdout
    assert "chat" not in run("doctor", "--chat", "none", THREEFOLD_CHAT="http://h/v1").stdout


def test_a_server_is_named_by_the_environment_and_never_told_on(run: Run, server: Server) -> None:
    environment = {"THREEFOLD_CHAT": server.url, "THREEFOLD_CHAT_MODEL": "words", "THREEFOLD_CHAT_KEY": KEY}
    said = run("doctor", **environment)
    assert said.returncode == 0, said.stdout
    assert f"✓ chat model: words at {server.url}, which answers and has it" in said.stdout
    assert server.asked[0]["key"] == f"Bearer {KEY}"
    other = run("doctor", "--chat", server.url + "/messages", "--chat-model", "claude", **environment)
    assert f"claude at {server.url}, which answers and does not list it, but words:8b, other" in other.stdout
    assert server.asked[-1]["version"] == "2023-06-01"
    assert {asked["path"] for asked in server.asked} == {"/v1/models"}  # looked for, not talked to
    assert KEY not in said.stdout + said.stderr + other.stdout + other.stderr


def test_a_server_that_lists_nothing_answers_all_the_same(
    run: Run, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Handler, "do_GET", lambda handler: handler.say(404, {}))
    said = run("doctor", "--chat", server.url, "--chat-model", "words")
    assert f"✓ chat model: words at {server.url}, which answers" in said.stdout
    monkeypatch.setattr(Handler, "do_GET", lambda handler: handler.say(401, {"error": "who?"}))
    refused = run("doctor", "--chat", server.url, "--chat-model", "words")
    assert "✗ chat model: does not work, what needs none goes on" in refused.stdout
    assert "give chat_key (THREEFOLD_CHAT_KEY)" in refused.stdout


def test_doctor_says_that_a_server_is_gone(run: Run, server: Server) -> None:
    server.shutdown()
    server.server_close()
    said = run("doctor", "--chat", server.url, "--chat-model", "words")
    assert said.returncode == 1
    assert "✗ chat model: does not work" in said.stdout
    assert "see that the server runs" in said.stdout


def test_what_a_model_and_its_server_say_is_shown_not_obeyed(run: Run, server: Server) -> None:
    trap = "\x1b[31m\u202etrap"
    chosen = ("--chat", server.url, "--chat-model", "words")
    server.plan += [Reply("", (Call("1", trap, {}),), "tools"), f"I found {trap}."]
    asked = run("ask", "Where is the ferry?", *chosen)
    assert asked.returncode == 0, asked.stderr
    assert "(\\x1b[31m\\u202etrap: error)" in asked.stderr
    assert "I found \\x1b[31m\\u202etrap." in asked.stdout
    server.plan.append(error(400, f"no {trap}"))
    refused = run("ask", "Where is the ferry?", *chosen)
    assert refused.returncode == 1
    assert "no \\x1b[31m\\u202etrap" in refused.stderr
    for done in (asked, refused):
        assert not {"\x1b", "\u202e"} & set(done.stdout + done.stderr)


def test_mistakes_are_named(run: Run) -> None:
    assert "'gpt' is unknown" in run("demo", "--chat", "gpt").stderr + run("doctor", "--chat", "gpt").stdout
    assert "chat_model must name" in run("doctor", "--chat", "http://h/v1").stdout
    assert "needs chat_key" in run("doctor", "--chat", "anthropic", "--chat-model", "claude").stdout

from __future__ import annotations

from pathlib import Path
from typing import Any

from importer_helpers import DATA, answer, both, events, said, turns, write_lines


def line(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-01-01T00:00:00Z", "type": kind, "payload": payload}


def test_codex_takes_words_that_are_recorded_twice_once() -> None:
    found = turns(DATA / "codex/large.jsonl")
    assert [said(t) for t in found] == [["Start"], ["Step 1"], ["Step 2"], ["Step 3"], ["Step 4"], ["Step 5"]]
    assert {t.conversation for t in found} == {"019b2ea4-aaaa-bbbb-cccc-58208e1f0000"}
    assert answer(found[0]) == "Acknowledged.\n\nCaptured multiline output."
    assert found[0].steps[0].name == "run_shell_command"
    assert found[0].steps[0].result["stdout"] == "line1\nline2\nline3\n"
    assert found[0].tokens == {"input": 12091, "cached": 10880, "output": 182, "reasoning": 128}
    assert events(found[0], "environment_context")
    assert found[1].started.isoformat() == "2025-12-18T10:00:07+00:00"


def test_codex_146() -> None:
    found, skipped = both(DATA / "codex/v0.146.jsonl")
    assert {t.conversation for t in found} == {"019fc8be-3658-7ca3-9e29-000000000000"}
    assert said(found[0]) == ["List the files"]
    assert answer(found[0]) == "Found 2 files."
    assert [(s.name, s.result) for s in found[0].steps[:2]] == [("shell", "a.txt\nb.txt\n"), ("shell", "a.txt\n")]
    assert found[0].steps[0].arguments == {"command": ["ls"]}
    assert len({t.id for t in found}) == len(found)
    assert any("92 records have an unusable time" in s.why for s in skipped)


def test_codex_sessions_without_words() -> None:
    for name in ("codex_050_legacy", "codex_051_usage", "codex_052_raw"):
        found, skipped = both(DATA / f"codex/{name}.jsonl")
        assert found == []
        assert skipped[0].why == "the session holds no prompt and no answer"
    (failed,) = turns(DATA / "codex/codex_053_rate_limit.jsonl")
    assert (failed.status, failed.error, failed.submissions) == ("failed", "Rate limit exceeded", ())


def test_codex_editors_forks_and_interruptions(tmp_path: Path) -> None:
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "P", "depth": 1}}}
    asked = "# Context from my IDE setup:\n- a.py\n\n## My request for Codex:\nfix it"
    path = write_lines(
        tmp_path / "rollout.jsonl",
        [
            line("session_meta", id="C", source=spawned),
            line("session_meta", id="P"),
            line(
                "response_item",
                type="message",
                role="user",
                content=[{"type": "input_text", "text": "# AGENTS.md instructions for x"}],
            ),
            line("response_item", type="message", role="user", content=[{"type": "input_text", "text": asked}]),
            line("event_msg", type="user_message", message="fix it"),
            line("event_msg", type="agent_message", message="fixing"),
            line(
                "response_item", type="message", role="assistant", content=[{"type": "output_text", "text": "fixing"}]
            ),
            line("event_msg", type="turn_aborted", reason="interrupted"),
            line("event_msg", type="user_message", message="fix it", images=["data:image/png;base64,aGVsbG8="]),
            line("event_msg", type="agent_message", message="fixing"),
            line("compacted", message="so far: nothing"),
        ],
    )
    first, second = turns(path)
    assert first.conversation == "P/C"
    assert first.origin["parent"] == "P"
    assert (said(first), answer(first), first.status) == (["fix it"], "fixing", "cancelled")
    assert events(first, "user_instructions")
    assert events(first, "editor_context")
    assert (said(second), answer(second), second.status) == (["fix it"], "fixing", "completed")
    assert [a.data for a in second.attachments] == [b"hello"]
    assert events(second, "compaction") == ["so far: nothing"]


def test_old_codex_sessions_of_bare_items(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "rollout.jsonl",
        [
            {"id": "old", "timestamp": "2025-05-01T10:00:00Z", "instructions": None},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
            {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "c"},
            {"type": "function_call_output", "call_id": "c", "output": '{"output":"a\\n","metadata":{"exit_code":1}}'},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]},
        ],
    )
    (turn,) = turns(path)
    assert (turn.conversation, said(turn), answer(turn)) == ("old", ["hello"], "hi")
    assert (turn.steps[0].result, turn.steps[0].status) == ("a\n", "error")
    assert turn.started.isoformat() == "2025-05-01T10:00:00+00:00"


def test_gemini_json() -> None:
    first, second = turns(DATA / "gemini-cli/large.json")
    assert first.conversation == "session-2025-12-16T23-47-b4f17607"
    assert (said(first), answer(first), first.status) == (["Run a command"], "Captured multiline output.", "cancelled")
    assert [s.arguments["command"] for s in first.steps] == [
        "printf 'line1\\nline2\\nline3\\n'",
        "ls /non-existent-directory",
    ]
    assert "No such file or directory" in first.steps[1].result
    assert "Placeholder thoughts" not in repr(first)
    assert (said(second), answer(second), second.id) == (["Step 1"], "Ok", "m5")
    assert second.started.isoformat() == "2025-12-16T23:47:06+00:00"


def test_gemini_lines() -> None:
    (turn,) = turns(DATA / "gemini-cli/jsonl_v040.jsonl")
    assert (turn.conversation, turn.id) == ("gemini_stage0_jsonl", "g-user-1")
    assert said(turn) == ["Say hello and list files."]
    assert answer(turn) == "Hello! I listed the files."
    assert turn.steps[0].result.startswith("Output: AgentSessions/")
    assert turn.tokens == {"input": 11855 + 12069, "output": 81 + 147, "cached": 11502}


def test_a_gemini_message_that_grows_is_taken_once(tmp_path: Path) -> None:
    call = {"id": "t", "name": "ls", "args": {}, "status": "success", "resultDisplay": "a.txt"}
    path = write_lines(
        tmp_path / "session.jsonl",
        [
            {"sessionId": "g", "projectHash": "h", "startTime": "2026-01-01T00:00:00Z"},
            {"id": "u", "type": "user", "content": "list"},
            {"id": "a", "type": "gemini", "content": "I", "timestamp": "2026-01-01T00:00:02Z"},
            {
                "id": "a",
                "type": "gemini",
                "content": "I look.",
                "toolCalls": [call],
                "timestamp": "2026-01-01T00:00:02Z",
            },
            {"id": "e", "type": "error", "content": "quota"},
            {"id": "u2", "type": "user", "content": "again"},
            {"id": "u", "type": "user", "content": "late edit"},
        ],
    )
    found, skipped = both(path)
    assert [said(t) for t in found] == [["list"], ["again"]]
    assert (answer(found[0]), found[0].status, found[0].error) == ("I look.", "failed", "quota")
    assert found[0].steps[0].result == "a.txt"
    assert len(skipped) == 1


def test_a_resumed_gemini_session_repeats_its_head(tmp_path: Path) -> None:
    head = {"sessionId": "g", "projectHash": "h", "startTime": "2026-01-01T00:00:00Z"}
    found = turns(
        write_lines(
            tmp_path / "s.jsonl", [head, {"type": "user", "content": "a"}, head, {"type": "user", "content": "b"}]
        )
    )
    assert [said(t) for t in found] == [["a"], ["b"]]
    assert len({(t.conversation, t.id) for t in found}) == 2

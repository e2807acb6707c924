from __future__ import annotations

from pathlib import Path
from typing import Any

from importer_helpers import DATA, answer, both, events, said, turns, write_lines

SESSION = "0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f"
CC = DATA / "claude-code"


def record(kind: str, content: Any, uuid: str, at: str = "2026-01-01T00:00:00Z", **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content}
    return {"type": kind, "sessionId": "s", "uuid": uuid, "timestamp": at, "message": message, **more}


def test_a_simple_session_becomes_four_turns() -> None:
    found = turns(CC / "representative_messages.jsonl")
    assert [t.id for t in found] == ["msg_001", "msg_003", "msg_007", "msg_011"]
    assert {t.conversation for t in found} == {"test_session"}
    assert said(found[0]) == ["Hello Claude! Can you help me understand how Python decorators work?"]
    assert answer(found[0]).startswith("I'd be happy to help you understand Python decorators!")
    assert (found[1].started.isoformat(), found[1].ended.isoformat()) == (
        "2025-06-14T10:01:00+00:00",
        "2025-06-14T10:02:00+00:00",
    )
    step = found[2].steps[0]
    assert (step.name, step.status, step.result) == ("Bash", "completed", "Hello, Alice!\nHello, Alice!\nHello, Alice!")
    assert step.arguments["command"] == "python /tmp/decorator_example.py"
    assert found[1].tokens == {"input": 45 + 78, "output": 85 + 95}
    assert found[3].completion is None
    assert (found[3].title or "").startswith("User learned about Python decorators")


def test_the_edge_cases_lose_no_neighbour() -> None:
    found, skipped = both(CC / "edge_cases.jsonl")
    assert [(t.conversation, t.id) for t in found] == [
        ("edge_cases", "edge_001"),
        ("edge_cases", "edge_003"),
        ("edge_cases", "edge_007"),
        ("todowrite_session", "assistant_004"),
        ("edge_cases", "edge_011"),
    ]
    by_id = {t.id: t for t in found}
    assert by_id["edge_003"].steps[0].status == "error"
    assert "Command not found" in by_id["edge_003"].steps[0].result
    assert events(by_id["edge_003"], "caveat")
    command = by_id["edge_007"]
    assert said(command) == ["/test-command --verbose --output /tmp/test.log"]
    assert "Status: SUCCESS" in events(command, "local-command-stdout")[0]
    assert command.steps[0].result == "File created successfully at: /tmp/complex_example.py"
    assert said(by_id["edge_011"]) == [
        "Testing special characters: café, naïve, résumé, 中文, العربية, русский, 🎉 emojis 🚀 and symbols ∑∆√π∞"
    ]
    assert not by_id["assistant_004"].submissions
    assert [s.where.rpartition(" ")[2] for s in skipped] == ["11", "13", "14", "15", "16"]
    assert not any("wow error" in text for t in found for text in said(t))


def test_a_long_session() -> None:
    found, skipped = both(CC / "long-conversation.jsonl")
    assert len(found) == 15
    assert sum(len(t.steps) for t in found) == 98
    assert all(step.status in ("completed", "error") for t in found for step in t.steps)
    assert said(found[0]) == ["please read the research and the resources directories. then talk to me about the idea"]
    assert said(found[4]) == ["A "]
    assert not any("retryInMs" in text for t in found for text in said(t))
    assert len(events(found[6], "system/api_error")) == 5
    document = events(found[0], "meta")[0]
    assert document["mime"] == "application/pdf"
    assert "data" not in document
    # Each piece of a message repeats the usage of the whole: it counts once.
    assert found[2].tokens == {"input": 2, "output": 1, "cached": 48491, "cache_written": 1669}
    assert [s.why for s in skipped] == [
        "bookkeeping records that hold no words of a conversation: 33 file-history-snapshot"
    ]


def test_a_file_without_messages_gives_no_turn_but_says_so() -> None:
    found, skipped = both(CC / "medium-conversation.jsonl")
    assert found == []
    assert any("Debugging Complex Web App Authentication" in s.why for s in skipped)


def test_side_chains_are_conversations_of_their_own() -> None:
    found = turns(CC / "sidechains-inline.jsonl")
    session = "5c0375b4-57a5-4f26-b12d-d022ee4e51b7"
    main = [t for t in found if t.conversation == session]
    assert len(main) == 1
    assert said(main[0]) == ["/orchestrator @CLAUDE.md を最新の状態にアップデートしてください"]
    assert main[0].title == said(main[0])[0]
    assert len(main[0].steps) == 13
    assert "アップデートしました" in answer(main[0])
    assert "Split complex tasks" in events(main[0], "meta")[0]
    chains = [t for t in found if t.conversation != session]
    assert [t.origin["parent"] for t in chains] == [session, session]
    assert chains[0].conversation == f"{session}/6340ddef-f656-4b72-a065-82390f637678"
    assert [s.author for t in chains for s in t.submissions] == ["parent agent", "parent agent"]
    assert [len(t.steps) for t in chains] == [2, 6]


def test_a_sub_agent_folder() -> None:
    whole = turns(CC / "subagent")
    alone = turns(*(CC / "subagent").rglob("agent-*.jsonl"))
    assert [t.conversation for t in whole] == [SESSION, f"{SESSION}/a0ad4f44468bdf20d"]
    assert alone == whole[1:]
    assert alone[0].origin["parent"] == SESSION
    assert said(alone[0]) == ["Search the repo for TODO comments"]
    assert alone[0].steps[0].result == "a.txt:1: TODO fix"
    assert answer(alone[0]) == "Searching."
    assert whole[0].steps[0].status == "started"


def test_drifted_shapes() -> None:
    found = turns(CC / "schema-drift.jsonl")
    assert said(found[0]) == ["Open README"]
    assert (found[0].steps[0].name, found[0].steps[0].result) == ("bash", "# Title\n\nBody\n")
    assert answer(found[0]) == "Read README and extracted the title."
    assert found[0].status == "completed"
    # A notice of the tool itself opens a turn, but no person said it.
    assert found[1].id == "u2"
    assert found[1].submissions == ()
    assert events(found[1], "task-notification") == ["List files"]


def test_what_is_not_a_persons_word_is_never_a_submission(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "s.jsonl",
        [
            record("user", "<system-reminder>be brief</system-reminder>\nhello there", "u1"),
            record("assistant", [{"type": "thinking", "thinking": "secret"}, {"type": "text", "text": "hi"}], "a1"),
            record(
                "user", "This session is being continued from a previous conversation that ran out of context. X", "u2"
            ),
            record("user", "summary of it all", "u3", isCompactSummary=True),
            record("assistant", "still at work", "a2"),
            record("user", [{"type": "text", "text": "[Request interrupted by user]"}], "u4"),
            record("user", "<bash-input>ls</bash-input>", "u5"),
            record("user", "<bash-stdout>a.txt</bash-stdout><bash-stderr></bash-stderr>", "u6"),
            record("user", "what does <system-reminder>x</system-reminder> mean?", "u7"),
        ],
    )
    found = turns(path)
    assert [said(t) for t in found] == [
        ["hello there"],
        ["!ls"],
        ["what does <system-reminder>x</system-reminder> mean?"],
    ]
    assert found[0].status == "cancelled"
    assert answer(found[0]) == "hi\n\nstill at work"
    assert "secret" not in repr(found)
    assert len(events(found[0], "compaction")) == 2
    assert events(found[0], "system-reminder") == ["be brief"]
    assert events(found[1], "bash-stdout") == ["a.txt"]


def test_queued_words_and_errors(tmp_path: Path) -> None:
    queued = {
        "type": "attachment",
        "attachment": {"type": "queued_command", "prompt": "and tests"},
        "sessionId": "s",
        "uuid": "q",
    }
    notice = {
        "type": "attachment",
        "attachment": {"type": "queued_command", "prompt": "task done", "commandMode": "task-notification"},
        "sessionId": "s",
        "uuid": "n",
    }
    path = write_lines(
        tmp_path / "s.jsonl",
        [
            record("user", "first", "u1"),
            record("user", "second", "u2", at="2026-01-01T00:00:01Z"),
            record("assistant", [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}], "a1"),
            queued,
            notice,
            record("assistant", "API Error: overloaded", "a2", isApiErrorMessage=True),
            record("user", "again", "u3"),
            record("assistant", "API Error: overloaded", "a3", isApiErrorMessage=True),
            record("assistant", "done", "a4"),
        ],
    )
    first, second = turns(path)
    assert [(s.kind, s.text) for s in first.submissions] == [
        ("prompt", "first"),
        ("followup", "second"),
        ("followup", "and tests"),
    ]
    assert (first.status, first.error) == ("failed", "API Error: overloaded")
    assert events(first, "task-notification") == ["task done"]
    assert (second.status, second.error, answer(second)) == ("completed", None, "done")


def test_pictures_of_a_person_are_attachments(tmp_path: Path) -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}}
    broken = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "***"}}
    path = write_lines(tmp_path / "s.jsonl", [record("user", [{"type": "text", "text": "see"}, picture, broken], "u1")])
    (turn,) = turns(path)
    assert [(a.name, a.data, a.mime) for a in turn.attachments] == [("image-1.png", b"hello", "image/png")]
    assert events(turn, "missing_file") == [{"name": "image-2.png", "reference": None}]


def test_a_repeated_record_is_told_once(tmp_path: Path) -> None:
    lines = [record("user", "hello", "u1"), record("user", "hello", "u1"), record("assistant", "hi", "a1")]
    found, skipped = both(write_lines(tmp_path / "s.jsonl", lines))
    assert [said(t) for t in found] == [["hello"]]
    assert len(skipped) == 1

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from importer_helpers import DATA, answer, both, events, said, turns


def node(name: str, parent: str | None, role: str, words: str, at: int, **message: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": [words]}
    said = {
        "id": f"{name}-m",
        "author": {"role": role},
        "content": content,
        "create_time": 1_700_000_000 + at,
        **message,
    }
    return {"id": name, "parent": parent, "children": [], "message": said}


def chat(path: Path, nodes: list[dict[str, Any]], current: str | None) -> Path:
    value = {"id": "c", "title": "T", "current_node": current, "mapping": {n["id"]: n for n in nodes}}
    path.write_text(json.dumps([value]))
    return path


def test_a_native_chatgpt_conversation() -> None:
    main, branch = turns(DATA / "chatgpt/native-conversation-v1.json")
    assert (main.conversation, main.id) == ("chatgpt-fixture-conversation", "user-message")
    assert main.title == "Privacy-safe ChatGPT native fixture"
    assert said(main) == ["Analyze the attached fixture and create an artifact."]
    assert answer(main) == "Final answer. [Download artifact](sandbox:/mnt/data/fixture-result.zip)"
    step = main.steps[0]
    assert (step.name, step.arguments) == ("browser.search", {"query": "fixture evidence"})
    assert step.result == "Privacy-safe tool result."
    assert "reasoning" not in answer(main)
    assert "Privacy-safe reasoning" not in repr(main)
    assert {e["name"] for e in events(main, "missing_file")} == {
        "input.txt",
        "fixture-input-image",
        "fixture-output-image",
    }
    assert "Preserve structured provider evidence." in events(main, "instructions")[0]
    assert branch.conversation == "chatgpt-fixture-conversation/branch-answer-inactive"
    assert branch.origin["parent"] == "chatgpt-fixture-conversation"
    assert answer(branch) == "Superseded answer."
    assert main.started.timestamp() == 1784164540


def test_chatgpt_samples() -> None:
    found = turns(DATA / "chatgpt/sample-00.json")
    assert [t.conversation.partition("/")[2] for t in found] == ["", "branch-82010c62-f5f5-4b22-8e8f-a8e0284d82e5"]
    assert said(found[0])[1].endswith("What's the best approach for handling errors here?")
    assert answer(found[1]).startswith("The module structure looks good. A few suggestions:")
    main, branch = turns(DATA / "chatgpt/sample-01.json")
    assert answer(main).startswith("After reviewing, I found several areas for improvement.")
    assert branch.origin["after"] == main.id
    assert branch.submissions[0].text.startswith("What's the best approach")


def test_every_branch_is_kept_and_no_turn_twice(tmp_path: Path) -> None:
    nodes = [
        node("u1", None, "user", "one", 1),
        node("a1", "u1", "assistant", "first", 2),
        node("u2", "a1", "user", "two", 3),
        node("a2", "u2", "assistant", "second", 4),
        node("u2b", "a1", "user", "two again", 5),
        node("a2b", "u2b", "assistant", "other", 6),
        node("u3b", "a2b", "user", "deeper", 7),
        node("a3b", "u3b", "assistant", "deep", 8),
        node("a3c", "u3b", "assistant", "deep otherwise", 9),
    ]
    found = turns(chat(tmp_path / "conversations.json", nodes, "a2"))
    assert [(t.conversation, said(t), answer(t)) for t in found] == [
        ("c", ["one"], "first"),
        ("c", ["two"], "second"),
        ("c/branch-a3b", ["two again"], "other"),
        ("c/branch-a3b", ["deeper"], "deep"),
        ("c/branch-a3c", ["deeper"], "deep otherwise"),
    ]
    assert [t.origin.get("after") for t in found[2:]] == ["u1-m", "u1-m", "u2b-m"]
    assert [t.origin.get("parent") for t in found[2:]] == ["c", "c", "c/branch-a3b"]


def test_circles_and_lost_parents(tmp_path: Path) -> None:
    nodes = [
        node("u1", "a1", "user", "round", 1),
        node("a1", "u1", "assistant", "and round", 2),
        node("u2", "nowhere", "user", "lost", 3),
        node("a2", "u2", "assistant", "found", 4),
        node("u3", "u3", "user", "self", 5),
    ]
    found = turns(chat(tmp_path / "conversations.json", nodes, None))
    assert sorted(text for t in found for text in said(t)) == ["lost", "round", "self"]
    assert sorted(filter(None, map(answer, found))) == ["and round", "found"]


def test_a_damaged_node_does_not_cut_the_branch(tmp_path: Path) -> None:
    path = chat(
        tmp_path / "conversations.json", [node("u1", None, "user", "one", 1), node("u2", "x", "user", "two", 2)], "u2"
    )
    value = json.loads(path.read_text())
    value[0]["mapping"]["u1"]["children"] = ["x"]
    value[0]["mapping"]["x"] = 7
    path.write_text(json.dumps(value))
    found, skipped = both(path)
    assert [said(t) for t in found] == [["one", "two"]]
    assert len(skipped) == 1
    assert "line 1" in skipped[0].where


def test_chatgpt_citations_and_hidden_messages(tmp_path: Path) -> None:
    hidden = {"metadata": {"is_visually_hidden_from_conversation": True}}
    cited = {
        "metadata": {"content_references": [{"items": [{"url": "https://a.example/x", "title": "X", "snippet": "s"}]}]}
    }
    nodes = [
        node("s", None, "system", "be kind", 0),
        node("h", "s", "user", "my profile", 1, **hidden),
        node("u", "h", "user", "hello", 2),
        node("a", "u", "assistant", "see\ue200cite\ue202turn0\ue201.", 3, **cited),
    ]
    (turn,) = turns(chat(tmp_path / "conversations.json", nodes, "a"))
    assert (said(turn), answer(turn)) == (["hello"], "see.")
    assert [(s.url, s.title, s.text) for s in turn.sources] == [("https://a.example/x", "X", "s")]
    assert events(turn, "message.user") == ["my profile"]


def test_claude_conversations() -> None:
    found = turns(DATA / "claude/conversations.json")
    assert [(t.conversation, t.id) for t in found] == [
        ("test-conv-1", "msg-1"),
        ("test-conv-2", "msg-3"),
        ("test-conv-2", "msg-5"),
    ]
    assert [t.title for t in found] == ["Test Conversation 1", "Test Conversation 2", "Test Conversation 2"]
    assert answer(found[0]) == "Hello! How can I help you today?"
    assert found[2].started.isoformat() == "2024-12-02T14:15:00+00:00"
    assert found[2].ended.isoformat() == "2024-12-02T14:16:00+00:00"


def test_claude_artifacts() -> None:
    first, second = turns(DATA / "claude/claude-bakery-chat.json")
    assert said(first)[0].startswith("Make an interactive visualization of this diagram")
    assert "antThinking" not in answer(first)
    assert "antArtifact" not in answer(first)
    assert "mind map-style comparison" not in answer(first)
    assert "The Good Alley Sandwich Bakery" in answer(first)
    assert answer(first).rstrip().endswith("modify the current visualization in any way?")
    assert [f.path for f in first.files] == ["artifacts/bakery-comparison.jsx"]
    assert first.files[0].data.startswith(b"import React")
    assert events(first, "missing_file")[0]["name"] == "image"
    assert [f.path for f in second.files] == ["artifacts/enhanced-bakery-comparison.jsx"]


def test_claude_with_errors() -> None:
    found, skipped = both(DATA / "claude/conversation-with-errors.json")
    assert [said(t)[0] for t in found] == [
        "This is a normal message that should render correctly.",
        "This message has null content array - should trigger error handling",
        "This should be an array but it's a string",
    ]
    assert "This message has null text in content item" in answer(found[1])
    assert answer(found[2]).split("\n\n") == [
        "Message with unknown content type",
        "Text field is a number instead of string",
        "Tool use message",
        "Empty content array",
    ]
    assert found[2].steps[0].name == "create_artifact"
    assert found[2].files[0].path == "artifacts/broken-artifact.js"
    assert skipped == []


def test_claude_sample() -> None:
    first, second = turns(DATA / "claude/sample-00.json")
    assert said(first) == said(second) == ["Can you explain how this works?"]
    assert answer(first) == "After reviewing, I found several areas for improvement."
    assert len(first.attachments) == 4
    assert first.attachments[1].text == "The module structure looks good. A few suggestions:"
    assert first.attachments[1].data == b"The module structure looks good. A few suggestions:"
    assert len(first.files) == 3
    assert len(events(first, "missing_file")) == 6
    assert first.started.isoformat() == "2023-10-07T07:03:01.693863+00:00"


def test_claude_branches_and_changed_artifacts(tmp_path: Path) -> None:
    def message(name: str, parent: str, sender: str, content: Any) -> dict[str, Any]:
        return {"uuid": name, "parent_message_uuid": parent, "sender": sender, "content": content, "text": ""}

    root = "00000000-0000-4000-8000-000000000000"
    made = {
        "type": "tool_use",
        "name": "artifacts",
        "input": {"id": "p", "type": "text/markdown", "content": "one two"},
    }
    changed = {
        "type": "tool_use",
        "name": "artifacts",
        "input": {"id": "p", "command": "update", "old_str": "two", "new_str": "three"},
    }
    value = {
        "uuid": "c",
        "name": "N",
        "created_at": "2026-01-01T00:00:00",
        "current_leaf_message_uuid": "a2",
        "chat_messages": [
            message("u1", root, "human", "write"),
            message("a0", "u1", "assistant", "no"),
            message("a1", "u1", "assistant", [made]),
            message("u2", "a1", "human", "change"),
            message("a2", "u2", "assistant", [changed, {"type": "text", "text": "done"}]),
        ],
    }
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([value]))
    found = turns(path)
    assert [(t.conversation, answer(t)) for t in found] == [("c", ""), ("c", "done"), ("c/branch-a0", "no")]
    assert found[1].files[0].data == b"one three"
    assert found[0].started.isoformat() == "2026-01-01T00:00:00+00:00"

from __future__ import annotations

from pathlib import Path

from importer_helpers import answer, both, events, said, turns, write_lines


def test_a_message_for_each_line(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "chat.jsonl",
        [
            {
                "conversation": "a",
                "role": "user",
                "content": "Where is the key?",
                "at": "2026-03-01T09:00:00Z",
                "id": "m1",
                "name": "Ada",
            },
            {"thread_id": "b", "role": "human", "text": "other", "timestamp": 1772355600},
            {"conversation": "a", "role": "user", "content": "The red one.", "at": "2026-03-01T09:00:01", "name": "Bo"},
            {"conversation": "a", "role": "assistant", "content": "Under the mat.", "name": "Helper"},
            {"conversation_id": "b", "role": "ai", "message": "yes", "time": 1772355660000},
            {"conversation": "a", "role": "system", "content": "rules"},
            {"conversation": "a", "role": "user", "content": "Thanks"},
            {"conversation": "a", "role": "seer", "content": "I see"},
            {"content": "no role"},
            {"role": "user", "content": 7},
        ],
    )
    found, skipped = both(path)
    by = {(t.conversation, t.submissions[0].text): t for t in found}
    first = by["a", "Where is the key?"]
    assert [(s.kind, s.text, s.author) for s in first.submissions] == [
        ("prompt", "Where is the key?", "Ada"),
        ("followup", "The red one.", "Bo"),
    ]
    assert first.id == "m1"
    assert first.completion is not None
    assert (first.completion.text, first.completion.author) == ("Under the mat.", "Helper")
    assert first.completion.at.isoformat() in ("2026-03-01T09:00:01+00:00", "2026-03-01T09:00:00+00:00")
    assert events(first, "message.system") == ["rules"]
    assert answer(by["b", "other"]) == "yes"
    assert by["b", "other"].ended.isoformat() == "2026-03-01T09:01:00+00:00"
    assert events(by["a", "Thanks"], "message.seer") == ["I see"]
    assert [s.where for s in skipped] == ["chat.jsonl line 9", "chat.jsonl line 10"]


def test_turns_that_are_named(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "chat.jsonl",
        [
            {"conversation": "c", "turn": "t1", "role": "user", "content": "a"},
            {"conversation": "c", "turn": "t1", "role": "assistant", "content": "b"},
            {"conversation": "c", "turn": "t1", "role": "user", "content": "c"},
            {"conversation": "c", "turn": "t2", "role": "user", "content": "d"},
        ],
    )
    assert [(t.id, said(t)) for t in turns(path)] == [("t1", ["a", "c"]), ("t2", ["d"])]


def test_a_conversation_for_each_line(tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bern"}'}}
    path = write_lines(
        tmp_path / "train.jsonl",
        [
            {
                "messages": [
                    {"role": "system", "content": "You help."},
                    {
                        "role": "user",
                        "content": [
                            {"type": "text", "text": "Rain?"},
                            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}},
                        ],
                    },
                    {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
                    {"role": "assistant", "content": "No."},
                ]
            },
            {"id": "s", "conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hello"}, 5]},
        ],
    )
    found, skipped = both(path)
    first, second = found
    assert (said(first), answer(first)) == (["Rain?"], "No.")
    assert (first.steps[0].name, first.steps[0].arguments, first.steps[0].result) == (
        "weather",
        {"city": "Bern"},
        "sunny",
    )
    assert first.attachments[0].data == b"hello"
    assert events(first, "message.system") == ["You help."]
    assert (second.conversation, said(second), answer(second)) == ("s", ["hi"], "hello")
    assert [s.where for s in skipped] == ["train.jsonl line 2, message 3"]
    assert first.conversation.startswith("train-")


def test_a_json_list_of_messages_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_text('[{"role": "user", "content": "a"},\n{"role": "assistant", "content": "b"}]')
    (turn,) = turns(path)
    assert (said(turn), answer(turn)) == (["a"], "b")


def test_hundreds_of_interleaved_conversations_keep_their_turns(tmp_path: Path) -> None:
    def lines() -> list[dict[str, str]]:
        return [
            {"conversation": f"c{n}", "role": role, "content": f"{role} {n} {round_}"}
            for round_ in range(3)
            for n in range(400)
            for role in ("user", "assistant")
        ]

    found = turns(write_lines(tmp_path / "many.jsonl", lines()))
    assert len(found) == 1200
    assert len({(t.conversation, t.id) for t in found}) == 1200
    assert all(said(t)[0].split()[1:] == answer(t).split()[1:] for t in found)


def test_a_conversation_that_goes_on_in_another_line(tmp_path: Path) -> None:
    lines = [{"id": "x", "messages": [{"role": "user", "content": words}]} for words in ("a", "b")]
    found = turns(write_lines(tmp_path / "chat.jsonl", lines))
    assert [(t.conversation, said(t)) for t in found] == [("x", ["a"]), ("x", ["b"])]
    assert found[0].id != found[1].id

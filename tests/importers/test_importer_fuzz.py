"""Whatever a file holds, reading it ends without an exception, and what it gives can be recorded."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from importer_helpers import DATA

from threefold.importers import KINDS, Skipped, read, total_bytes
from threefold.model.scope import check_id
from threefold.model.turn import Turn

SOURCES = {
    "claude-code": ["edge_cases.jsonl", "schema-drift.jsonl", "sidechains-inline.jsonl", "tiny-conversation.jsonl"],
    "codex": ["large.jsonl", "v0.146.jsonl", "codex_053_rate_limit.jsonl"],
    "gemini-cli": ["jsonl_v040.jsonl", "large.json"],
    "chatgpt": ["native-conversation-v1.json", "sample-01.json"],
    "claude": ["conversation-with-errors.json", "conversations.json", "claude-bakery-chat.json", "sample-00.json"],
}
JSONL = [
    {"conversation": "c", "role": "user", "content": "hello", "at": "2026-01-01T00:00:00Z", "id": "m", "name": "Ada"},
    {"conversation": "c", "role": "assistant", "content": [{"type": "text", "text": "hi"}], "at": 1772355600},
    {
        "conversation": "c",
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "t", "function": {"name": "f", "arguments": "{}"}}],
    },
    {"conversation": "c", "role": "tool", "tool_call_id": "t", "content": "ok"},
    {"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}], "id": "x"},
    {"conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hello"}]},
]
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1e308,
    10**40,
    "",
    "\x00",
    "\ud800",
    "x" * 3000,
    [],
    {},
    [[]],
    [None],
    {"": None},
    ["text"],
    {"type": 3},
]
SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=20,
)


def records_of(kind: str) -> list[Any]:
    if kind == "jsonl":
        return JSONL
    found: list[Any] = []
    for name in SOURCES[kind]:
        written = (DATA / kind / name).read_text()
        if name.endswith(".jsonl"):
            found += [json.loads(line) for line in written.splitlines()]
        else:
            value = json.loads(written)
            found += value if isinstance(value, list) else [value]
    return found


RECORDS = {kind: records_of(kind) for kind in KINDS if kind != "auto"}


def mutated(value: Any, chance: random.Random, odds: float) -> Any:
    """`value` with some parts replaced, dropped or exchanged."""
    if chance.random() < odds:
        return chance.choice(ODD)
    if isinstance(value, dict):
        keys = list(value)
        return {
            (chance.choice(keys) if chance.random() < odds else key): mutated(inner, chance, odds)
            for key, inner in value.items()
            if chance.random() >= odds
        }
    if isinstance(value, list):
        return [mutated(inner, chance, odds) for inner in value if chance.random() >= odds]
    return value


def check(path: Path, kind: str) -> list[Turn | Skipped]:
    got: list[int] = []
    found = list(read([path], kind, got.append))
    assert sum(got) == total_bytes([path])
    assert list(read([path], kind)) == found
    seen: set[tuple[str, str]] = set()
    for turn in found:
        if isinstance(turn, Skipped):
            assert turn.where
            assert turn.why
            continue
        check_id(turn.conversation, "conversation")
        check_id(turn.id, "turn")
        assert (turn.conversation, turn.id) not in seen
        seen.add((turn.conversation, turn.id))
        assert turn.started <= turn.ended
        assert len(turn.submissions) <= 1000
        assert all(isinstance(s.text, str) for s in turn.submissions)
        assert all(type(n) is int and n >= 0 for n in turn.tokens.values())
        payloads = [e.payload for e in turn.context] + [(s.name, s.arguments, s.result) for s in turn.steps]
        written = json.dumps(
            [payloads, dict(turn.origin), [s.text for s in turn.submissions]], allow_nan=False, ensure_ascii=False
        )
        written.encode()
        assert all("/" not in a.name and a.name not in ("", ".", "..") for a in turn.attachments)
        assert not any(part in ("", ".", "..") for f in turn.files for part in f.path.split("/"))
    return found


@pytest.mark.parametrize("kind", sorted(RECORDS))
@SETTINGS
@given(seed=st.integers(0, 2**32), odds=st.sampled_from([0.002, 0.02, 0.1]), forced=st.booleans())
def test_mutated_records(kind: str, tmp_path: Path, seed: int, odds: float, forced: bool) -> None:
    chance = random.Random(seed)
    chosen = chance.sample(RECORDS[kind], min(len(RECORDS[kind]), 12))
    lines = [json.dumps(mutated(record, chance, odds)).encode() for record in chosen]
    for i, line in enumerate(lines):
        if chance.random() < odds:
            lines[i] = line[: chance.randrange(len(line))]
    path = tmp_path / ("a.jsonl" if chance.random() < 0.5 else "a.json")
    path.write_bytes(b"[" + b",\n".join(lines) + b"]" if path.suffix == ".json" else b"\n".join(lines))
    check(path, kind if forced else "auto")


@pytest.mark.parametrize("kind", sorted(RECORDS))
@SETTINGS
@given(values=st.lists(json_values, max_size=6), data=st.binary(max_size=200))
def test_any_json_and_any_bytes(kind: str, tmp_path: Path, values: list[Any], data: bytes) -> None:
    for name in ("a.jsonl", "a.json"):
        path = tmp_path / name
        path.write_bytes(b"\n".join(json.dumps(value).encode() for value in values) + b"\n" + data)
        check(path, kind)


@pytest.mark.parametrize("kind", sorted(RECORDS))
@SETTINGS
@given(seed=st.integers(0, 2**32))
def test_flipped_bytes_in_lines_cost_only_their_lines(kind: str, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    lines = [json.dumps(record).encode() for record in chance.sample(RECORDS[kind], min(len(RECORDS[kind]), 10))]
    broken = chance.randrange(len(lines))
    cut = chance.randrange(1, len(lines[broken]))
    lines[broken] = lines[broken][:cut]
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(lines))
    found = check(path, "auto")
    notes = [x for x in found if isinstance(x, Skipped)]
    assert any(x.where.startswith(f"a.jsonl line {broken + 1}") for x in notes) or len(found) == len(notes) == 1


@SETTINGS
@given(
    roles=st.lists(st.sampled_from(["user", "assistant", "tool", "system"]), max_size=30),
    bad=st.sets(st.integers(0, 29)),
)
def test_no_word_is_lost_and_none_changes_its_speaker(tmp_path: Path, roles: list[str], bad: set[int]) -> None:
    lines = [
        b"{" if i in bad else json.dumps({"conversation": "c", "role": role, "content": f"{role}-{i}."}).encode()
        for i, role in enumerate(roles)
    ]
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(lines))
    found = check(path, "jsonl")
    turns = [x for x in found if not isinstance(x, Skipped)]
    kept = [(i, role) for i, role in enumerate(roles) if i not in bad]
    users = [s.text for t in turns for s in t.submissions]
    answers = "".join(t.completion.text for t in turns if t.completion)
    assert users == [f"user-{i}." for i, role in kept if role == "user"]
    for i, role in kept:
        assert (f"assistant-{i}." in answers) == (role == "assistant")
    if any(role != "system" for _, role in kept):
        assert all(f"system-{i}." in repr(turns) or i > 0 for i, role in kept if role == "system")
    damaged = [x for x in found if isinstance(x, Skipped) and "not valid JSON" in x.why and " line " in x.where]
    assert len(damaged) == len(bad & set(range(len(roles)))) or not kept

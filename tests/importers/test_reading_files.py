from __future__ import annotations

import gzip
import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from importer_helpers import DATA, both, events, said, turns, write_lines

from threefold.errors import InvalidInput
from threefold.importers import KINDS, Skipped, read, total_bytes
from threefold.importers import files as files_module
from threefold.importers import places as places_module
from threefold.importers import records as records_module

FILES = sorted(p for p in DATA.rglob("*") if p.suffix in (".json", ".jsonl") and not p.name.endswith(".meta.json"))
MESSAGE = {"conversation": "c", "role": "user", "content": "hello", "at": "2026-01-01T00:00:00Z"}


def kind_of(path: Path) -> str:
    return path.relative_to(DATA).parts[0]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_each_file_is_detected_and_read_the_same_twice(path: Path) -> None:
    by_itself, again = list(read([path])), list(read([path]))
    assert by_itself == again
    assert by_itself == list(read([path], kind_of(path)))
    found = [x for x in by_itself if not isinstance(x, Skipped)]
    assert {t.origin["importer"] for t in found} <= {kind_of(path)}
    assert all(t.started <= t.ended and t.started.tzinfo is not None for t in found)
    assert len({(t.conversation, t.id) for t in found}) == len(found)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_bytes_add_up(path: Path) -> None:
    got: list[int] = []
    list(read([path], on_bytes=got.append))
    assert sum(got) == total_bytes([path]) == path.stat().st_size
    assert all(n > 0 for n in got)


def test_a_folder_is_the_sum_of_its_files() -> None:
    got: list[int] = []
    whole = list(read([DATA], on_bytes=got.append))
    assert sum(got) == total_bytes([DATA])
    assert {x.origin["importer"] for x in whole if not isinstance(x, Skipped)} == set(KINDS) - {"auto", "jsonl"}
    parts = [x for path in FILES for x in read([path])]
    assert sorted(map(repr, (x for x in whole if not isinstance(x, Skipped)))) == sorted(
        map(repr, (x for x in parts if not isinstance(x, Skipped)))
    )
    assert not [x for x in whole if isinstance(x, Skipped) and (".meta.json" in x.where or "NOTICE" in x.where)]
    assert list(read([DATA, DATA, FILES[0]])) == whole


@pytest.mark.parametrize("path", [p for p in FILES if p.suffix == ".jsonl"], ids=lambda p: p.name)
def test_a_file_that_grew_gives_equal_turns_for_its_old_part(path: Path, tmp_path: Path) -> None:
    whole = turns(path)
    lines = path.read_bytes().splitlines(keepends=True)
    # The same place relative to the session folder, since sub-agents are named by it.
    copy = tmp_path / path.relative_to(DATA)
    copy.parent.mkdir(parents=True)
    for count in {len(lines) // 3, len(lines) // 2, len(lines) - 1} - {0}:
        copy.write_bytes(b"".join(lines[:count]))
        part = turns(copy)
        last = {t.conversation: t.id for t in part}
        complete = [t for t in part if last[t.conversation] != t.id]
        assert [t for t in whole if t in complete] == complete
        assert {(t.conversation, t.id) for t in part} <= {(t.conversation, t.id) for t in whole}


def test_what_the_user_gave_wrongly_raises_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="nowhere"):
        read([tmp_path / "nowhere"])
    with pytest.raises(InvalidInput, match="kind 'x'"):
        read([tmp_path], "x")
    with pytest.raises(InvalidInput, match="nowhere"):
        total_bytes([tmp_path / "nowhere"])


def test_places_are_shown_as_given_but_never_the_whole_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    write_lines(tmp_path / "in/a.jsonl", [MESSAGE, "{broken"])
    monkeypatch.chdir(tmp_path)
    for given in ("in/a.jsonl", "in", "./in"):
        assert [s.where for s in both(given)[1]] == ["in/a.jsonl line 2"]
    assert [s.where for s in both(tmp_path / "in")[1]] == ["in/a.jsonl line 2"]
    assert [s.where for s in both(tmp_path / "in/a.jsonl")[1]] == ["a.jsonl line 2"]
    assert [s.where for s in both(".")[1]] == ["in/a.jsonl line 2"]
    assert str(tmp_path) not in repr(list(read([tmp_path])))


def test_unknown_files(tmp_path: Path) -> None:
    (tmp_path / "readme.md").write_text("# hello")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x00")
    (tmp_path / "package.json").write_text('{"name": "x", "version": "1"}')
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "noise.json").write_bytes(os.urandom(2000))
    found, skipped = both(tmp_path)
    assert found == []
    assert sorted(s.where.rpartition("/")[2] for s in skipped) == ["empty.jsonl", "noise.json", "package.json"]
    for name in ("readme.md", "picture.png"):
        assert [s.where for s in both(tmp_path / name)[1]] == [name]


def test_a_kind_that_is_not_the_files(tmp_path: Path) -> None:
    found, skipped = both(DATA / "codex/large.jsonl", kind="claude-code")
    assert found == []
    assert [s.why for s in skipped] == ["this is a file of the kind codex, not claude-code"]


def test_compressed_and_odd_files(tmp_path: Path) -> None:
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress(json.dumps(MESSAGE).encode()))
    got: list[int] = []
    (turn,) = list(read([packed], on_bytes=got.append))
    assert not isinstance(turn, Skipped)
    assert said(turn) == ["hello"]
    assert sum(got) == packed.stat().st_size
    packed.write_bytes(packed.read_bytes()[:-9])
    assert any("could not be read" in s.why for s in both(packed)[1])
    bom = tmp_path / "bom.jsonl"
    bom.write_bytes(b"\xef\xbb\xbf" + json.dumps(MESSAGE).encode() + b"\r\n\r\n")
    assert said(turns(bom)[0]) == ["hello"]
    plain = tmp_path / "history.txt"
    plain.write_text(json.dumps(MESSAGE) + "\n" + json.dumps(MESSAGE | {"role": "assistant", "content": "hi"}))
    assert said(turns(plain)[0]) == ["hello"]


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_exports_in_zip_files(tmp_path: Path) -> None:
    chat = (DATA / "chatgpt/native-conversation-v1.json").read_bytes()
    path = zipped(
        tmp_path / "export.zip",
        {
            "conversations-000.json": b"["
            + chat
            + b",\n{broken},\n[1],\n"
            + chat.replace(b"chatgpt-fixture", b"second")
            + b"]",
            "chat.html": b"<html>",
            "user.json": b'{"id": "user"}',
            "fixture-upload-1-input.txt": "grüezi".encode(),
            "images/fixture-input-image-1.png": b"\x89PNG",
            "fixture-output-image.png": b"out",
            "inner.zip": b"PK",
        },
    )
    got: list[int] = []
    result = list(read([path], on_bytes=got.append))
    found = [x for x in result if not isinstance(x, Skipped)]
    skipped = [x for x in result if isinstance(x, Skipped)]
    assert sum(got) == total_bytes([path])
    assert [t.conversation for t in found] == [
        "chatgpt-fixture-conversation",
        "chatgpt-fixture-conversation/branch-answer-inactive",
        "second-conversation",
        "second-conversation/branch-answer-inactive",
    ]
    assert [(a.name, a.data, a.text, a.mime) for a in found[0].attachments] == [
        ("input.txt", "grüezi".encode(), "grüezi", "text/plain"),
        ("fixture-input-image-1.png", b"\x89PNG", None, "image/png"),
    ]
    assert [(f.path, f.data) for f in found[0].files] == [("fixture-output-image.png", b"out")]
    assert not events(found[0], "missing_file")
    line = chat.count(b"\n") + 2
    assert [s.where for s in skipped] == [
        f"export.zip!conversations-000.json line {line}",
        f"export.zip!conversations-000.json line {line + 1}",
        "export.zip!inner.zip",
        "export.zip!user.json",
    ]


def test_an_unpacked_export_finds_its_files(tmp_path: Path) -> None:
    shutil.copy(DATA / "chatgpt/native-conversation-v1.json", tmp_path / "conversations.json")
    (tmp_path / "fixture-upload-1-input.txt").write_text("hello")
    main = turns(tmp_path)[0]
    assert [(a.name, a.data) for a in main.attachments] == [("input.txt", b"hello")]


def test_hostile_zip_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = json.dumps(MESSAGE).encode()
    path = zipped(
        tmp_path / "evil.zip", {"../up.jsonl": message, "/root.jsonl": message, "bomb.json": b"[" + b" " * 10**6}
    )
    monkeypatch.setattr(places_module, "RATIO_FROM", 10**5)
    found, skipped = both(path)
    assert found == []
    assert sorted(s.why for s in skipped) == [
        "a path that leaves the archive",
        "a path that leaves the archive",
        "expands more than 250 times, as only a zip bomb does",
    ]
    assert not (tmp_path / "up.jsonl").exists()
    monkeypatch.setattr(places_module, "MAX_MEMBER", 10)
    assert "larger than" in both(zipped(tmp_path / "big.zip", {"a.jsonl": message}))[1][0].why
    (tmp_path / "no.zip").write_bytes(b"PK\x03\x04 nothing")
    assert "not a readable zip file" in both(tmp_path / "no.zip")[1][0].why
    whole = bytearray(zipped(tmp_path / "crc.zip", {"a.jsonl": message * 50}).read_bytes())
    whole[60] ^= 0xFF
    (tmp_path / "crc.zip").write_bytes(whole)
    assert both(tmp_path / "crc.zip")[1]


def test_a_gz_that_expands_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(MESSAGE).encode() + b"\n" * 10**6))
    monkeypatch.setattr(files_module, "MAX_MEMBER", 10**5)
    assert any("expands to more" in s.why for s in both(path)[1])


DAMAGE: list[tuple[bytes, str]] = [
    (b'{"conversation": "c", "role": "user", "cont', "not valid JSON"),
    (b"\x00" * 50, "NUL"),
    (b"[1, 2]", "JSON list"),
    (b"42", "JSON int"),
    (b'"words"', "JSON str"),
    (b"null", "JSON NoneType"),
    (b'{"a":' * 100_000, "nested too deeply"),
    (b'{"a":' * 500 + b"1" + b"}" * 500, "nested"),
    (b'{"conversation": "c", "role": "user", "content": {"a": 1}}', "content is a JSON dict"),
    (b'{"a": ' + b"9" * 5000 + b"}", "not valid JSON"),
    (b'{"a\x00b": 1}', "not valid JSON"),
    (b"\xff\xfe{\x00", "not valid JSON"),
]


@pytest.mark.parametrize(("line", "why"), DAMAGE, ids=range(len(DAMAGE)))
def test_a_damaged_line_costs_nothing_but_itself(line: bytes, why: str, tmp_path: Path) -> None:
    answer = MESSAGE | {"role": "assistant", "content": "hi"}
    found, skipped = both(write_lines(tmp_path / "a.jsonl", [MESSAGE, line, answer]))
    assert [(said(t), t.completion and t.completion.text) for t in found] == [(["hello"], "hi")]
    assert [s.where for s in skipped] == ["a.jsonl line 2"]
    assert why in skipped[0].why


def test_times_that_are_none(tmp_path: Path) -> None:
    def at(value: Any, role: str = "user") -> dict[str, Any]:
        return {"conversation": "c", "role": role, "content": "x", "at": value}

    odd = ["99999-01-01", -1e300, 10**400, True, [], "0000-00-00", "yesterday", 1e308, "2026-13-45T99:00:00Z"]
    path = write_lines(
        tmp_path / "a.jsonl", [at(None), at("2026-01-01T10:00:00+02:00"), *map(at, odd), at("2026-01-02")]
    )
    (turn,), skipped = both(path)
    # What stands before the first known time gets that one: no time is invented.
    assert {s.at.isoformat() for s in turn.submissions[:-1]} == {"2026-01-01T08:00:00+00:00"}
    assert turn.submissions[-1].at.isoformat() == "2026-01-02T00:00:00+00:00"
    assert [s.why for s in skipped] == [
        "9 records have an unusable time; each was kept with the time of the one before"
    ]
    timeless = write_lines(tmp_path / "b.jsonl", [at(None)])
    os.utime(timeless, (1_700_000_000, 1_700_000_000))
    assert turns(timeless)[0].started.timestamp() == 1_700_000_000


def test_surrogates_are_joined_or_replaced(tmp_path: Path) -> None:
    line = b'{"role": "user", "content": "\\ud83d\\ude00 \\ud83d! \xed\xa0\xbd\xed\xb8\x80", "id": "\\udc00"}'
    (turn,) = turns(write_lines(tmp_path / "a.jsonl", [line]))
    assert said(turn) == ["😀 �! 😀"]
    assert turn.id == "�"


def test_a_line_without_end_is_skipped_without_being_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records_module, "MAX_LINE", 1000)
    long = json.dumps(MESSAGE | {"content": "x" * 5000})
    found, skipped = both(write_lines(tmp_path / "a.jsonl", [MESSAGE, long, MESSAGE | {"content": "after"}]))
    assert [said(t) for t in found] == [["hello", "after"]]
    assert skipped[0].where == "a.jsonl line 2"


def test_a_line_of_ten_megabytes_is_read(tmp_path: Path) -> None:
    long = MESSAGE | {"content": "x" * 10_000_000 + "end"}
    (turn,) = turns(write_lines(tmp_path / "a.jsonl", [long]))
    assert said(turn)[0].endswith("end")


def test_turns_come_while_the_file_is_still_being_read(tmp_path: Path) -> None:
    lines = [MESSAGE | {"role": role, "content": "x" * 1000} for _ in range(4000) for role in ("user", "assistant")]
    path = write_lines(tmp_path / "a.jsonl", lines)
    got: list[int] = []
    next(read([path], on_bytes=got.append))
    assert sum(got) < path.stat().st_size / 4


def test_a_list_is_split_wherever_it_is_cut_into_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    value = [MESSAGE | {"conversation": f"c{n}", "content": 'say "[{\\" \n ]}' + "\\" * n} for n in range(12)]
    path = tmp_path / "a.json"
    for indent in (None, 2):
        path.write_text(json.dumps(value, indent=indent))
        for size in (1, 2, 3, 7, 64, 10**6):
            monkeypatch.setattr(records_module, "CHUNK", size)
            found, skipped = both(path)
            assert [said(t)[0] for t in found] == [v["content"] for v in value]
            assert skipped == []


def test_a_broken_element_of_a_list_costs_nothing_but_itself(tmp_path: Path) -> None:
    good = json.dumps(MESSAGE | {"conversation": "g"})
    for bad in ('{"a": [1, 2}', '{"a" 1}', '{"a": "open\n}', "nonsense", '{"a": 1', "{]}", '"text, and more"'):
        path = tmp_path / "a.json"
        path.write_text(f"[{good},\n{bad},\n{good}\n]" if bad != '{"a": 1' else f"[{good},\n{good},\n{bad}")
        found, skipped = both(path)
        assert [said(t) for t in found] == [["hello", "hello"]], bad
        assert skipped, bad

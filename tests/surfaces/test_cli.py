"""The command line as a user runs it: in a process of its own, on a store in a folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

import threefold
from threefold.importers import KINDS
from threefold.surfaces.cli import histories
from threefold.surfaces.cli.context import counted, one_line, visible

ROOT = Path(__file__).parent.parent.parent
Run = Callable[..., subprocess.CompletedProcess[str]]

LINES = [
    {
        "conversation": "trip",
        "id": "1",
        "role": "user",
        "content": "Plan a weekend in Lisbon",
        "at": "2026-05-01T10:00:00Z",
    },
    {
        "conversation": "trip",
        "id": "2",
        "role": "assistant",
        "content": "Fish at Ponto Final",
        "at": "2026-05-01T10:00:09Z",
    },
    {"conversation": "游戏", "id": "3", "role": "user", "content": "今天玩成语接龙游戏", "at": "2026-06-01T10:00:00Z"},
]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def call(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("THREEFOLD")}
        environment |= {
            "PYTHONPATH": str(ROOT / "src"),
            "THREEFOLD_DB": str(tmp_path / "store"),
            "THREEFOLD_USER": "ann",
        }
        return subprocess.run(
            [sys.executable, "-m", "threefold", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
            cwd=tmp_path,
            **more,
        )

    return call


@pytest.fixture
def history(tmp_path: Path) -> Path:
    path = tmp_path / "history.jsonl"
    path.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in [*LINES]) + "\n{broken\n", "utf-8")
    return path


def ok(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_import_then_search_log_and_show(run: Run, history: Path) -> None:
    done = ok(run("import", str(history), "--json"))
    assert (done["imported"], done["unchanged"], len(done["skipped"])) == (2, 0, 1)
    assert "line 4" in done["skipped"][0]["where"]
    again = ok(run("--json", "import", str(history)))
    assert (again["imported"], again["unchanged"]) == (0, 2)

    found = ok(run("search", "weekend", "Lisbon", "--json"))
    assert found["mode"] == "hybrid"
    assert found["took_ms"] > 0
    hit = found["hits"][0]
    assert hit["conversation"] == "trip"
    assert hit["matched"] == ["weekend", "Lisbon"]
    assert hit["at"] == "2026-05-01T10:00:00Z"

    assert ok(run("show", hit["ref"], "--json"))["value"]["text"] == "Plan a weekend in Lisbon"
    assert run("show", hit["ref"], "--raw").stdout == "Plan a weekend in Lisbon"
    listed = ok(run("log", "--json"))["conversations"]
    assert [c["id"] for c in listed] == ["游戏", "trip"]
    turns = ok(run("log", "trip", "--json"))["turns"]
    assert turns[0]["about"] == "Plan a weekend in Lisbon"
    assert "Ponto Final" in run("show", turns[0]["ref"]).stdout


def test_a_chinese_word_is_found_and_printed_readably(run: Run, history: Path) -> None:
    run("import", str(history))
    shown = run("search", "接龙")
    assert "今天玩成语接龙游戏" in shown.stdout
    assert "matched: 接龙" in shown.stdout
    assert "\\u" not in run("search", "接龙", "--json").stdout


def test_the_next_page_of_a_search(run: Run, history: Path) -> None:
    run("import", str(history))
    asked = ["search", "weekend in Lisbon 成语", "--json", "--limit"]
    whole = [hit["ref"] for hit in ok(run(*asked, "9"))["hits"]]
    assert len(whole) == 2
    assert [ok(run(*asked, "1", "--offset", str(at)))["hits"][0]["ref"] for at in (0, 1)] == whole
    assert ok(run(*asked, "1", "--offset", "2"))["hits"] == []
    assert "offset" in run("search", "x", "--offset", "-1").stderr


def test_another_user_sees_nothing(run: Run, history: Path) -> None:
    run("import", str(history))
    assert ok(run("--user", "ann2", "search", "Lisbon", "--json"))["hits"] == []
    assert ok(run("--user", "an", "log", "--json"))["conversations"] == []


def test_export_wipe_restore_gives_the_same_hits(run: Run, history: Path, tmp_path: Path) -> None:
    run("import", str(history))

    def hits() -> list[dict[str, Any]]:
        """All but the score, in which the recency of a moment ago is contained."""
        found = ok(run("search", "fish in Lisbon", "--json"))["hits"]
        return [{key: value for key, value in hit.items() if key != "score"} for hit in found]

    before = hits()
    assert before
    assert ok(run("export", "all.zip", "--json"))["turns"] == 2
    receipt = ok(run("forget", "--all", "--yes", "--json"))
    assert receipt["stores"]["turns"] == 2
    assert hits() == []
    assert ok(run("restore", "all.zip", "--json"))["created"] == 2
    assert hits() == before


def test_forget_asks_first(run: Run, history: Path) -> None:
    run("import", str(history))
    refused = run("forget", "--all", stdin=subprocess.DEVNULL)
    assert refused.returncode == 1
    assert "--yes" in refused.stderr
    assert ok(run("search", "Lisbon", "--json"))["hits"]


def test_reading_never_makes_a_store(run: Run, tmp_path: Path) -> None:
    for command in (["search", "x"], ["log"], ["show", "conv:ar:conv_a.turn_b.user.prompt"], ["doctor"]):
        run(*command)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["search", "x"], "no store"),
        (["import", "no-such-file"], "no-such-file"),
        (["restore", "no.zip"], "no.zip"),
        (["--user", " ", "import", "."], "user"),
    ],
)
def test_a_failure_is_one_line_on_standard_error(run: Run, arguments: list[str], says: str) -> None:
    done = run(*arguments)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_wrong_usage_is_status_two(run: Run) -> None:
    assert run("nonsense").returncode == 2
    assert run("search").returncode == 2


def test_bad_references_and_limits_are_explained(run: Run, history: Path) -> None:
    run("import", str(history))
    assert "family" in run("show", "conv:zz:conv_a.turn_b.user.prompt").stderr
    assert "limit" in run("search", "x", "--limit", "0").stderr
    assert "since" in run("search", "x", "--since", "yesterday-ish").stderr
    assert run("show", "conv:ar:conv_trip.turn_nope.user.prompt").returncode == 1


@pytest.mark.parametrize("command", ["search", "recall"])
def test_an_empty_question_is_refused_and_one_of_signs_finds_nothing(run: Run, history: Path, command: str) -> None:
    run("import", str(history))
    for blank in ([""], [" \n"], ["", "\u3000"]):
        done = run(command, *blank)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == "threefold: query is empty; ask a question, or give words to look for\n"
    done = run(command, "?!", "--embedder", "none")
    assert (done.returncode, done.stdout) == (0, "nothing found\n")


def test_one_thing_is_counted_as_one(run: Run, history: Path, tmp_path: Path) -> None:
    assert [counted(n, "owners") for n in (0, 1, 2)] == ["0 owners", "1 owner", "2 owners"]
    assert [counted(n, "rows wait", "row waits") for n in (1, 2)] == ["1 row waits", "2 rows wait"]
    (tmp_path / "one.jsonl").write_text(json.dumps(LINES[2], ensure_ascii=False), "utf-8")
    assert run("import", "one.jsonl").stdout.startswith("1 turn imported, 0 unchanged")
    assert "record: 1 owner, 1 conversation, 1 turn, 1 row, 0 files" in run("doctor").stdout
    assert run("reembed").stdout.startswith("1 row is embedded by ")
    assert run("export", "one.zip").stdout.startswith("1 record and 0 files written")
    assert run("restore", "one.zip", "--user", "ben").stdout.startswith("1 record restored, 0 replaced")
    assert "1 turn, " in run("forget", "--all", "--yes").stdout
    run("import", str(history))
    assert "record: 2 owners, 3 conversations, 3 turns" in run("doctor").stdout


def test_doctor_finds_nothing_wrong_and_says_so(run: Run, history: Path) -> None:
    run("import", str(history))
    done = ok(run("doctor", "--json"))
    assert done["ok"]
    assert "✓" in run("doctor").stdout


def test_doctor_repairs_a_lost_index(run: Run, history: Path, tmp_path: Path) -> None:
    import apsw

    run("import", str(history))
    db = apsw.Connection(str(tmp_path / "store" / "record.db"))
    db.execute("INSERT INTO words (words) VALUES ('delete-all')")
    db.close()
    broken = run("doctor")
    assert broken.returncode == 1
    assert "--repair" in broken.stdout
    assert "3 rows indexed anew" in run("doctor", "--repair").stderr
    assert ok(run("search", "Lisbon", "--json"))["hits"]


def test_demo_ends_with_found_turns_and_a_materialised_one(run: Run) -> None:
    shown = run("demo")
    assert shown.returncode == 0, shown.stderr
    assert "equal to what was published: True" in shown.stdout
    assert shown.stdout.count("matched:") >= 3
    done = ok(run("demo", "--json"))
    wanted = ["lisbon", "q2-report", "q2-report", "学校", "дача"]
    assert [search["hits"][0]["conversation"] for search in done["searches"]] == wanted
    assert done["turn"]["files"][0]["name"] == "plan.md"
    assert (done["memory"]["status"], done["proposed"]["status"]) == ("active", "proposed")
    computed = done["context"]
    assert 0 < computed["estimated_tokens"] <= computed["budget"] == 400
    assert [entry["about"]["memory"] for entry in computed["memories"]] == ["eats fish, no shellfish"]
    assert len(computed["thread"]["messages"]) == 6


def test_the_formats_of_the_command_line_are_those_of_the_importers() -> None:
    assert histories._KINDS == KINDS


def test_an_empty_user_is_refused_not_taken_for_someone(run: Run, history: Path) -> None:
    run("import", str(history))
    done = run("--user", "", "forget", "--all", "--yes")
    assert done.returncode == 1
    assert "user is empty" in done.stderr
    assert ok(run("search", "Lisbon", "--json"))["hits"]


def test_a_folder_that_is_no_store_stays_as_it_is(run: Run, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    assert run("--db", str(tmp_path / "plain"), "log").returncode == 1
    assert list((tmp_path / "plain").iterdir()) == []


def test_what_a_terminal_would_obey_is_shown_not_sent(run: Run, tmp_path: Path) -> None:
    line = {"conversation": "c\u001b[31m", "role": "user", "content": "red \u001b]0;pwned\u0007 \u001b[31mRED"}
    (tmp_path / "h.jsonl").write_text(json.dumps(line) + "\n")
    run("import", "h.jsonl")
    for command in (["search", "red"], ["log"], ["search", "red", "--explain"]):
        shown = run(*command).stdout
        assert "\x1b" not in shown
        assert "\x07" not in shown
    assert "\\x1b" in run("search", "red").stdout


def test_what_turns_the_direction_of_writing_is_shown_as_an_escape() -> None:
    turns = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
    assert visible(turns) == "".join(f"\\u{ord(turn):04x}" for turn in turns)
    assert visible("a\tb\nשלום, مرحبا 👩\u200d👧\x9b") == "a\tb\nשלום, مرحبا 👩\u200d👧\\x9b"
    assert one_line("x\u202e\n y", 20) == "x\\u202e y"


def test_foreign_names_are_shown_not_obeyed(run: Run, tmp_path: Path) -> None:
    trap = "\x1b[31m\u202etrap"
    with threefold.open(tmp_path / "store", embedder=None, background=False) as db:
        ann = db.user("ann")
        with ann.turn(f"c{trap}", turn=f"t{trap}", title=trap) as turn:
            turn.prompt("a red ferry", author=trap)
            turn.attach((f"{trap}.txt", b"x"))
            turn.step(trap, {"a": trap}, result=trap)
            turn.source("https://example.org/" + trap, title=trap)
            turn.note(trap, tag="fact")
            turn.answer("The ferry is red.", author=trap)
        ref = str(turn.ref)
        note = db.user("ann", agent=trap).mem.propose(f"the ferry {trap}", source=trap).id
        ann.doc.ingest(f"# {trap}\n\nThe red ferry {trap} leaves.", source=trap, title=trap)
    (tmp_path / f"{trap}.jsonl").write_text("{broken\n")
    for command in (
        ["search", "ferry", "--explain"], ["log"], ["log", f"c{trap}"], ["show", ref], ["context", "red ferry?"],
        ["context", "red ferry?", "--explain", "--thread", f"c{trap}"], ["ask", "red ferry?"],
        ["threads", "show", f"c{trap}"], ["docs", "list"], ["docs", "show", trap], ["docs", "search", "ferry"],
        ["memories", "proposals"], ["memories", "show", note], ["memories", "history", note],
        ["import", f"{trap}.jsonl"], ["import", f"{trap}.none"], ["docs", "show", f"no {trap}"], ["show", f"no {trap}"],
        ["ingest", f"no {trap}"], ["export", f"no {trap}/x.zip"], ["doctor"],
    ):  # fmt: skip
        done = run(*command, "--embedder", "none")
        assert done.stdout + done.stderr
        assert not {"\x1b", "\u202e"} & set(done.stdout + done.stderr), command


def test_a_second_option_without_its_partner_is_not_ignored(run: Run, history: Path) -> None:
    run("import", str(history))
    assert "ordinal" in run("log", "--ordinal", "2").stderr
    assert "nosuch" in run("log", "nosuch").stderr
    assert run("forget", "--all", "--turn", "1", "--yes").returncode == 2


def attach(store: Path, blobs: str) -> str:
    with threefold.open(store, blobs=blobs, embedder=None, background=False) as db:
        with db.user("ann").turn("trip") as turn:
            turn.prompt("Plan a weekend in Lisbon")
            turn.attach(("wishes.txt", b"no museums"))
        return db.user("ann").conv.turn(turn.ref).attachments[0].ref


def test_files_can_be_kept_elsewhere_and_what_killed_writers_left_is_removed(run: Run, tmp_path: Path) -> None:
    there = tmp_path / "bytes"
    ref = attach(tmp_path / "store", str(there))
    assert run("--blobs", str(there), "show", ref, "--raw").stdout == "no museums"
    assert run("show", ref, "--raw").returncode == 1
    no_link = run("--blobs", str(there), "show", ref, "--link")
    assert no_link.returncode == 1
    assert "use read" in no_link.stderr
    (file,) = [path for path in there.rglob("*") if path.is_file() and path.name != "store"]
    left = file.with_name(f"{file.name}.x.part")
    left.write_bytes(b"no mus")
    assert "unreferenced" not in run("doctor", "--repair", "--blobs", str(there)).stderr.replace("0 unreferenced", "")
    os.utime(left, (0, 0))
    said = run("doctor", "--blobs", str(there))
    assert f"✓ files: kept in {there}" in said.stdout
    assert "✓ files: 1 that no turn refers to" in said.stdout
    assert "1 unreferenced file removed" in run("doctor", "--repair", "--blobs", str(there)).stderr
    assert not left.exists()
    assert file.exists()


def test_a_file_in_s3_is_linked_to(run: Run, s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ref = attach(tmp_path / "store", s3)
    url = run("--blobs", s3, "show", ref, "--link").stdout.strip()
    with urlopen(url, timeout=10) as answer:
        assert answer.read() == b"no museums"
    assert ok(run("show", ref, "--link", "--json", "--blobs", s3))["url"].startswith(url.partition("?")[0])
    assert f"✓ files: kept in {s3}" in run("doctor", "--blobs", s3).stdout
    monkeypatch.setenv("AWS_ENDPOINT", "http://127.0.0.1:9")
    dead = run("doctor", "--blobs", s3)
    assert dead.returncode == 1
    assert f"✗ store: blobs at {s3}" in dead.stdout

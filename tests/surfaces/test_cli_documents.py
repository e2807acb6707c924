"""Documents on the command line, as a person types it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import Run, told

ROOT = Path(__file__).parent.parent.parent


def environment(folder: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("THREEFOLD")}
    return kept | {"PYTHONPATH": str(ROOT / "src"), "THREEFOLD_DB": str(folder / "s"), "THREEFOLD_USER": "ann"}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def call(*arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "threefold", *arguments], input=given,
            env=environment(tmp_path), capture_output=True, text=True, encoding="utf-8", check=False, cwd=tmp_path,
        )  # fmt: skip

    return call


@pytest.fixture
def manual(tmp_path: Path) -> Path:
    folder = tmp_path / "manual"
    folder.mkdir()
    (folder / "boats.md").write_text("# 船\n\n## River\n\nThe river boat leaves at nine.\x1b[31m\n", "utf-8")
    (folder / "trains.txt").write_text("The night train to Lisbon is late.\n")
    (folder / "x.bin").write_bytes(b"\0\1\2")
    return folder


def test_documents_from_the_first_file_to_the_last(run: Run, manual: Path) -> None:
    assert run("docs", "list").returncode == 1  # there is no store yet
    done = told(run, "ingest", str(manual), "--source", "manual", "--meta", "year=2024", "--meta", "kind=memo")
    assert (done["created"], done["unchanged"]) == (2, 0)
    assert [each["why"][:12] for each in done["skipped"]] == ["file 'x.bin'"]
    again = run("ingest", str(manual), "--source", "manual", "--meta", "year=2024", "--meta", "kind=memo")
    assert again.stdout.splitlines()[0] == "0 new, 0 replaced, 2 unchanged, 0 removed, 1 skipped"
    assert "x.bin" in again.stdout
    listed = told(run, "docs", "list")["documents"]
    assert sorted(each["source"] for each in listed) == ["manual/boats.md", "manual/trains.txt"]
    assert listed[0]["metadata"] == {"year": 2024, "kind": "memo"}
    found = told(
        run, "docs", "search", "when", "leaves", "the", "boat", "--filter", '{"year": {"gte": 2024}}', "--explain"
    )
    hit = found["hits"][0]
    assert (hit["source"], hit["title"]) == ("manual/boats.md", "船")
    assert "explain" in hit
    assert told(run, "docs", "search", "boat", "--filter", '{"year": 1}')["hits"] == []
    said = run("docs", "search", "boat")
    assert "\x1b" not in said.stdout
    assert hit["ref"] in said.stdout
    context = run("docs", "search", "boat", "--context", "--max-tokens", "200").stdout
    assert "> The river boat leaves at nine." in context
    shown = told(run, "docs", "show", "manual/boats.md")
    assert shown["passages"][0]["text"].startswith("# 船")
    assert run("docs", "show", hit["document"], "--text").stdout.startswith("# 船")
    assert run("show", f"doc:{hit['document']}", "--raw").stdout == (manual / "boats.md").read_text("utf-8")
    assert "river boat" in run("show", hit["ref"]).stdout
    assert told(run, "docs", "stats")["documents"] == 2
    (manual / "trains.txt").unlink()
    assert told(run, "ingest", str(manual), "--source", "manual", "--prune")["removed"] == 1
    assert run("docs", "remove", "manual/boats.md").stdout.startswith("removed: ")
    assert run("docs", "list").stdout == "no documents\n"


def test_single_files_standard_input_and_what_is_shared(run: Run, manual: Path) -> None:
    assert told(run, "ingest", str(manual / "boats.md"), "--title", "Mine")["created"] == 1
    done = run("ingest", "-", "--source", "typed", given="typed in by hand")
    assert (done.returncode, done.stdout.split(",")[0]) == (0, "1 new"), done
    assert told(run, "ingest", str(manual / "trains.txt"), "--source", "t", "--shared", "organization")["created"] == 1
    assert {each["id"][:4] for each in told(run, "docs", "list")["documents"]} == {"doc_", "org_"}
    assert told(run, "docs", "stats", "--shared", "organization")["documents"] == 1
    refused = run("docs", "clear")
    assert (refused.returncode, "--yes" in refused.stderr) == (1, True)
    assert told(run, "docs", "clear", "--yes")["forgot"] == "documents"
    assert [each["id"][:4] for each in told(run, "docs", "list")["documents"]] == ["org_"]
    for arguments in (
        ["ingest", "nowhere.md"], ["ingest", str(manual / "x.bin")], ["ingest", str(manual), "--meta", "x"],
        ["ingest", "-"], ["docs", "show", "nothing"], ["docs", "search", "x", "--filter", "{"],
        ["ingest", str(manual / "boats.md"), "--watch"], ["ingest", "a", "b", "--title", "x"],
        ["ingest", str(manual / "boats.md"), "--chunk-tokens", "3"],
    ):  # fmt: skip
        failed = run(*arguments, given="")
        assert (failed.returncode, failed.stderr.count("\n")) == (1, 1), (arguments, failed)
        assert failed.stderr.startswith("threefold: ")


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_a_folder_is_watched_until_it_is_stopped(run: Run, manual: Path, tmp_path: Path) -> None:
    watching = subprocess.Popen(
        [sys.executable, "-m", "threefold", "ingest", str(manual), "--source", "m", "--watch"],
        env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
    )  # fmt: skip
    try:
        assert watching.stdout is not None
        assert watching.stdout.readline().startswith("2 new")
        time.sleep(0.05)
        (manual / "new.md").write_text("A new one.")
        line = watching.stdout.readline()
        while not line.startswith("1 new"):
            line = watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        _, errors = watching.communicate(timeout=30)
    finally:
        watching.kill()
    assert watching.returncode == 0, errors
    assert "Traceback" not in errors
    assert told(run, "docs", "stats")["documents"] == 3

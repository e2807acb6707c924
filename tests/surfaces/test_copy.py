"""Moving a store by name: copied, checked, resumed, and never changed where it came from."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
from postgres_server import server

import threefold
from threefold.errors import Conflict, InvalidInput
from threefold.model.rows import RowKey
from threefold.surfaces.cli.main import main
from threefold.testing.contract.desk import NOW
from threefold.testing.fakes import Clock, HashEmbedder
from threefold.transfer.questions import _unlike

SETTINGS = {"embedder": HashEmbedder(16), "background": False, "durable": False, "clock": Clock(), "ttl": None}


def differences(one: threefold.Threefold, other: threefold.Threefold) -> tuple[str, ...]:
    return threefold.compare_stores(one, other, deep=True, questions=25).differences


def open_store(folder: Path | str, **more: Any) -> threefold.Threefold:
    return threefold.open(folder, **(SETTINGS | more))


def fill(db: threefold.Threefold, turns: int = 60) -> None:
    for tenant, user in (("default", "alice"), ("default", "bob"), ("other", "alice")):
        handle = db.user(user, tenant)
        for i in range(turns):
            with handle.turn(f"c{i % 4}", turn=str(i), started=NOW + timedelta(minutes=i)) as turn:
                turn.prompt(f"asked {i} of the river boat number{i % 7}")
                turn.attach(("in.txt", f"{user} {i}".encode()))
                turn.answer(f"answered {i}: mountain hut{i % 5} and lake{i % 3}")
        handle.forget("c1", "1")
    db.embed_pending(limit=100)


def dump(folder: Path) -> list[tuple[object, ...]]:
    db = apsw.Connection(str(folder / "record.db"))
    # What a virtual table holds stands in others.
    named = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name"
    tables = [name for (name,) in db.execute(named)]
    found = [(table, *row) for table in tables for row in db.execute(f'SELECT * FROM "{table}"')]
    db.close()
    return found


@pytest.fixture
def source(tmp_path: Path) -> Path:
    with open_store(tmp_path / "source") as db:
        fill(db)
    return tmp_path / "source"


def test_everything_is_copied_and_the_check_says_so(source: Path, tmp_path: Path) -> None:
    before = dump(source)
    with open_store(source) as one, open_store(tmp_path / "target") as other, open_store(":memory:") as memory:
        seen: list[int] = []
        done = threefold.copy_store(one, other, seen.append)
        assert (done.turns, done.blobs, done.unchanged, sum(seen)) == (177, 177, 0, 177)
        found = threefold.compare_stores(one, other, deep=True)
        assert (found.turns, found.blobs, found.questions, found.differences) == (177, 177, 200, ())
        assert other.state(check=True) == one.state(check=True)
        assert threefold.copy_store(other, memory).turns == 177
        assert differences(one, memory) == ()
        again = threefold.copy_store(one, other)
        assert (again.turns, again.blobs, again.unchanged) == (0, 0, 177)
        with pytest.raises(InvalidInput, match="another store"):
            threefold.copy_store(one, one)
    assert dump(source) == before


def test_the_command_copies_checks_and_speaks_json(source: Path, tmp_path: Path, capsys: Any) -> None:
    target = str(tmp_path / "target")
    assert main(["copy", str(source), target]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "copied: 177 turns, 177 files; 0 turns were there already"
    assert said[1] == "checked: 177 turns, 177 files, 200 questions: the same"
    assert main(["copy", str(source), target, "--no-check", "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["copied"]["turns"], done["copied"]["unchanged"], done["checked"]) == (0, 177, None)
    with open_store(target) as db:
        db.user("bob").forget(conversation="c2")
        db.user("bob").conv.feedback("ar:3.user.prompt", "ok", conversation="c3")
    assert main(["copy", str(source), target, "--check-only", "--json"]) == 1
    done = json.loads(capsys.readouterr().out)
    assert done["copied"] is None
    assert done["checked"]["differences"] == [
        "tenant 'default', user 'bob': turn '3' of conversation 'c3' differs in feedback"
    ]
    assert main(["copy", str(source), target]) == 0
    assert "copied: 0 turns, 0 files" in (said := capsys.readouterr().out)
    assert "15 turns were removed in the target before and stay removed" in said
    for wrong in (
        ["copy", str(tmp_path / "none"), target],
        ["copy", str(source), str(tmp_path / "no"), "--check-only"],
    ):
        assert main(wrong) == 1
        assert "no store at" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
    assert not (tmp_path / "no").exists()


def test_what_differs_is_told(source: Path, tmp_path: Path) -> None:
    with open_store(source) as one, open_store(tmp_path / "target") as other:
        threefold.copy_store(one, other)
        db = apsw.Connection(str(tmp_path / "target" / "record.db"))
        db.execute("UPDATE turns SET expires = 9e15 WHERE id = 5; DELETE FROM vectors WHERE row = 7;")
        db.execute("UPDATE rows SET text = 'changed' WHERE id = 21; DELETE FROM tombstones WHERE owner = 1;")
        db.execute(
            "UPDATE conversations SET title = 'x' WHERE id = 10; INSERT INTO words (words) VALUES ('delete-all')"
        )
        db.close()
        (file,) = list((tmp_path / "target" / "blobs").glob("*/*/*"))[:1]
        file.write_bytes(b"changed")
        one.user("alice").forget("c0", "8")
        found = differences(one, other)
    said = "\n".join(found)
    for part in ("differs in expires", "differs in vectors", "rows", "not remembered", "another title", "damaged",
                 "turn '8' of conversation 'c0' was removed in the source", "asked "):  # fmt: skip
        assert part in said, said
    assert len(found) <= 51


def test_stores_are_merged_and_conflicts_refused_first(source: Path, tmp_path: Path) -> None:
    with open_store(source) as one, open_store(tmp_path / "target") as other:
        for user, turn in (("alice", "mine"), ("carol", "1")):
            with other.user(user).turn("own", turn=turn) as handle:
                handle.prompt(f"what only {user} has here")
        done = threefold.copy_store(one, other)
        assert done.turns == 177
        assert differences(one, other) == ()
        assert other.user("alice").conv.search("what only alice has")[0].turn == "mine"
    with open_store(source) as one, open_store(tmp_path / "third") as other:
        with other.user("bob").turn("c2", turn="58") as handle:
            handle.prompt("something else")
        with pytest.raises(Conflict, match="'58'"):
            threefold.copy_store(one, other)
        assert [len(other.user(user).conv.turns(limit=100)) for user in ("alice", "bob")] == [59, 1]


def test_files_that_are_lost_are_named_and_stop_nothing(source: Path, tmp_path: Path, capsys: Any) -> None:
    (file, *_) = (source / "blobs").glob("*/*/*")
    file.unlink()
    assert main(["copy", str(source), str(tmp_path / "target")]) == 1
    said = capsys.readouterr().out
    assert f"1 file is lost or damaged in the source, first {file.name}" in said
    assert "177 turns, 176 files, 200 questions: the same" in said


def test_a_file_that_was_lost_on_the_way_is_copied_the_next_time(source: Path, tmp_path: Path) -> None:
    with open_store(source) as one, open_store(tmp_path / "target") as other:
        threefold.copy_store(one, other)
        (file, *_) = (tmp_path / "target" / "blobs").glob("*/*/*")
        file.unlink()
        assert differences(one, other) != ()
        assert threefold.copy_store(one, other).blobs == 1
        assert differences(one, other) == ()


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_copy_that_is_killed_is_resumed(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    code = "import sys, threefold; from test_copy import open_store; " \
        "threefold.copy_store(open_store(sys.argv[1]), open_store(sys.argv[2]), lambda n: None)"  # fmt: skip
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    rng, killed = random.Random(1), 0
    for _ in range(8):
        running = subprocess.Popen([sys.executable, "-c", code, str(source), str(target)], env=environment)
        while not (target / "record.db").exists() and running.poll() is None:
            time.sleep(0.005)
        time.sleep(rng.random() * 0.3)
        running.send_signal(signal.SIGKILL)
        killed += running.wait() == -signal.SIGKILL
    assert killed
    with open_store(source) as one, open_store(target) as other:
        threefold.copy_store(one, other)
        assert differences(one, other) == ()
        assert other.state(check=True) == one.state(check=True)


def test_equal_scores_may_change_places_and_be_cut_differently() -> None:
    def scores(*pairs: tuple[str, float]) -> dict[RowKey, float]:
        return {RowKey("c", turn, 0): score for turn, score in pairs}

    def unlike(one: dict[RowKey, float], other: dict[RowKey, float]) -> str | None:
        return _unlike(one, other, 20, 1e-4, "target")

    full = [(f"{i}", 1 - i / 100) for i in range(19)]
    assert unlike(scores(("a", 0.5), ("b", 0.5)), scores(("b", 0.50001), ("a", 0.5))) is None
    assert unlike(scores(*full, ("a", 0.5)), scores(*full, ("b", 0.5))) is None
    assert "not among" in str(unlike(scores(*full, ("a", 0.6)), scores(*full, ("b", 0.5))))
    assert "not among" in str(unlike(scores(("a", 0.5)), scores()))
    assert "0.50000" in str(unlike(scores(("a", 0.6)), scores(("a", 0.5))))


def test_a_store_moves_to_postgresql_and_back(source: Path, tmp_path: Path, capsys: Any) -> None:
    pg = server()
    url = pg.take()
    assert main(["copy", str(source), url]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "copied: 177 turns, 177 files; 0 turns were there already"
    assert said[1] == "checked: 177 turns, 177 files, 200 questions: the same"
    assert main(["copy", url, str(tmp_path / "back"), "--deep", "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["copied"]["turns"], done["checked"]["differences"]) == (177, [])
    assert main(["--db", url, "--user", "bob", "search", "mountain hut3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hits"]
    with open_store(source) as one, open_store(tmp_path / "back") as back, open_store(url) as there:
        assert differences(one, back) == differences(there, back) == ()
        assert there.state(check=True).problems == ()
    pg.give_back(url)


def test_memories_are_copied_with_their_history(tmp_path: Path) -> None:
    clock = Clock()
    with open_store(tmp_path / "source", clock=clock) as one, open_store(":memory:", clock=clock) as other:
        mem = one.user("alice").mem
        made = mem.remember("prefers trains", tags=["travel"])
        mem.update(made.id, memory="prefers night trains")
        one.user("alice", agent="planner").mem.propose("likes tea")
        one.organization().mem.remember("the company uses PostgreSQL")
        one.decay()
        one.embed_pending()
        threefold.copy_store(one, other)
        assert differences(one, other) == ()
        there = other.user("alice").mem
        assert there.get(made.id) == mem.get(made.id)
        assert there.history(made.id) == mem.history(made.id)
        assert [each.record for each in there.recall("trains", tags=["travel"])] == [mem.get(made.id)]
        assert len(there.proposals()) == 1
        assert [each.memory for each in there.list(layers=["organizational"])] == ["the company uses PostgreSQL"]
        assert other.decay() is False
        # A newer edition of a memory is copied over the older one.
        clock.at += timedelta(minutes=1)
        mem.pin(made.id)
        assert threefold.copy_store(one, other).turns == 1
        assert there.get(made.id).pinned

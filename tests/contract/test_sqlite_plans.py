"""How SQLite goes about the program's reads of rows and records: it has no statistics, so each is held to its plan."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from threefold.backends.opening import open_backend
from threefold.testing.contract.desk import ALICE, NOW, Desk, full_turn

CALLS: dict[str, Callable[[Desk], object]] = {
    "rows": lambda desk: desk.rows(("c1", "1", 0), ("c0", "2", 1)),
    "rows around": lambda desk: desk.rows(("c1", "1", 0), ("c0", "2", 1), around=2),
    "rows alone": lambda desk: desk.rows(("c1", "1", 0), ("c0", "2", 1), whole=False),
    "turn": lambda desk: desk.stored("c1", "1"),
    "records": lambda desk: desk.backend.records(ALICE, [("c1", "1"), ("c0", "2")], NOW),
    "records without rows": lambda desk: desk.backend.records(ALICE, [("c1", "1"), ("c0", "2")], NOW, rows=False),
}


def plans(desk: Desk, call: Callable[[Desk], object]) -> list[str]:
    """The steps of all that a call asks the file."""
    store: Any = desk.backend
    asked: list[tuple[str, Any]] = []

    def note(_: apsw.Cursor, sql: str, values: Any) -> bool:
        asked.append((sql, values))
        return True

    with store._readers.snapshot() as db:
        db.exec_trace = note
    try:
        assert call(desk)
    finally:
        db.exec_trace = None
    found = []
    with store._readers.snapshot() as db:
        for sql, values in asked:
            if sql.lstrip().startswith(("SELECT", "WITH")):
                found += [str(row[3]) for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    return found


@pytest.mark.parametrize("name", CALLS)
def test_what_is_named_is_looked_up(tmp_path: Path, name: str) -> None:
    desk = Desk(*open_backend(str(tmp_path), durable=False))
    for i in range(6):
        desk.record(full_turn(f"c{i % 2}", f"{i}", f"mark{i}", NOW + timedelta(minutes=i)))
    steps = plans(desk, CALLS[name])
    desk.close()
    assert any("sqlite_autoindex_turns" in step or "PRIMARY KEY" in step for step in steps), steps
    scans = [step for step in steps if step.startswith("SCAN") and "VIRTUAL TABLE" not in step]
    assert set(scans) <= {"SCAN CONSTANT ROW"}
    if name == "records without rows":
        assert not any(step.startswith("SEARCH r ") and "turn=?" in step and "seq" in step for step in steps), steps
    if name == "rows alone":
        assert any("(turn=? AND seq=?)" in step for step in steps), steps

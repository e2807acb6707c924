"""Processes with doors that are killed lose nothing that was acknowledged, run nothing twice, leave no lane stuck."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

KILLER = Path(__file__).with_name("kill_doors.py")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs fork and SIGKILL")


def test_nothing_is_lost_or_done_twice_when_processes_with_doors_are_killed(store: str, tmp_path: Path) -> None:
    command = [
        sys.executable,
        str(KILLER),
        store,
        "--notes",
        str(tmp_path / "notes"),
        "--kills",
        "25",
        "--seconds",
        "40",
    ]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=300, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    assert done.stdout, done.stderr
    result = json.loads(done.stdout)
    assert result["problems"] == [], result
    assert result["kills"] >= 10, result
    assert result["accepted"] > 0

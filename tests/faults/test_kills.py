"""Writers that are killed lose nothing that was acknowledged and leave nothing that is half."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

KILLER = Path(__file__).with_name("kill_writers.py")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs fork and SIGKILL")


@pytest.mark.parametrize(("kills", "more"), [(150, []), (150, ["--not-durable"])])
def test_nothing_is_lost_or_left_when_writers_are_killed(tmp_path: Path, kills: int, more: list[str]) -> None:
    command = [sys.executable, str(KILLER), "--kills", str(kills), "--seconds", "60", "--folder", str(tmp_path), *more]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=300, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    assert done.stdout, done.stderr
    result = json.loads(done.stdout)
    assert result["problems"] == [], result
    assert result["kills"] >= 60, result
    assert result["recorded"] > 0

"""The command line as a process of its own, as a user runs it: nothing of the environment's settings reaches it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent.parent / "src"
Run = Callable[..., subprocess.CompletedProcess[str]]


def command_line(folder: Path) -> Run:
    """Runs `threefold` in a folder, as user ann of a store in it; keywords are further environment variables."""

    def call(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        plain = {k: v for k, v in os.environ.items() if not k.startswith("THREEFOLD")}
        own = {"PYTHONPATH": str(SOURCE), "THREEFOLD_DB": str(folder / "store"), "THREEFOLD_USER": "ann"}
        return subprocess.run(
            [sys.executable, "-m", "threefold", *arguments],
            env={**plain, **own, **environment},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
            cwd=folder,
        )

    return call


def told(run: Run, *arguments: str) -> Any:
    """What a command says with `--json`, and nothing else."""
    done = run(*arguments, "--json")
    assert (done.returncode, done.stderr) == (0, ""), done
    return json.loads(done.stdout)

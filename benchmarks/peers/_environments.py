"""A virtual environment for each peer, made once and kept; how much of the disk its packages take."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = Path(__file__).with_name("requirements")
_STAMP = "peer.json"
_SECONDS = 1200


class Failed(Exception):
    """A command did not do what it should; says why in a line."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a peer is installed, and the bytes of its packages beyond a bare environment, byte code left out."""

    python: Path
    installed: int


def environment(name: str, envs: Path, python: str) -> Environment:
    """The environment called `name`, made when it is new or its requirements have changed.

    Raises:
        Failed: it could not be made or installed.
    """
    folder, uv = envs / name, _uv()
    wanted = {"requirements": _digest(name), "python": python}
    stamp = folder / _STAMP
    known = json.loads(stamp.read_text("utf-8")) if stamp.exists() else {}
    if {key: known.get(key) for key in wanted} != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        run([uv, "venv", "--quiet", "--python", python, folder] if uv else [python, "-m", "venv", folder])
        known = {**wanted, "bare": _size(_packages(_interpreter(folder)))}
        _install(name, _interpreter(folder), uv)
        stamp.write_text(json.dumps(known), "utf-8")
    elif name == "threefold":
        # The tree at hand, which changes while the version stays.
        _install(name, _interpreter(folder), uv)
    found = _interpreter(folder)
    return Environment(found, _size(_packages(found)) - known["bare"])


def _install(name: str, python: Path, uv: str | None) -> None:
    pip: list[str | Path] = [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install"]
    if name != "threefold":
        run([*pip, "--quiet", "--requirement", REQUIREMENTS / f"{name}.txt"])
    else:
        run([*pip, "--quiet", *(["--reinstall-package", "threefold"] if uv else []), ROOT])


def run(command: Sequence[str | Path], seconds: float = _SECONDS, **environment: str) -> str:
    """What a command prints.

    Raises:
        Failed: with the last line of what it complained about.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8") as complaints:
        try:
            done = subprocess.run(
                [str(part) for part in command],
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
                timeout=seconds,
                env=environment or None,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Failed(f"not done within {seconds:.0f} s", _text(error.stdout)) from None
        except OSError as error:
            raise Failed(str(error), "") from None
        if done.returncode:
            complaints.seek(0)
            said = complaints.read().strip().splitlines() or [f"ended with {done.returncode}"]
            raise Failed(said[-1][:200], done.stdout)
    return done.stdout


def _text(printed: str | bytes | None) -> str:
    return printed.decode() if isinstance(printed, bytes) else printed or ""


def _uv() -> str | None:
    return shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))


def _digest(name: str) -> str:
    file = ROOT / "pyproject.toml" if name == "threefold" else REQUIREMENTS / f"{name}.txt"
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _interpreter(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def _packages(python: Path) -> Path:
    return Path(run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip())


def _size(folder: Path) -> int:
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts)

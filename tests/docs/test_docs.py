"""The documents are true: their examples run, their reference is that of the code, their links lead somewhere."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "AGENTS.md", *(ROOT / "docs").glob("*.md")])


def blocks(page: Path) -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL))


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_the_examples_of_a_page_run_in_order(page: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", blocks(page)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_reference_page_is_made_from_this_code() -> None:
    module = load(ROOT / "scripts" / "make_reference.py")
    assert (ROOT / "docs" / "reference.md").read_text("utf-8") == module.reference()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_agents_page_is_short() -> None:
    assert len((ROOT / "AGENTS.md").read_text("utf-8").splitlines()) < 80


def test_commands_that_the_pages_name_exist() -> None:
    from threefold.surfaces.cli.main import parser

    usage = parser().format_help()
    for page in PAGES:
        for line in re.findall(r"^ {4}(?:\$ )?threefold (.+)$", page.read_text("utf-8"), re.MULTILINE):
            words = [w for w in line.split() if not w.startswith("-")]
            named = next(
                (w for w in words if re.fullmatch("[a-z]+", w) and re.search(rf"^ +{w}\b", usage, re.MULTILINE)), None
            )
            assert named, f"{page.name}: no command in 'threefold {line}'"

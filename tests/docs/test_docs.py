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

from threefold.search.features import FEATURES
from threefold.text.terms import index_terms, query_terms

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


def test_what_the_pages_show_is_what_their_examples_print() -> None:
    module = load(ROOT / "scripts" / "make_printed.py")
    number = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
    for page in module.pages():
        shown = page.read_text("utf-8")
        printed = module.printed(shown)
        # The last digits differ from machine to machine, and so may the places where lines are broken.
        assert number.sub("0", printed).split() == number.sub("0", shown).split(), "run scripts/make_printed.py"
        values = [[float(each) for each in number.findall(text)] for text in (printed, shown)]
        assert values[0] == pytest.approx(values[1], abs=0.011), "run scripts/make_printed.py"


def test_what_the_page_on_search_calls_one_word_is_found_as_one() -> None:
    page = (ROOT / "docs" / "search.md").read_text("utf-8")
    alike = [
        re.findall("`([^`]+)`", group)
        for line in re.findall(r"^\| [^|]+ \| (`[^|]+) \| [^`|]+ \|$", page, re.MULTILINE)
        for group in line.split(";")
    ]
    assert len(alike) > 15
    for stored, *asked in alike:
        for question in asked:
            assert question != stored
            assert set(query_terms(question)) <= set(index_terms(stored)), (stored, question)


def test_the_page_on_search_names_every_feature() -> None:
    page = (ROOT / "docs" / "search.md").read_text("utf-8")
    told = re.findall(r"^\| [^|]+ \| ((?:`[\w+-]+` ?)+) \|$", page, re.MULTILINE)
    assert sorted(" ".join(told).replace("`", "").split()) == sorted(FEATURES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_was_left_in_the_middle_of_a_merge(page: Path) -> None:
    assert not re.search(r"^(<{7} |={7}$|>{7} )", page.read_text("utf-8"), re.MULTILINE)


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

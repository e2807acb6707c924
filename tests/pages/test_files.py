"""The files of the pages: all of them are shipped, each leads only to others of them, nothing is written inline."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parent.parent.parent
WEB = ROOT / "src" / "threefold" / "surfaces" / "web"
FILES = sorted(path for path in WEB.rglob("*") if path.is_file())
OURS = [path for path in FILES if path.suffix in {".js", ".css", ".html"} and "vendor" not in path.parts]
# Names of vocabularies, which nobody asks for.
NAMES = ("http://www.w3.org/",)


def test_the_wheel_has_every_file_of_the_pages() -> None:
    shipped = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert {path.relative_to(ROOT / "src").as_posix() for path in FILES} <= shipped
    assert sum(path.stat().st_size for path in FILES) < 500_000


def test_every_library_comes_with_its_licence() -> None:
    vendor = {path.name for path in (WEB / "vendor").iterdir()}
    said = {name.removeprefix("LICENSE.") for name in vendor if name.startswith("LICENSE.")}
    assert said == {"preact", "signals", "signals-core", "htm", "marked", "dompurify"}


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.relative_to(WEB).as_posix())
def test_a_file_leads_nowhere_else(path: Path) -> None:
    text = path.read_text("utf-8")
    assert [url for url in re.findall(r"""https?://[a-z0-9][^\s"'`<>)]*""", text) if not url.startswith(NAMES)] == []
    named = re.findall(r"""(?:from|import)\s+["'](\.[^"']+)["']""", text)
    named += re.findall(r"""(?:src|href)="([a-z][^":]*)\"""", text) if path.suffix == ".html" else []
    assert [name for name in named if not (path.parent / name).is_file()] == []
    assert not re.search(r"""\sstyle=["']|\son[a-z]+=["']|innerHTML|dangerouslySetInnerHTML|\beval\(""", text)
    assert len(text.splitlines()) < 300


def test_nothing_in_the_first_page_is_inline() -> None:
    page = (WEB / "index.html").read_text("utf-8")
    assert re.findall(r"<script(?![^>]* src=)", page) == []
    assert "<style" not in page


def test_every_module_is_asked_for_at_once() -> None:
    page = (WEB / "index.html").read_text("utf-8")
    modules = {path.relative_to(WEB).as_posix() for path in WEB.rglob("*.js")} - {"js/theme.js", "js/main.js"}
    assert set(re.findall(r'<link rel="modulepreload" href="([^"]+)">', page)) == modules


def test_libraries_import_by_path() -> None:
    for path in (WEB / "vendor").glob("*.js"):
        text = path.read_text("utf-8")
        assert [name for name in re.findall(r"""\bfrom\s*["']([^"']+)["']""", text) if not name.startswith("./")] == []
        assert "sourceMappingURL" not in text

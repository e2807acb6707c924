"""The pictures in the docs are those of the figures beside them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def plots(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    spec = importlib.util.spec_from_file_location("make_plots", SCRIPTS / "make_plots.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "make_plots", module)
    spec.loader.exec_module(module)
    return module


def lines(figure: float, **more: object) -> dict[str, object]:
    return {"figure": "search, hybrid, 1,000 rows", "floor_p50_ms": 1.0, "p50_ms": figure, **more}


def scaled(rows: int, took: float) -> dict[str, object]:
    return {
        "engine": "sqlite", "what": "search", "rows": rows, "user_rows": 1000, "p50_ms": took, "floor_p50_ms": 2.0
    }  # fmt: skip


def measured(lists: list[str], value: float, **more: object) -> dict[str, object]:
    return {
        "set": "locomo", "unit": "message", "group": "all", "metrics": {"rec@10": value}, "embedder": "bundled",
        "lists": lists, **more,
    }  # fmt: skip


def test_the_pictures_are_those_of_the_lines_beside_them(plots: ModuleType) -> None:
    for path, picture in plots.pictures():
        assert path.read_text("utf-8") == picture, "run scripts/make_plots.py"


def test_a_picture_says_what_it_shows(plots: ModuleType) -> None:
    for _, picture in plots.pictures():
        root = ET.fromstring(picture)
        named = {root.find(f"{SVG}{tag}").get("id"): root.findtext(f"{SVG}{tag}") for tag in ("title", "desc")}  # type: ignore[union-attr]
        assert root.get("role") == "img"
        assert all(named[each] for each in str(root.get("aria-labelledby")).split())
        assert "prefers-color-scheme: dark" in picture


def test_the_last_line_about_a_thing_counts_and_what_is_missing_is_left_out(plots: ModuleType) -> None:
    everything = ["lexical", "trigram", "semantic"]
    recall = plots.recall(
        [
            measured(everything, 0.5),
            measured(["floor"], 0.4),
            measured(["semantic"], 0.1),
            measured(everything, 0.9, embedder="none"),
            measured(everything, 0.75),
        ]
    )
    assert "LoCoMo, message, rec@10: plain full text 0.40, Threefold 0.75, target 0.75." in recall
    assert "SciFact" not in recall
    assert "rank fusion alone 0.60" in plots.recall(
        [measured(everything, 0.6, ranking="fusion"), measured(everything, 1)]
    )
    assert "hybrid, 1k rows: its parts alone 1.0, Threefold 7.0." in plots.latency([lines(5.0), lines(7.0)])


def test_of_a_store_that_grew_the_largest_is_drawn(plots: ModuleType) -> None:
    drawn = plots.latency([scaled(1_000_400, 9.0), scaled(20_000, 5.0)])
    assert "SQLite, 1k of 1M rows: its parts alone 2.0, Threefold 9.0." in drawn


def test_nothing_measured_is_an_empty_picture(plots: ModuleType) -> None:
    for draw in plots.PLOTS.values():
        assert ET.fromstring(draw([])).tag.endswith("svg")

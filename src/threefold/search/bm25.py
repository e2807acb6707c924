"""BM25 over terms: the plain statement of lexical scoring, for back ends without a full-text index."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from threefold.model.query import TOLD
from threefold.text.terms import WILDCARD

K = TypeVar("K")
# Okapi's usual constants. A row's conversation and role stand beside its words in SQLite's index and count as two more
# words of its length; so they do everywhere, that every back end may score alike.
K1, B, BESIDE = 1.2, 0.75, 2


class Scored(NamedTuple, Generic[K]):
    """Scores of documents; bit i of `having` is set where one has query term i (of the first `TOLD`); rarities by i."""

    scores: dict[K, float]
    having: dict[K, int]
    rarity: dict[int, float]


def bm25(query: Sequence[str], documents: Mapping[K, Sequence[str]], k1: float = K1, b: float = B) -> Scored[K]:
    """Scores of the documents that have any of the distinct terms of the query.

    Okapi BM25 with Lucene's rarity, log(1 + (N − n + ½) / (n + ½)), which is never negative; k1 = 1.2, b = 0.75. A
    query term that ends in `*` stands for every term that begins so.
    """
    found: Scored[K] = Scored({}, {}, {})
    if not documents:
        return found
    counted = {key: Counter(terms) for key, terms in documents.items()}
    average = BESIDE + sum(len(terms) for terms in documents.values()) / len(documents)
    for i, term in enumerate(query):
        occurring = {key: n for key, count in counted.items() if (n := _occurrences(term, count))}
        if not occurring:
            continue
        rarity = math.log(1 + (len(documents) - len(occurring) + 0.5) / (len(occurring) + 0.5))
        bit = 1 << i if i < TOLD else 0
        if bit:
            found.rarity[i] = rarity
        for key, n in occurring.items():
            norm = n + k1 * (1 - b + b * (BESIDE + len(documents[key])) / average)
            found.scores[key] = found.scores.get(key, 0.0) + rarity * n * (k1 + 1) / norm
            found.having[key] = found.having.get(key, 0) | bit
    return found


def _occurrences(term: str, count: Counter[str]) -> int:
    if term.endswith(WILDCARD):
        return sum(n for known, n in count.items() if known.startswith(term[:-1]))
    return count[term]

"""Whether a store holds anything to the point of a question: the gate before a context. Pure.

The ranker's likelihood compares rows of one question with each other; for a question that nothing answers the best of
them still gets some tenths. Here the best of the first rows is looked at in absolute terms: how near it is to the
question in meaning, how much of the question its words are. A logistic regression, with one for questions that have no
vector; fitted by `scripts/make_relevance.py` on questions asked of the history that answers them, of somebody else's,
and on prompts that need no history (docs/context.md has how well it tells them apart).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from threefold.search.features import FEATURES
from threefold.search.rank import Placing

if TYPE_CHECKING:
    import numpy as np

# So many of the first rows are looked at: the best value of each, since what answers need not be the first.
LOOKED_AT: Final = 5
GATE: Final = 0.15
"""Below this nothing is held to be to the point: hardly an answer is lost, and most of what is foreign stays out."""

WEIGHTS: Final[Mapping[str, float]] = {
    "nearness": 10.98, "words": 0.11, "likely": 0.51, "words_found": 0.83, "": -4.5,
}  # fmt: skip
# Without a vector of the question, or of the rows.
WORDS_ALONE: Final[Mapping[str, float]] = {
    "words": 0.99, "likely": 0.62, "words_found": 0.55, "": -2.02,
}  # fmt: skip


class Gauge:
    """How likely what was found is to the point, worked out when it is asked for: most who search do not ask.

    `asked` are the orders of what was found, one for each place that was asked.
    """

    def __init__(self, asked: Iterable[Placing] = (), unrelated: Callable[[], float] = float) -> None:
        self.asked, self.unrelated = tuple(asked), unrelated

    def __call__(self) -> float:
        """From 0 to 1; of several places the best.

        Raises:
            ThreefoldError: the embedder failed.
        """
        return max((relevance(placing, self.unrelated) for placing in self.asked), default=0.0)


def relevance(placing: Placing, unrelated: Callable[[], float] = float) -> float:
    """How likely something among the candidates is to the point, from 0 to 1; 0 where there are none.

    `unrelated` gives the cosine that the embedder has for texts that have nothing to do with each other; it is asked
    only where a vector was compared. Where the second stage is off, 1: nothing is known.
    """
    if not len(placing.order):
        return 0.0
    if placing.likely is None or placing.seen is None:
        return 1.0
    seen = observed(placing, unrelated)
    if seen["nearness"] <= 0.0 and seen["words_found"] >= 1.0:
        # In a store of a few rows no word is rare; what has all words of a question is to the point all the same.
        return 1.0
    weights = WEIGHTS if seen["nearness"] > 0.0 else WORDS_ALONE
    return 1.0 / (1.0 + math.exp(-sum(weight * seen[name] for name, weight in weights.items())))


def observed(placing: Placing, unrelated: Callable[[], float]) -> Mapping[str, float]:
    """What is looked at: the best values of the first rows."""
    import numpy as np

    first = placing.order[:LOOKED_AT]
    places = np.flatnonzero(np.isin(placing.head, first))
    likely = float(np.clip(_best(placing.likely, places), 1e-4, 1 - 1e-4))
    scores = {name: _best(found.scores, first) for name, found in placing.listed.items()}
    semantic = scores.get("semantic", 0.0)
    words = max(scores.get("lexical", 0.0), scores.get("trigram", 0.0))
    return {
        "nearness": _nearness(semantic, unrelated()) if semantic > 0.0 else 0.0,
        "words": math.log1p(max(0.0, words)),
        "likely": math.log(likely / (1.0 - likely)),
        "words_found": _best(placing.seen, places, FEATURES.index("words_found")),
        "": 1.0,
    }


def _nearness(cosine: float, unrelated: float) -> float:
    return max(0.0, (cosine - unrelated) / (1.0 - unrelated))


def _best(values: np.ndarray | None, places: np.ndarray, column: int | None = None) -> float:
    if values is None or not len(places):
        return 0.0
    found = values[places] if column is None else values[places, column]
    return float(found.max())

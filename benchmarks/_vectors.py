"""What the vectors of an embedder would add to the decision which of two notes say the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from _pairs import Pair, fit

from threefold.ports import Embedder
from threefold.realms.mem.leftover import Seen
from threefold.realms.mem.likeness import FEATURES, saturated

PRECISION = 0.97


def added(told: Sequence[Pair], found: Sequence[Seen], embedder: Embedder) -> dict[str, Any]:
    """How well the cosine alone, words alone, and both tell pairs of `same` from others that no rule keeps apart.

    `auc` is how often the cosine of the former is the greater. `words` and `both` are the part of the former among
    the likeliest pairs of which at least 97 in a hundred are such, by logistic regressions that learned without the
    language. Only pairs whose script the embedder knows are counted.
    """
    first, second = (np.asarray(embedder.embed([getattr(pair, side) for pair in told])) for side in ("first", "second"))
    cosines = (first * second).sum(axis=1)
    own = [at for at, one in enumerate(found) if not one.conflict and first[at].any() and second[at].any()]
    same = np.array([told[at].relation == "same" for at in own])
    languages = np.array([told[at].language for at in own])
    words = np.array([[saturated(getattr(found[at], name)) for name in FEATURES] for at in own])
    one = np.ones((len(own), 1))
    far = 1.0 - cosines[own][:, None]
    less = (cosines[own][same][:, None] > cosines[own][~same][None, :]).mean()
    return {
        "auc": float(less),
        "words": _recall(_crossed(np.hstack([words, one]), same, languages), same),
        "both": _recall(_crossed(np.hstack([words, far, one]), same, languages), same),
    }


def _crossed(x: Any, same: Any, languages: Any) -> Any:
    """The scores of pairs, each by weights that were learned without its language."""
    scores = np.zeros(len(same))
    for language in sorted(set(languages)):
        held = languages == language
        scores[held] = x[held] @ fit(x[~held], same[~held])
    return scores


def _recall(scores: Any, same: Any) -> float:
    right = np.cumsum(same[np.argsort(-scores, kind="stable")])
    precise = right >= PRECISION * np.arange(1, len(same) + 1)
    return float((right * precise).max() / same.sum())

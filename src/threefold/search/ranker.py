"""The learned ranker: how likely each candidate is to be what is asked for. Pure, but for reading its file.

`scripts/make_ranker.py` makes the file, from data whose licences allow it (`ranker.json` names them).
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from threefold.errors import IntegrityError
from threefold.search.features import FEATURES
from threefold.search.forest import Forest, forest_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]


# What tells whether a question is answered at all: how much of it was ever said, how much of that the best row has, and
# how strongly.
ANSWERED: Final = tuple(FEATURES.index(name) for name in ("known", "share", "strength"))


class Ranker(NamedTuple):
    """A forest over `FEATURES`, and the `line` from its score and the best of `ANSWERED` to the logarithm of the odds.

    `line` has the weight of the score, those of the best values, and the offset.
    """

    forest: Forest
    line: tuple[float, ...]

    def likely(self, seen: Floats) -> Floats:
        """The likelihood of each row of features, between 0 and 1 and neither of them; in the order of the scores."""
        import numpy as np

        slope, *weights, offset = self.line
        answered = np.clip(seen[:, ANSWERED].max(axis=0, initial=0.0), 0.0, 1.0) @ np.array(weights)
        logits = np.clip(slope * self.forest.score(seen) + answered + offset, -30.0, 30.0)
        return np.asarray(1.0 / (1.0 + np.exp(-logits)))


def load_ranker(path: Path) -> Ranker:
    """Read a ranker's file.

    Raises:
        IntegrityError: it is not one, or was made for other features.
    """
    try:
        written = json.loads(path.read_text("utf-8"))
        forest = forest_of(written["forest"])
        ranker = Ranker(forest, tuple(map(float, written["line"])))
        if len(ranker.line) != len(ANSWERED) + 2 or not math.isfinite(sum(ranker.line)):
            raise ValueError(f"line must be {len(ANSWERED) + 2} finite numbers")
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise IntegrityError(f"the ranker {path.name} cannot be read ({error}); install threefold anew") from None
    if forest.features != FEATURES:
        raise IntegrityError(f"the ranker {path.name} was made for other features; run scripts/make_ranker.py")
    return ranker

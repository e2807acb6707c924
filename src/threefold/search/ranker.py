"""The learned ranker: how likely each candidate is to be what is asked for. Pure, but for reading its file.

`scripts/make_ranker.py` makes the file, from data whose licences allow it (`ranker.json` names them).
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from threefold.errors import IntegrityError
from threefold.search.features import FEATURES
from threefold.search.forest import Forest, forest_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Ranker:
    """A forest over `FEATURES`, and the line (`slope`, `offset`) from its score to the logarithm of the odds."""

    forest: Forest
    slope: float
    offset: float

    def likely(self, seen: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The likelihood of each row of features, between 0 and 1 and neither of them."""
        import numpy as np

        logits = np.clip(self.slope * self.forest.score(seen) + self.offset, -30.0, 30.0)
        return np.asarray(1.0 / (1.0 + np.exp(-logits)))


def load_ranker(path: Path) -> Ranker:
    """Read a ranker's file.

    Raises:
        IntegrityError: it is not one, or was made for other features.
    """
    try:
        written = json.loads(path.read_text("utf-8"))
        forest = forest_of(written["forest"])
        ranker = Ranker(forest, float(written["slope"]), float(written["offset"]))
        if not math.isfinite(ranker.slope * ranker.offset):
            raise ValueError("slope and offset must be numbers")
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise IntegrityError(f"the ranker {path.name} cannot be read ({error}); install threefold anew") from None
    if forest.features != FEATURES:
        raise IntegrityError(f"the ranker {path.name} was made for other features; run scripts/make_ranker.py")
    return ranker

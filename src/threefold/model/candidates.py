"""The candidates that a store answers a `Query` with, a column each: ranking them is arithmetic over whole columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, overload

from threefold.model.kinds import ROLES
from threefold.model.query import ListName
from threefold.model.rows import RowKey
from threefold.model.times import from_micros, to_micros

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]


class Candidate(NamedTuple):
    """A row that some list proposed, with what ranking needs.

    `position` numbers the rows of its conversation, `words` is its length in terms, `asks` whether it ends with a
    question mark. Bit i of `having` is set where a list of words says that the row has word i of the question, or what
    it was corrected to.
    """

    key: RowKey
    role: str
    at: datetime
    position: int
    words: int
    author: str | None = None
    asks: bool = False
    having: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class CandidateRows(Sequence[Candidate]):
    """Candidates as columns, int64 of shape (rows,); an entry is a `Candidate`.

    `conversation`, `turn` and `author` are places in `conversations`, `turns` and `authors`, which may name more than
    are here (author 0 is none); rows of one turn, and no others, have the same `turn`. `role` is a place in `ROLES`,
    `at` is in microseconds since 1970.
    """

    conversations: Sequence[str]
    turns: Sequence[str]
    authors: Sequence[str | None]
    conversation: Ints
    turn: Ints
    seq: Ints
    position: Ints
    role: Ints
    at: Ints
    words: Ints
    author: Ints
    asks: Ints
    having: Ints

    @classmethod
    def of(cls, rows: Iterable[Candidate]) -> CandidateRows:
        """The columns of these rows."""
        import numpy as np

        conversations: dict[str, int] = {}
        turns: dict[tuple[str, str], int] = {}
        authors: dict[str | None, int] = {None: 0}
        numbers = [
            (
                conversations.setdefault(key.conversation, len(conversations)),
                turns.setdefault((key.conversation, key.turn), len(turns)),
                key.seq, position, ROLES.index(role), to_micros(at), words,
                authors.setdefault(author, len(authors)), asks, having,
            )
            for key, role, at, position, words, author, asks, having in rows
        ]  # fmt: skip
        columns = np.array(numbers, dtype=np.int64).reshape(-1, 10).T
        return cls(list(conversations), [turn for _, turn in turns], list(authors), *columns)

    def __len__(self) -> int:
        return len(self.turn)

    @overload
    def __getitem__(self, number: int) -> Candidate: ...
    @overload
    def __getitem__(self, number: slice) -> list[Candidate]: ...
    def __getitem__(self, number: int | slice) -> Candidate | list[Candidate]:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        return Candidate(
            self.key(number),
            ROLES[self.role[number]],
            from_micros(int(self.at[number])),
            int(self.position[number]),
            int(self.words[number]),
            self.authors[self.author[number]],
            bool(self.asks[number]),
            int(self.having[number]),
        )

    def take(self, numbers: Ints, having: Ints) -> CandidateRows:
        """The rows with these numbers, in this order and with these words of the question."""
        return CandidateRows(
            self.conversations, self.turns, self.authors, self.conversation[numbers], self.turn[numbers],
            self.seq[numbers], self.position[numbers], self.role[numbers], self.at[numbers], self.words[numbers],
            self.author[numbers], self.asks[numbers], having,
        )  # fmt: skip

    def key(self, number: int) -> RowKey:
        """The key of one row."""
        conversation, turn = self.conversations[self.conversation[number]], self.turns[self.turn[number]]
        return RowKey(conversation, turn, int(self.seq[number]))


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """One list, best first: places in the rows, int64, and scores, float64, both of shape (hits,)."""

    numbers: Ints
    scores: Floats

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[tuple[int, float]]:
        return iter(zip(self.numbers.tolist(), self.scores.tolist(), strict=True))

    @classmethod
    def of(cls, hits: Sequence[tuple[int, float]]) -> Hits:
        """The columns of pairs (place, score)."""
        import numpy as np

        return cls(
            np.array([number for number, _ in hits], dtype=np.int64),
            np.array([score for _, score in hits], dtype=np.float64),
        )

    def first(self, count: int) -> Hits:
        """The best `count` of them."""
        return Hits(self.numbers[:count], self.scores[:count])


@dataclass(frozen=True, slots=True)
class Candidates:
    """The answer to a `Query`: rows, and lists over them.

    `rarity` is that of the question's first `TOLD` words among the owner's rows, 0 for a word that no row has; where
    the lists of words are empty, it need not be told.
    `corrections` maps a word of the question that is not in the owner's vocabulary to the stored words that stood in
    for it, with their similarity from 0 to 1. `warnings` say in a sentence what could not be done.
    """

    rows: CandidateRows
    lists: Mapping[ListName, Hits]
    rarity: tuple[float, ...] = ()
    corrections: Mapping[str, tuple[tuple[str, float], ...]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        rows: Iterable[Candidate],
        lists: Mapping[ListName, Sequence[tuple[int, float]]],
        rarity: tuple[float, ...] = (),
        corrections: Mapping[str, tuple[tuple[str, float], ...]] | None = None,
        warnings: tuple[str, ...] = (),
    ) -> Candidates:
        """Candidates from rows and from lists of pairs (place in the rows, score)."""
        made = {name: Hits.of(hits) for name, hits in lists.items()}
        return cls(CandidateRows.of(rows), made, rarity, corrections or {}, warnings)

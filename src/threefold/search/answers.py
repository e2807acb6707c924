"""What a search gives back, of whatever realm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar, overload

from threefold.search.relevance import Gauge

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answers(Sequence[T]):
    """What was found, best first, to be read as a sequence.

    `mode` says what ran: `hybrid`, `lexical`, `semantic` or `none`; `warnings` what could not.
    """

    hits: tuple[T, ...] = ()
    mode: str = "lexical"
    warnings: tuple[str, ...] = ()
    gauge: Gauge = field(default=Gauge(), repr=False, compare=False)

    @property
    def relevance(self) -> float:
        """How likely anything of it is to the point at all, from 0 to 1: what a context is gated by (docs/context.md).

        The score of a hit compares it with the others; that of the best one says little about the question.
        """
        return self.gauge()

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self.hits[index]

"""A turn on its way from one store to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from threefold.model.record import Feedback, TurnRecord

if TYPE_CHECKING:
    import numpy as np


class TurnKey(NamedTuple):
    """Which turn, and enough to tell without reading it whether another store has the same.

    `arrival` grows in the order in which the store took its turns in (another edition stays in its turn's place);
    `vectors` is how many of its rows have one.
    """

    arrival: int
    conversation: str
    turn: str
    digest: str
    vectors: int = 0
    feedback: tuple[Feedback, ...] = ()

    @property
    def name(self) -> tuple[str, str]:
        """Conversation and turn."""
        return self.conversation, self.turn


@dataclass(frozen=True, slots=True)
class MovedTurn:
    """A turn whole, with what its store knows beside the record.

    `record.title` is the one that the turn itself gave, or None. `position` is that of its first row, 0 without rows.
    Of its conversation: `positions`, how many rows it ever had, and `made_by`, the app that made it. `vectors` maps a
    row's number to its vector, float of shape (dimensions,), as exact as the store has it.
    """

    record: TurnRecord
    position: int
    positions: int
    made_by: str | None = None
    feedback: tuple[Feedback, ...] = ()
    vectors: Mapping[int, np.ndarray] = field(default_factory=dict, compare=False)

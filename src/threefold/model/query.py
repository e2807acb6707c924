"""What is asked of a store; `candidates` has its answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from threefold.model.scope import Scope

if TYPE_CHECKING:
    import numpy as np

ListName = Literal["lexical", "trigram", "semantic"]
LISTS: tuple[ListName, ...] = ("lexical", "trigram", "semantic")
# Of so many words of a question is it told which rows have them: a bit each in a whole number of 64.
TOLD = 62


@dataclass(frozen=True, slots=True)
class Filter:
    """Narrows a read inside its scope; every part is ANDed with the scope and with the others.

    `since` is inclusive, `until` exclusive. `now` decides what has expired. `labels` are groups of labels: rows
    pass whose turn has one of each group.
    """

    now: datetime
    roles: tuple[str, ...] | None = None
    conversation: str | None = None
    agent: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    labels: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """One question: up to three candidate lists of `depth` rows each, in one call.

    `terms` are the analysed words of the question without stop words; a term that ends in `*` stands for every term
    that begins so. `vector` is float32 of shape (dimensions,), made by the embedder `model`, or None.
    """

    scope: Scope
    where: Filter
    terms: tuple[str, ...]
    lists: tuple[ListName, ...] = LISTS
    vector: np.ndarray | None = None
    model: str | None = None
    depth: int = 200

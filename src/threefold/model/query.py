"""What is asked of a store, and the candidates it answers with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from threefold.model.record import RowKey
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

    `since` is inclusive, `until` exclusive. `now` decides what has expired.
    """

    now: datetime
    roles: tuple[str, ...] | None = None
    conversation: str | None = None
    agent: str | None = None
    since: datetime | None = None
    until: datetime | None = None


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


@dataclass(frozen=True, slots=True)
class Candidates:
    """The answer to a `Query`: rows, and for each list (index into `rows`, score) best first.

    `rarity` is that of the question's first `TOLD` words among the owner's rows, 0 for a word that no row has; where
    the lists of words are empty, it need not be told.
    `corrections` maps a word of the question that is not in the owner's vocabulary to the stored words that stood in
    for it, with their similarity from 0 to 1. `warnings` say in a sentence what could not be done.
    """

    rows: tuple[Candidate, ...]
    lists: Mapping[ListName, tuple[tuple[int, float], ...]]
    rarity: tuple[float, ...] = ()
    corrections: Mapping[str, tuple[tuple[str, float], ...]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

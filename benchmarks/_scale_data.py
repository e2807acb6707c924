"""Histories for measuring at scale, from a seed: turns spread over a year, questions about them, a model made up."""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from _texts import Synthetic, messages_of

from threefold.model.scope import Scope
from threefold.model.turn import Completion, Submission, Turn

YEAR_START = datetime(2025, 1, 1, 8, tzinfo=UTC)
_TURNS_OF_A_CONVERSATION = 10
_DIRECTIONS = 8192


class MadeUp:
    """A model that costs next to nothing: a text is the sum of its longer words, each a fixed random direction."""

    name = "made-up-1"
    ready = True

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._directions = np.random.default_rng(1).standard_normal((_DIRECTIONS, dimensions), dtype=np.float32)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """See `Embedder.embed`."""
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            words = re.findall(r"\w{4,}", text.lower()) or [text]
            vector[:] = self._directions[[zlib.crc32(word.encode()) % _DIRECTIONS for word in words]].sum(0)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who searches: what they ask, and for the floors what they said, row by row."""

    scope: Scope
    keys: tuple[tuple[str, str, int], ...]
    questions: tuple[str, ...]
    vectors: np.ndarray

    @property
    def rows(self) -> int:
        """How many rows they have."""
        return len(self.keys)


class Histories:
    """Turns of two rows, ten to a conversation, conversations spread over a year. The same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._texts = Synthetic(seed)
        self._random = random.Random(seed)

    def turns(self, rows: int) -> list[Turn]:
        """A user's history of `rows` rows."""
        conversations = -(-rows // (2 * _TURNS_OF_A_CONVERSATION))
        starts = sorted(self._random.uniform(0, 365 * 86_400) for _ in range(conversations))
        return [self._turn(number, starts[number // _TURNS_OF_A_CONVERSATION]) for number in range(rows // 2)]

    def _turn(self, number: int, start: float) -> Turn:
        conversation, place = divmod(number, _TURNS_OF_A_CONVERSATION)
        at = YEAR_START + timedelta(seconds=round(start) + 180 * place)
        return Turn(
            conversation=f"c{conversation}",
            id=f"t{place}",
            started=at,
            ended=at + timedelta(seconds=20),
            submissions=(Submission("prompt", self._texts.message(), at),),
            completion=Completion(self._texts.message(), at + timedelta(seconds=20)),
        )

    def user(self, scope: Scope, turns: Sequence[Turn], questions: int, model: MadeUp) -> User:
        """The one whose history this is, with questions about it."""
        said = [text for turn in turns for text in messages_of(turn)]
        asked = tuple(self._texts.question(said) for _ in range(questions))
        keys = tuple((turn.conversation, turn.id, seq) for turn in turns for seq in range(len(messages_of(turn))))
        return User(scope, keys, asked, model.embed(said))

    def messages(self, count: int) -> list[str]:
        """Single messages."""
        return [self._texts.message() for _ in range(count)]


def small_users(rows: int, each: int) -> Iterator[int]:
    """The sizes of users of about `each` rows, an even number, who have `rows` rows together."""
    each += each % 2
    while rows >= 2:
        yield min(each, rows - rows % 2)
        rows -= each

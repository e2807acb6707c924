"""Texts to measure speed with: made up from a seed with word counts as in speech, or those of a set."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Protocol

from _sets import lifebench, longmemeval_pool

from threefold.model.turn import Completion, Submission, Turn

_START = datetime(2025, 1, 1, 8, tzinfo=UTC)
_TURNS_OF_A_CONVERSATION = 10
# The head of the distribution in English; what follows it is made up.
_FREQUENT = "the to and i a you of in it is that for my on with have was be are this but not so me".split()  # noqa: SIM905
_ONSETS = "b br c ch d dr f fl g gr h j k l m n p pl pr qu r s sh sl st t th tr v w z".split()  # noqa: SIM905
_VOWELS = "a e i o u ai ea ee ou".split()  # noqa: SIM905
_CODAS = ["", "", "l", "m", "n", "nd", "r", "rt", "s", "sk", "t", "x"]


class Texts(Protocol):
    """Where messages and questions about them come from."""

    def message(self) -> str:
        """The next message."""
        ...

    def question(self, messages: Sequence[str]) -> str:
        """A question that some of `messages` may answer."""
        ...


class Synthetic:
    """Messages of words drawn by Zipf's law from a vocabulary of 20,000, about 30 words each (log-normal lengths)."""

    def __init__(self, seed: int = 7, words: int = 20_000) -> None:
        self._random = random.Random(seed)
        made = dict.fromkeys(_FREQUENT)
        while len(made) < words:
            made[self._word()] = None
        self._words = list(made)
        self._weights = list(accumulate(1 / (rank + 2.7) for rank in range(1, words + 1)))

    def _word(self) -> str:
        pick = self._random.choice
        return "".join(pick(_ONSETS) + pick(_VOWELS) + pick(_CODAS) for _ in range(self._random.choice((1, 2, 2, 3))))

    def message(self) -> str:
        """Sentences of about twelve words."""
        count = max(2, min(400, round(self._random.lognormvariate(3.4, 0.7))))
        drawn = self._random.choices(self._words, cum_weights=self._weights, k=count)
        sentences = [" ".join(drawn[i : i + 12]).capitalize() for i in range(0, count, 12)]
        return ". ".join(sentences) + "."

    def question(self, messages: Sequence[str]) -> str:
        """Some rarer words of one message, asked for."""
        words = self._random.choice(messages).lower().replace(".", "").split()
        rare = [word for word in words if word not in _FREQUENT] or words
        return f"What did I say about {' '.join(self._random.sample(rare, min(5, len(rare))))}?"


class OfSet:
    """The texts of LongMemEval or LifeBench in an order of their own, again from the start when they run out."""

    def __init__(self, folder: Path, seed: int = 7) -> None:
        dataset = (longmemeval_pool if (folder / "sessions.jsonl.gz").exists() else lifebench)(folder)
        entries = [entry for history in dataset.histories.values() for entry in history()]
        said = [s.text for e in entries for s in e.turn.submissions]
        said += [e.turn.completion.text for e in entries if e.turn.completion is not None]
        self._random = random.Random(seed)
        self._messages = [text for text in said if text.strip()]
        self._random.shuffle(self._messages)
        self._questions = [question.text for question in dataset.questions]
        self._next = 0

    def message(self) -> str:
        """The next one."""
        self._next += 1
        return self._messages[self._next % len(self._messages)]

    def question(self, messages: Sequence[str]) -> str:  # noqa: ARG002 - the set has its own
        """One of the set's questions."""
        return self._random.choice(self._questions)


def texts(folder: Path | None) -> Texts:
    """From a set's folder, or made up."""
    return Synthetic() if folder is None else OfSet(folder)


def turns(source: Texts, rows: int) -> Iterator[Turn]:
    """Turns of two rows each, question and answer, a minute apart, ten to a conversation; `rows` rows in all."""
    for number in range(rows // 2):
        conversation, place = divmod(number, _TURNS_OF_A_CONVERSATION)
        at = _START + timedelta(hours=conversation, minutes=place)
        yield Turn(
            conversation=f"c{conversation}",
            id=f"t{place}",
            started=at,
            ended=at + timedelta(seconds=20),
            submissions=(Submission("prompt", source.message(), at),),
            completion=Completion(source.message(), at + timedelta(seconds=20)),
        )


def messages_of(turn: Turn) -> list[str]:
    """The texts of a turn's rows, in order."""
    return [*(s.text for s in turn.submissions), *([turn.completion.text] if turn.completion else [])]

"""A summary made of what was said: the sentences that carry most, word for word, in their order. Any language. Pure.

A term weighs as tf-idf has it, over all sentences: rare ones carry facts, those that come back are the subject, those
that are everywhere (greetings, function words) say nothing. Sentences are taken one after the other by what they add to
those before (maximal marginal relevance, Carbonell & Goldstein 1998; here as coverage with scaled costs, Lin & Bilmes
2011): each time a term is taken, what it is worth to the next sentence halves.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from threefold.text.asking import asks
from threefold.text.sentences import sentence_spans
from threefold.text.terms import pieces
from threefold.text.tokens import count_tokens

# What a long sentence pays for its tokens: with 1 it would have to say as much with each as a short one.
_COST: Final = 0.5
# Numbers and names tell facts from talk; what is asked or exclaimed is seldom one.
_NUMBER, _NAME, _TALK = 2.0, 1.5, 0.5
# What was taken before stands for more than what comes to it now: so much of the room is its own, the best of it.
_OLD: Final = 0.7
_SPEAKERS: Final = ("user: ", "assistant: ")
_EXCLAIMS: Final = ("!", "！", "՜", "﹗")


class _Line(NamedTuple):
    """A line of the summary to be: as it is written, what it says without who says it, its terms by weight.

    `told` where it is in the summary before.
    """

    text: str
    said: str
    terms: Mapping[str, float]
    told: bool


def extract(before: str, messages: Sequence[tuple[str, str]], tokens: int) -> str:
    """A `threefold.ports.Summarizer` without a model: lines `role: sentence`, each word for word from what it is given.

    Blanks within a sentence are one space. `before` are lines of the same form, which compete with the new ones for
    `tokens`; what comes back is never longer, and empty where there is no room for anything.
    """
    lines = [*_told(before), *_new(messages)]
    weights = _weights(lines)
    choice = _Choice(lines, weights)
    choice.take((number for number, line in enumerate(lines) if line.told), int(_OLD * tokens))
    choice.take(range(len(lines)), tokens)
    chosen = choice.numbers
    while chosen:
        summary = "\n".join(lines[number].text for number in sorted(chosen))
        # Joined lines may be cut into other tokens than each alone.
        if count_tokens(summary) <= tokens:
            return summary
        chosen.pop()
    return _beginning(lines, weights, tokens)


def _told(before: str) -> Iterator[_Line]:
    """The sentences of a summary, which a model may have written in one paragraph."""
    for line in before.split("\n"):
        who = next((who for who in _SPEAKERS if line.startswith(who)), "")
        yield from _sentences(who, line.removeprefix(who), told=True)


def _new(messages: Iterable[tuple[str, str]]) -> Iterator[_Line]:
    for role, text in messages:
        yield from _sentences(f"{role}: ", text, told=False)


def _sentences(who: str, text: str, told: bool) -> Iterator[_Line]:
    for start, end in sentence_spans(text):
        if said := " ".join(text[start:end].split()):
            yield _Line(who + said, said, _terms(said), told)


def _terms(said: str) -> Mapping[str, float]:
    terms: dict[str, float] = {}
    for number, (start, _, found) in enumerate(pieces(said)):
        name = number > 0 and said[start].isupper()
        for term in found:
            factor = _NUMBER if any(map(str.isdigit, term)) else _NAME if name else 1.0
            terms[term] = max(factor, terms.get(term, 0.0))
    if asks(said) or said.endswith(_EXCLAIMS):
        terms = {term: _TALK * factor for term, factor in terms.items()}
    return terms


def _weights(lines: Sequence[_Line]) -> Mapping[str, float]:
    """What each term says: (1 + ln df) · ln((N + 1) / df), where df of N lines have it."""
    counts = Counter(term for line in lines for term in line.terms)
    return {term: (1 + math.log(n)) * math.log((len(lines) + 1) / n) for term, n in counts.items()}


def _gain(line: _Line, weights: Mapping[str, float], taken: Mapping[str, int]) -> float:
    return sum(factor * math.ldexp(weights[term], -taken.get(term, 0)) for term, factor in line.terms.items())


class _Choice:
    """Lines that are taken, by number, the best first: what they cost, and what they have said."""

    def __init__(self, lines: Sequence[_Line], weights: Mapping[str, float]) -> None:
        self._lines, self._weights = lines, weights
        self._costs: dict[int, int] = {}
        self._texts: set[str] = set()
        self._taken: Counter[str] = Counter()
        self.numbers: list[int] = []
        self.tokens = 0

    def take(self, numbers: Iterable[int], tokens: int) -> None:
        """Take the best of these, up to so many tokens with all that is taken already.

        What a line adds only shrinks with what is taken before it, so most need not be looked at again each time.
        """
        queue = [(-self._worth(number), number, len(self.numbers)) for number in numbers]
        heapq.heapify(queue)
        while queue and self.tokens < tokens:
            _, number, seen = heapq.heappop(queue)
            if self._said(self._lines[number]) or self.tokens + self._cost(number) > tokens:
                continue
            if seen < len(self.numbers):
                heapq.heappush(queue, (-self._worth(number), number, len(self.numbers)))
                continue
            self.numbers.append(number)
            self.tokens += self._cost(number)
            self._texts.add(self._lines[number].text)
            self._taken.update(self._lines[number].terms.keys())

    def _worth(self, number: int) -> float:
        line = self._lines[number]
        return _gain(line, self._weights, self._taken) / math.pow(len(line.said), _COST)

    def _said(self, line: _Line) -> bool:
        """Whether a line says nothing that is not said; what was taken before is not asked again."""
        return line.text in self._texts or (
            bool(line.terms) and not line.told and all(term in self._taken for term in line.terms)
        )

    def _cost(self, number: int) -> int:
        if number not in self._costs:
            self._costs[number] = count_tokens(f"{self._lines[number].text}\n")
        return self._costs[number]


def _beginning(lines: Sequence[_Line], weights: Mapping[str, float], tokens: int) -> str:
    """As much of the line that says most as there is room for; nothing where that is no more than who says it."""
    line = max(lines, key=lambda line: _gain(line, weights, {}), default=None)
    if line is None:
        return ""
    least = len(line.text) - len(line.said)
    low, high = least, len(line.text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count_tokens(line.text[:middle]) <= tokens else (low, middle - 1)
    cut = line.text[:low].rstrip()
    return cut if low > least and count_tokens(cut) <= tokens else ""

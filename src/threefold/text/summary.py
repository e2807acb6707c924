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
_EXCLAIMS: Final = ("!", "！", "՜", "﹗")


class _Line(NamedTuple):
    """A line of the summary to be: as it will be written, what it says without who says it, its terms by weight."""

    text: str
    said: str
    terms: Mapping[str, float]


def extract(before: str, messages: Sequence[tuple[str, str]], tokens: int) -> str:
    """A `threefold.ports.Summarizer` without a model: lines `role: sentence`, each word for word from what it is given.

    Blanks within a sentence are one space. `before` are lines of the same form, which compete with the new ones for
    `tokens`; what comes back is never longer, and empty where there is no room for anything.
    """
    lines = [*_told(before), *_new(messages)]
    weights = _weights(lines)
    chosen = _choose(lines, weights, tokens)
    while chosen:
        summary = "\n".join(lines[number].text for number in sorted(chosen))
        # Joined lines may be cut into other tokens than each alone.
        if count_tokens(summary) <= tokens:
            return summary
        chosen.pop()
    return _beginning(lines, weights, tokens)


def _told(before: str) -> Iterator[_Line]:
    """The lines of a summary; where one does not say who speaks, it is taken whole."""
    for line in before.split("\n"):
        if text := " ".join(line.split()):
            role, colon, said = text.partition(": ")
            yield _line(text, said if colon and role.isalpha() else text)


def _new(messages: Iterable[tuple[str, str]]) -> Iterator[_Line]:
    for role, text in messages:
        for start, end in sentence_spans(text):
            if said := " ".join(text[start:end].split()):
                yield _line(f"{role}: {said}", said)


def _line(text: str, said: str) -> _Line:
    terms: dict[str, float] = {}
    for number, (start, _, found) in enumerate(pieces(said)):
        name = number > 0 and said[start].isupper()
        for term in found:
            factor = _NUMBER if any(map(str.isdigit, term)) else _NAME if name else 1.0
            terms[term] = max(factor, terms.get(term, 0.0))
    if asks(said) or said.endswith(_EXCLAIMS):
        terms = {term: _TALK * factor for term, factor in terms.items()}
    return _Line(text, said, terms)


def _weights(lines: Sequence[_Line]) -> Mapping[str, float]:
    """What each term says: (1 + ln df) · ln((N + 1) / df), where df of N lines have it."""
    counts = Counter(term for line in lines for term in line.terms)
    return {term: (1 + math.log(n)) * math.log((len(lines) + 1) / n) for term, n in counts.items()}


def _gain(line: _Line, weights: Mapping[str, float], taken: Mapping[str, int]) -> float:
    return sum(factor * weights[term] * 0.5 ** taken.get(term, 0) for term, factor in line.terms.items())


def _choose(lines: Sequence[_Line], weights: Mapping[str, float], tokens: int) -> list[int]:
    """Numbers of the lines that are taken, the best first.

    What a line adds only shrinks with what is taken before it, so most need not be looked at again each time.
    """
    taken: Counter[str] = Counter()
    costs: dict[int, int] = {}
    queue = [(-_gain(line, weights, taken) / len(line.said) ** _COST, number, 0) for number, line in enumerate(lines)]
    heapq.heapify(queue)
    chosen: list[int] = []
    while queue and tokens > 0:
        _, number, seen = heapq.heappop(queue)
        line = lines[number]
        if line.terms and all(term in taken for term in line.terms):
            continue  # says nothing that is not said
        if number not in costs:
            costs[number] = count_tokens(f"{line.text}\n")
        if costs[number] > tokens:
            continue
        if seen < len(chosen):
            heapq.heappush(queue, (-_gain(line, weights, taken) / len(line.said) ** _COST, number, len(chosen)))
            continue
        chosen.append(number)
        taken.update(line.terms.keys())
        tokens -= costs[number]
    return chosen


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

"""Near-literal variants: stored words that a misspelt or partial word of a question may stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rapidfuzz import process
from rapidfuzz.distance import OSA

from threefold.model.query import TOLD
from threefold.text.terms import WILDCARD

# One slip in four letters is still the same word; two in five are not.
MIN_SIMILARITY = 0.7
MAX_VARIANTS = 5
# Of shorter words, such as the pairs that runs of Chinese are cut into, nothing else is so similar. Each word is
# compared with the whole vocabulary: a pasted text in another language has hundreds that were never written.
MIN_WORD, MAX_CORRECTED = 3, 16
# A part of a word must be this long, and at least half of it, to stand for the whole.
MIN_PART, MIN_SHARE = 4, 0.45
# Stored English words have lost their endings. A word is also compared with their beginnings of at least this length,
# may go on for so many letters, and counts a little less.
MIN_STEM, MAX_ENDING, STEM_SIMILARITY, STEM_WEIGHT = 5, 6, 0.8, 0.9

# SQLite joins at most 500 selections by UNION ALL, PostgreSQL has at most 1,664 columns in a row.
MAX_PHRASES = 500


def vocabulary_lengths(words: Sequence[str]) -> tuple[int, int]:
    """The shortest and the longest stored word that can stand for one of `words`."""
    shortest, longest = min(map(len, words)), max(map(len, words))
    return max(1, min(int(shortest * MIN_SIMILARITY), shortest - MAX_ENDING)), int(longest / MIN_SHARE)


def correctable(terms: Sequence[str]) -> list[str]:
    """Those of a question's words that may be corrected where they were never written."""
    return [term for term in terms if len(term) >= MIN_WORD and not term.endswith(WILDCARD)]


def corrections(word: str, vocabulary: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """Up to five (stored word, similarity from 0 to 1), the most similar first.

    Similar is a small edit distance relative to the length (optimal string alignment: insertions, deletions,
    substitutions and swaps of neighbours); the word being a good part of a longer one; or its beginning being near a
    stem (`reservaton` and `reserv`). Of a word with digits only a part is looked for: 2024 is not 2026.
    """
    if len(word) < MIN_WORD:
        return ()
    exact = any(character.isdigit() for character in word)
    close = (
        []
        if exact
        else process.extract(
            word, vocabulary, scorer=OSA.normalized_similarity, score_cutoff=MIN_SIMILARITY, limit=MAX_VARIANTS
        )
    )
    found = {term: float(score) for term, score, _ in close}
    if len(word) >= MIN_PART:
        for term in vocabulary:
            if word in term and len(word) >= MIN_SHARE * len(term):
                found[term] = max(found.get(term, 0.0), 0.5 + 0.5 * len(word) / len(term) - 0.01)
    for term in () if exact else vocabulary:
        if MIN_STEM <= len(term) < len(word) <= len(term) + MAX_ENDING and term[0] == word[0]:
            near = OSA.normalized_similarity(word[: len(term)], term)
            if near >= STEM_SIMILARITY:
                found[term] = max(found.get(term, 0.0), STEM_WEIGHT * near)
    best = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return tuple(best[:MAX_VARIANTS])


class Phrases(NamedTuple):
    """What a list of words asks a store for, and which words of the question each phrase stands for.

    `phrases` are distinct, those that end in `*` last; `stands_for` has for each the bits of the question's words.
    """

    phrases: tuple[str, ...]
    stands_for: tuple[int, ...]

    def having(self, told: int) -> int:
        """The bits of the question's words, from those of the phrases that a row has."""
        words = 0
        while told:
            lowest = told & -told
            words |= self.stands_for[lowest.bit_length() - 1]
            told ^= lowest
        return words

    def rarity(self, of_phrases: Mapping[int, float]) -> dict[int, float]:
        """The rarity of the question's words, by number, from that of the phrases that occur; the commonest decides."""
        found: dict[int, float] = {}
        for phrase, rarity in of_phrases.items():
            words = self.stands_for[phrase]
            for word in range(words.bit_length()):
                if words >> word & 1:
                    found[word] = min(rarity, found.get(word, rarity))
        return found


def phrases_of(terms: Sequence[str], corrected: Mapping[str, Sequence[tuple[str, float]]] | None = None) -> Phrases:
    """The question's words, those in `corrected` replaced by what they were corrected to; the most similar first.

    No more than every engine can be asked at once: of a long text of misspelt words, further variants are left out.
    """
    variants = [[word for word, _ in (corrected or {}).get(term, ((term, 1.0),))] for term in terms]
    stands_for: dict[str, int] = {}
    for place in range(max(map(len, variants), default=0)):
        for i, words in enumerate(variants):
            if place < len(words) and (words[place] in stands_for or len(stands_for) < MAX_PHRASES):
                stands_for[words[place]] = stands_for.get(words[place], 0) | (1 << i if i < TOLD else 0)
    ordered = sorted(stands_for, key=lambda phrase: phrase.endswith(WILDCARD))
    return Phrases(tuple(ordered), tuple(stands_for[phrase] for phrase in ordered))


def rarity_of(terms: int, *found: Mapping[int, float]) -> tuple[float, ...]:
    """The rarity of each of so many words of a question, of the first who knows it; 0 for one that does not occur."""
    return tuple(next((of[i] for of in found if i in of), 0.0) for i in range(min(terms, TOLD)))

"""Marks: the words and numbers of a text that may belong to a date, before they are put together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from threefold.text.dates.calendar import FIRST_YEAR, LAST_YEAR
from threefold.text.dates.words import NUMBER, Meaning, Table, Tokens, bare, table, tokens

_SHORT_GAP = 6
_YEAR_STUCK_BEFORE = frozenset("._-/:#$€£¥₹@&+*%=~^\\")
_YEAR_STUCK_AFTER = frozenset("%$€£¥_@#")
_CLOSE = frozenset(".,:;?!)]}'’”\"»」。，、？！؟،।")


class Mark(NamedTuple):
    """Tokens `first` to `last` that mean something.

    Kinds: `m` month, `v` month whose name is often another word, `a` and `b` short, `k` by number; `n` number;
    `p` part of what follows, `q` part of what stands before; `s` season; `l` last, this, next; `w` day of the week, `W`
    a certain one; and before a unit (`d w e m q y`) `r` relative to now, `g` so many ago, `z` the last so many.
    """

    kind: str
    value: int
    first: int
    last: int
    number: int | None = None


class Marked(NamedTuple):
    """A text cut into tokens, with its marks in order."""

    text: str
    cut: Tokens
    known: Table
    marks: list[Mark]
    german: bool

    def word(self, at: int) -> str:
        """The token at `at`, empty outside the text."""
        return self.cut.words[at] if 0 <= at < len(self.cut.words) else ""

    def mark(self, at: int) -> Mark | None:
        """The mark at `at`, if there is one."""
        return self.marks[at] if 0 <= at < len(self.marks) else None

    def gap(self, left: int, right: int) -> list[str]:
        """The tokens between two marks."""
        return self.cut.words[self.marks[left].last + 1 : self.marks[right].first]

    def near(self, left: int, right: int, *more: str) -> bool:
        """Whether both marks exist and only words that join the parts of a date are between them."""
        if left < 0 or right >= len(self.marks):
            return False
        gap, inside = self.gap(left, right), self.known.sets["inside"]
        return len(gap) <= _SHORT_GAP and all(word in inside or word in more for word in gap)

    def day(self, at: int) -> int | None:
        """The mark as the number of a day, when it may be one: no time, share, price or decimal."""
        mark = self.mark(at)
        if mark is None or mark.kind != "n" or not 1 <= mark.value <= 31:
            return None
        start, end = self.cut.found[mark.first].span()
        before, after = self.text[start - 1 : start], self.text[end : end + 2]
        stuck = before in {":", "$", "€", "£", "#"} or after[:1] in {":", "%", "€", "$"}
        decimal = after[:1] in {".", ","} and after[1:].isdecimal() and not self._full(at + 1)
        return None if stuck or decimal or end - start > 2 else mark.value

    def year(self, at: int) -> int | None:
        """The mark as a year of four figures, when it is no part of a longer number or an identifier."""
        mark = self.mark(at)
        if mark is None or mark.kind != "n" or not FIRST_YEAR <= mark.value <= LAST_YEAR:
            return None
        start, end = self.cut.found[mark.first].span()
        before, after = self.text[max(start - 2, 0) : start], self.text[end : end + 2]
        if before[-1:].isalnum() and before.isascii():
            return None
        if before[-1:] == "," and before[:1].isdecimal() and self.day(at - 1) is None:
            return None  # the end of 10,2000; but "May 3,2000" is a date
        if before[-1:] in _YEAR_STUCK_BEFORE and not self._ranged(at - 1, at):
            return None
        if after[:1] in _YEAR_STUCK_AFTER or (after[:1] in set("/-.,:") and after[1:].isalnum()):
            return mark.value if self._ranged(at, at + 1) else None
        return None if self.word(mark.last + 1) in self.known.sets["not_year"] else mark.value

    def _full(self, at: int) -> bool:
        mark = self.mark(at)
        return mark is not None and mark.kind == "n" and FIRST_YEAR <= mark.value <= LAST_YEAR

    def _ranged(self, left: int, right: int) -> bool:
        """Whether two numbers are the ends of a range of years, or a day and month stand before the year."""
        before, after = self.mark(left), self.mark(right)
        if before is None or after is None or len(self.gap(left, right)) != 1:
            return False
        return (self._full(left) and self._full(right)) or before.kind in "mvabk"

    def ends_after(self, at: int) -> bool:
        """Whether a clause ends after the mark."""
        word = self.word(self.marks[at].last + 1)
        return not word or word in _CLOSE


def marked(text: str) -> Marked | None:
    """The marks of `text`; nothing when no word and no figure of it may belong to a date."""
    cut, known = tokens(text), table()
    marks = list(_marks(cut, known))
    german = not known.sets["years_german"].isdisjoint(cut.words)
    return Marked(text, cut, known, marks, german) if marks else None


def _marks(cut: Tokens, known: Table) -> Iterator[Mark]:
    at, words = 0, cut.words
    numbers = [word in known.numbers for word in words]
    while at < len(words):
        word = words[at]
        hit = _longest(words, numbers, at, known) if word in known.lengths or numbers[at] else None
        if hit is None and not word.isascii() and (rest := bare(word)) and rest in known.lengths:
            hit = _longest([*words[:at], rest, *words[at + 1 :]], numbers, at, known)
        if hit is None or _inside_word(cut, at):
            value = cut.values[at]
            if value is not None:
                yield Mark("n", value, at, at)
            at += 1
            continue
        (kind, value), size, place = hit
        count = None
        if place is not None:
            count = known.numbers[words[place]] if numbers[place] else cut.values[place]
        yield Mark(kind, value, at, at + size - 1, count)
        at += size


def _longest(words: list[str], numbers: list[bool], at: int, known: Table) -> tuple[Meaning, int, int | None] | None:
    """The longest phrase at a token: what it means, its size, and the place of its number.

    Words that are numbers ("two") stand for themselves first: `a` is one in "a week ago" but not in "il y a 2 jours".
    """
    lengths, phrases = known.lengths, known.phrases
    for size in lengths.get(words[at], ()):
        cut = words[at : at + size]
        if (meaning := phrases.get(" ".join(cut))) is not None and len(cut) == size:
            return meaning, size, at + cut.index(NUMBER) if NUMBER in cut else None
        for place in range(at + 1, at + len(cut)):
            if numbers[place] and (meaning := _with_number(words, at, size, place, known)):
                return meaning, size, place
    if numbers[at] and words[at + 1 : at + 2] and words[at + 1] in known.sets["counted"]:
        for size in lengths[NUMBER]:
            if meaning := _with_number(words, at, size, at, known):
                return meaning, size, at
    return None


def _with_number(words: list[str], at: int, size: int, place: int, known: Table) -> Meaning | None:
    cut = words[at : at + size]
    if len(cut) < size:
        return None
    cut[place - at] = NUMBER
    return known.phrases.get(" ".join(cut))


def _inside_word(cut: Tokens, at: int) -> bool:
    """Whether Hangul stands right before a phrase of Hangul, which then is the end of some other word."""
    first = cut.words[at][:1]
    return (
        at > 0
        and "\uac00" <= first <= "\ud7ff"
        and cut.found[at - 1].end() == cut.found[at].start()
        and "\uac00" <= cut.words[at - 1][:1] <= "\ud7ff"
    )

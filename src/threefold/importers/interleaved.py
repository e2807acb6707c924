"""Files whose lines belong to several conversations at once, and words that a file tells more than once."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator

from threefold.importers.folding import Conversation
from threefold.model.turn import Turn

MAX_OPEN = 256


class Open:
    """The conversations of one file that are being read, in case their records are interleaved.

    Of more than `MAX_OPEN` the one that was silent longest is closed; its count of turns is remembered for its ids.
    """

    def __init__(self) -> None:
        self._open: OrderedDict[str, Conversation] = OrderedDict()
        self._ordinals: dict[str, int] = {}

    def get(self, name: str, make: Callable[[int], Conversation]) -> tuple[Conversation, list[Turn]]:
        """The conversation `name`, made from its count of turns if it is not open, and the turns that this ended."""
        ended: list[Turn] = []
        if name not in self._open:
            self._open[name] = make(self._ordinals.get(name, 0))
            if len(self._open) > MAX_OPEN:
                oldest, silent = self._open.popitem(last=False)
                ended = silent.close()
                self._ordinals[oldest] = silent.ordinal
        self._open.move_to_end(name)
        return self._open[name], ended

    def __iter__(self) -> Iterator[Conversation]:
        return iter(self._open.values())

    def last(self) -> Conversation | None:
        """The one that was asked for last."""
        return next(reversed(self._open.values()), None)

    def close(self) -> Iterable[Turn]:
        """End them all."""
        return [turn for conversation in self._open.values() for turn in conversation.close()]


class Echoes:
    """Words that arrive over several channels: new are those that no channel has brought as often yet."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._most: Counter[str] = Counter()

    def fresh(self, channel: str, words: str) -> bool:
        """Whether `channel` brings `words` as the first one."""
        words = words.strip()
        self._counts[channel, words] += 1
        new = self._counts[channel, words] > self._most[words]
        self._most[words] += new
        return new

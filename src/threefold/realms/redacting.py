"""One pass of a rule of redaction over the texts of something that is about to be kept, and what it took out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from threefold.errors import InvalidInput
from threefold.model.redaction import marks
from threefold.ports import Redactor


class Pass:
    """Redacts one text after the other; `counts` is how many things of each kind were taken out.

    Without a rule everything stays as it is.
    """

    def __init__(self, rule: Redactor | None) -> None:
        self._rule = rule
        self.counts: Counter[str] = Counter()

    def peek(self, text: str, name: str = "") -> str:
        """A text as it will be, uncounted."""
        return text if self._rule is None else self._rule(text, name)

    def text(self, text: str, name: str = "") -> str:
        """A text; `name` is what it stands under."""
        found = self.peek(text, name)
        if found != text:
            # A rule of the host need not say what it took out.
            self.counts += marks(found) - marks(text) or Counter({"unnamed": 1})
        return found

    def optional(self, text: str | None) -> str | None:
        """A text, where there is one."""
        return None if text is None else self.text(text)

    def path(self, path: str) -> str:
        """A path, segment by segment."""
        return "/".join(self.text(segment).replace("/", "_") for segment in path.split("/"))

    def json(self, value: Any, name: str = "") -> Any:
        """A JSON value: its texts and keys, at any depth.

        Raises:
            InvalidInput: it is nested too deeply.
        """
        if self._rule is None:
            return value
        try:
            return self._json(value, name)
        except RecursionError:
            raise InvalidInput("a JSON value is nested too deeply to be redacted; give it as text") from None

    def _json(self, value: Any, name: str) -> Any:
        if isinstance(value, str):
            return self.text(value, name)
        if isinstance(value, list | tuple):
            return [self._json(each, name) for each in value]
        if isinstance(value, Mapping):
            keys = distinct(self.text(key) if isinstance(key, str) else key for key in value)
            return {key: self._json(each, str(old)) for key, (old, each) in zip(keys, value.items(), strict=True)}
        return value


def distinct(names: Iterable[Any]) -> list[Any]:
    """The names, with a number added to those that are there already; before the ending of a file's name."""
    taken: dict[Any, None] = {}
    for name in names:
        candidate, n = name, 1
        while candidate in taken:
            n += 1
            stem, dot, ending = str(name).rpartition(".")
            candidate = f"{stem}-{n}.{ending}" if dot and "/" not in ending else f"{name}-{n}"
        taken[candidate] = None
    return list(taken)

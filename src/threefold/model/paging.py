"""Where a page of a list ended, as a token that travels."""

from __future__ import annotations

import base64
import binascii
import json
from datetime import datetime
from typing import NamedTuple

from threefold.errors import InvalidInput
from threefold.model.times import from_micros, to_micros


class Cursor(NamedTuple):
    """The last one of a page: when it was, its id; of a turn in the catalog its own id beside its conversation's."""

    at: datetime
    id: str
    turn: str = ""

    @property
    def cursor(self) -> Cursor:
        """Itself: a page goes on after an entry of the last one, or after a cursor."""
        return self

    def token(self) -> str:
        """The cursor as text that `parse` reads; it tells nothing to others."""
        packed = json.dumps([to_micros(self.at), self.id, self.turn], ensure_ascii=False, separators=(",", ":"))
        return base64.urlsafe_b64encode(packed.encode()).decode().rstrip("=")

    @classmethod
    def parse(cls, token: str) -> Cursor:
        """The cursor of a token.

        Raises:
            InvalidInput: it is none that a page ended with.
        """
        try:
            at, id_, turn = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
            if isinstance(at, int) and isinstance(id_, str) and isinstance(turn, str):
                return cls(from_micros(at), id_, turn)
        except (binascii.Error, ValueError, TypeError, OverflowError):
            pass
        raise InvalidInput(f"cursor {token[:40]!r} is none; pass the `next` of the page before, or leave it out")

"""Threefold with its defaults: words, trigrams and vectors, its second stage, vectors made after the commit."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from _peer import ME, Peer, Row, row_id

if TYPE_CHECKING:
    import threefold
    from threefold.model.turn import Turn


class Durable(Peer):
    """A turn that was acknowledged survives the loss of power."""

    batch = 128
    durable = "power loss"
    _durable = True

    def open(self, folder: Path) -> None:
        """A store with the bundled model."""
        import threefold

        self._db: threefold.Threefold = threefold.open(folder, durable=self._durable)

    def add(self, rows: Sequence[Row]) -> None:
        """One turn by the handle, several in one transaction."""
        handle = self._db.user(rows[0].user)
        turns = [list(members) for _, members in groupby(rows, lambda row: (row.conversation, row.turn))]
        if len(turns) > 1:
            handle.conv.record_all([turn_of(members) for members in turns])
            return
        first = rows[0]
        with handle.turn(first.conversation, first.turn, started=first.at) as turn:
            for row in rows:
                say = turn.prompt if row.role == "user" else turn.answer
                say(row.text, at=row.at, author=row.author)

    def settle(self) -> None:
        """Wait until every row has its vector."""
        while self._db.state().pending:
            self._db.embed_pending()
            time.sleep(0.002)

    def search(self, text: str, user: str | None, limit: int) -> list[str]:
        """A hit is a turn; it counts as the message of it that matched best."""
        user = user or ME
        hits = self._db.user(user).conv.search(text, limit=limit)
        return [row_id(user, hit.conversation, hit.turn, hit.role) for hit in hits]

    def close(self) -> None:
        """Release the files."""
        self._db.close()


class Fast(Durable):
    """A turn that was acknowledged survives the end of the process, as with most peers."""

    durable = "kill"
    _durable = False


def turn_of(rows: Sequence[Row]) -> Turn:
    """The turn that rows make up."""
    from threefold.model.turn import Completion, Submission, Turn

    def said() -> Iterator[Submission | Completion]:
        for row in rows:
            at = datetime.fromisoformat(row.at)
            if row.role == "user":
                yield Submission("prompt", row.text, at, author=row.author)
            else:
                yield Completion(row.text, at, row.author)

    parts = list(said())
    return Turn(
        conversation=rows[0].conversation,
        id=rows[0].turn,
        started=datetime.fromisoformat(rows[0].at),
        ended=datetime.fromisoformat(rows[-1].at),
        submissions=tuple(part for part in parts if isinstance(part, Submission)),
        completion=next((part for part in parts if isinstance(part, Completion)), None),
    )

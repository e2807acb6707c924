"""What a search gives back: hits with the words that matched, and how they came about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from threefold.model.kinds import ROLES
from threefold.model.rows import RowKey, StoredRow
from threefold.model.times import iso
from threefold.realms.conv.refs import ref_for
from threefold.search.answers import Answers
from threefold.search.rank import Group, Placing, Turn
from threefold.text.excerpt import EXCERPT_SIZE, Excerpt, excerpt


@dataclass(frozen=True, slots=True)
class Snippet:
    """A text asked for beside the match: of the matched turn (`distance` 0), or of one before (−) or after (+)."""

    ref: str
    role: str
    text: str
    at: datetime
    distance: int = 0


@dataclass(frozen=True, slots=True)
class Hit:
    """One found turn, by its best row.

    `ref` is the matched row's, `text` the part of it that matched, `matches` the (start, end) offsets of the matching
    words in `text`, `roles` all roles of the turn that matched. `also` are further hits of the same conversation where
    the search was grouped so, and count in its `score`. `agent` is the one that recorded the turn, where one did.
    `explain` holds rank and score in each list, the fused score, what the second stage made of it and looked at, the
    recency lift, and the turn's own score.
    """

    ref: str
    conversation: str
    turn: str
    role: str
    text: str
    at: datetime
    score: float
    matches: tuple[tuple[int, int], ...] = ()
    author: str | None = None
    roles: tuple[str, ...] = ()
    snippets: tuple[Snippet, ...] = ()
    also: tuple[Hit, ...] = ()
    agent: str | None = None
    explain: Mapping[str, Any] | None = None

    @property
    def matched(self) -> tuple[str, ...]:
        """The matching words as they were written."""
        return tuple(self.text[start:end] for start, end in self.matches)

    def as_json(self) -> dict[str, Any]:
        """The hit as plain JSON values."""
        value: dict[str, Any] = {
            "ref": self.ref,
            "conversation": self.conversation,
            "turn": self.turn,
            "role": self.role,
            "author": self.author,
            "agent": self.agent,
            "text": self.text,
            "matched": list(self.matched),
            "at": iso(self.at),
            "score": self.score,
            "roles": list(self.roles),
            "snippets": [
                {"ref": s.ref, "role": s.role, "text": s.text, "at": iso(s.at), "distance": s.distance}
                for s in self.snippets
            ],
        }
        if self.also:
            value["also"] = [hit.as_json() for hit in self.also]
        if self.explain is not None:
            value["explain"] = dict(self.explain)
        return value


@dataclass(frozen=True, slots=True)
class Results(Answers[Hit]):
    """Hits, best first; see `Answers`.

    `corrections` are words of the question that were never written, with the stored words searched in their place.
    """

    corrections: Mapping[str, tuple[tuple[str, float], ...]] | None = None


class Presentation(NamedTuple):
    """How hits are to be shown: the terms to mark, the roles of snippets, how many turns around, the steps.

    `size` is about how many characters of a text are shown, None for all, in which nothing is marked.
    """

    terms: tuple[str, ...]
    snippets: tuple[str, ...] = ()
    neighbours: int = 0
    explain: bool = False
    size: int | None = EXCERPT_SIZE


def present(placing: Placing, groups: Sequence[Group], rows: Iterable[StoredRow], how: Presentation) -> tuple[Hit, ...]:
    """Hits from groups of turns (score, [numbers of the turn's rows, best first]) and the stored rows of the best.

    The first turn of a group is the hit, the others its `also`. Turns whose rows are gone meanwhile are left out.
    """
    stored = {row.key: row for row in rows}
    read = _by_conversation(stored.values()) if how.snippets else {}
    hits = []
    for score, turns in groups:
        made = [_hit(placing, turn, stored, read, how) for turn in turns if placing.rows.key(turn[0]) in stored]
        if made:
            first = made[0]
            steps = None if first.explain is None else {**first.explain, "own_score": first.score}
            hits.append(replace(first, score=score, also=tuple(made[1:]), explain=steps))
    return tuple(hits)


class _Read(NamedTuple):
    """The rows that were read of one conversation, and the place of each turn among them."""

    rows: list[StoredRow]
    places: dict[str, int]


def _by_conversation(rows: Iterable[StoredRow]) -> dict[str, _Read]:
    """What was read, by time: an older turn may have been recorded later."""
    read: dict[str, _Read] = {}
    for row in sorted(rows, key=lambda r: (r.key.conversation, r.row.at, r.key.turn)):
        found = read.setdefault(row.key.conversation, _Read([], {}))
        found.rows.append(row)
        found.places.setdefault(row.key.turn, len(found.places))
    return read


def _hit(
    placing: Placing,
    turn: Turn,
    stored: Mapping[RowKey, StoredRow],
    read: Mapping[str, _Read],
    how: Presentation,
) -> Hit:
    key = placing.rows.key(turn[0])
    row = stored[key].row
    part = Excerpt(row.text) if how.size is None else excerpt(row.text, how.terms, how.size)
    return Hit(
        ref=ref_for(key.conversation, key.turn, row.path),
        conversation=key.conversation,
        turn=key.turn,
        role=row.role,
        text=part.text,
        at=row.at,
        score=float(placing.score[turn[0]]),
        matches=part.matches,
        author=row.author,
        agent=stored[key].agent,
        roles=tuple(dict.fromkeys(ROLES[role] for role in placing.rows.role[turn].tolist())),
        snippets=tuple(sorted(_snippets(key, read, how), key=lambda s: s.distance)),
        explain=placing.entry(turn[0]).explain() if how.explain else None,
    )


def _snippets(key: RowKey, read: Mapping[str, _Read], how: Presentation) -> Iterator[Snippet]:
    if not how.snippets:
        return
    around = read[key.conversation]
    here = around.places[key.turn]
    for row in around.rows:
        distance = around.places[row.key.turn] - here
        if row.row.role in how.snippets and abs(distance) <= how.neighbours:
            text = row.row.text if how.size is None else excerpt(row.row.text, how.terms, how.size).text
            ref = ref_for(key.conversation, row.key.turn, row.row.path)
            yield Snippet(ref, row.row.role, text, row.row.at, distance)

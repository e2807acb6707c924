"""Search over boards: by what their cards show at this moment, and by what people wrote on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from threefold.errors import ThreefoldError
from threefold.model.board import Board, Card
from threefold.model.query import LISTS, Filter, Query
from threefold.model.resolved import Shown
from threefold.model.rows import RowKey
from threefold.model.scope import Scope
from threefold.ports import Objects
from threefold.realms.asking import question_for
from threefold.realms.wiring import Ports
from threefold.search.answers import Answers
from threefold.search.embedding import embed
from threefold.search.rank import Placing, depth_for, rank
from threefold.search.relevance import Gauge
from threefold.search.scanning import Scanned, scan
from threefold.text.dates import periods
from threefold.text.excerpt import excerpt
from threefold.text.terms import index_terms

# So much is looked through: cards are asked for what they show at every search.
MAX_BOARDS: Final = 50
MAX_SEARCHED: Final = 1_000
# Characters of an object that are looked through.
_SHOWN: Final = 2_000


@dataclass(frozen=True, slots=True)
class BoardHit:
    """A card that answers, with what it shows; or a board by its title, `card` and `shown` None then.

    `score` is the likelihood that it is what was asked for, as in `conv` (docs/search.md). `text` is the part that
    matched of what was searched, `matches` the (start, end) offsets of the matching words in it.
    """

    board: Board
    card: Card | None
    shown: Shown | None
    score: float
    text: str
    matches: tuple[tuple[int, int], ...] = ()

    @property
    def ref(self) -> str:
        """The reference that the card stands for; of a board its own."""
        return self.board.ref if self.card is None else self.card.ref

    def as_json(self) -> dict[str, Any]:
        """The hit as plain JSON values; of the board what it is called by."""
        board = {"ref": self.board.ref, "name": self.board.name, "title": self.board.title}
        return {
            "ref": self.ref, "board": board, "card": None if self.card is None else self.card.as_json(),
            "shown": None if self.shown is None else self.shown.as_json(), "score": self.score, "text": self.text,
            "matched": [self.text[start:end] for start, end in self.matches],
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class BoardHits(Answers[BoardHit]):
    """Cards and boards, best first; see `Answers`. `warnings` say what was cut, too."""

    def as_json(self) -> dict[str, Any]:
        """The answer as plain JSON values."""
        return {"hits": [hit.as_json() for hit in self.hits], "mode": self.mode, "warnings": list(self.warnings)}


class _Entry(NamedTuple):
    """What is searched: a card, or the title of a board."""

    board: Board
    card: Card | None
    shown: Shown | None
    text: str
    at: datetime


def search(
    scope: Scope, ports: Ports, objects: Objects, boards: Sequence[Board], text: str, limit: int, cut: bool
) -> BoardHits:
    """Answer a question from boards; `cut` says that there are more of them. The arguments are checked."""
    now, ranking = ports.clock(), ports.ranking
    cards = [(board, card) for board in boards for card in board.chosen()]
    warnings = list(_cut(len(boards), len(cards), cut))
    entries = list(_entries(objects, boards, cards[:MAX_SEARCHED]))
    depth = depth_for(limit, ranking)
    query, said = question_for(scope, ports, text, Filter(now), LISTS, depth)
    rows, failed = _rows(ports, query, entries)
    found = scan(rows, query)
    placing = rank(found, query, ranking, periods(text, now) if ranking.learned else ())
    terms = query.terms + tuple(term for variants in found.corrections.values() for term, _ in variants)
    mode = "hybrid" if found.lists.get("semantic") else "lexical"
    hits = tuple(_hits(placing, entries, terms, limit))
    return BoardHits(hits, mode, (*warnings, *said, *failed), Gauge([placing], ports.unrelated))


def _cut(boards: int, cards: int, cut: bool) -> Iterator[str]:
    if cut:
        yield f"only the {boards} boards that were changed last were searched; name others in boards"
    if cards > MAX_SEARCHED:
        yield f"only {MAX_SEARCHED:,} of {cards:,} cards were searched; name fewer boards"


def _entries(objects: Objects, boards: Sequence[Board], cards: Sequence[tuple[Board, Card]]) -> Iterator[_Entry]:
    """All that is searched; every object is asked for what it shows once."""
    for board in boards:
        title = board.title if board.name in board.title else f"{board.title}\n{board.name}"
        yield _Entry(board, None, None, title, board.updated)
    refs = list(dict.fromkeys(card.ref for _, card in cards))
    described = objects.describe(refs, _SHOWN) if refs else {}
    for board, card in cards:
        shown = described[card.ref]
        seen = (shown.title, shown.text) if shown.standing == "there" else ()
        written = (*seen, card.note, *(said.text for said in card.comments))
        yield _Entry(board, card, shown, "\n".join(filter(None, written)), shown.at or card.at)


def _rows(ports: Ports, query: Query, entries: Sequence[_Entry]) -> tuple[list[Scanned], tuple[str, ...]]:
    """The entries as rows, each a conversation of its own; and why they have no vectors, if the question has one."""
    rows = [
        # Numbered so that their names are in order, too.
        Scanned(RowKey(f"{n:06}", "card", 0), "note", each.at, 0, each.text, index_terms(each.text))
        for n, each in enumerate(entries)
    ]
    if query.vector is None or ports.embedder is None or not rows:
        return rows, ()
    try:
        vectors = embed(ports.embedder, [each.text for each in entries])
    except ThreefoldError as error:
        return rows, (f"semantic search is off: the embedder failed: {error}",)
    return [row._replace(vector=vector) for row, vector in zip(rows, vectors, strict=True)], ()


def _hits(placing: Placing, entries: Sequence[_Entry], terms: Sequence[str], limit: int) -> Iterator[BoardHit]:
    for number in placing.order[:limit].tolist():
        entry = entries[int(placing.rows.key(number).conversation)]
        part = excerpt(entry.text, terms)
        score = float(placing.score[number])
        yield BoardHit(entry.board, entry.card, entry.shown, score, part.text, part.matches)

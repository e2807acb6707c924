"""Retrieval: the question to every place that may hold an answer, one order of all chunks, as they stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from threefold.model.candidates import Candidates
from threefold.model.document import Passage
from threefold.model.query import LISTS, Filter, ListName
from threefold.model.rows import RowKey
from threefold.model.scope import Scope
from threefold.realms.asking import question_for
from threefold.realms.doc.conditions import Condition, label
from threefold.realms.doc.keeping import passage_of, source_label
from threefold.realms.doc.shelf import Labels, Shelf
from threefold.realms.places import SEEN_FROM, Place
from threefold.realms.wiring import Ports
from threefold.search.answers import Answers
from threefold.search.rank import Placing, depth_for, rank
from threefold.search.relevance import Gauge
from threefold.text.excerpt import excerpt

MAX_LIMIT: Final = 1_000


@dataclass(frozen=True, slots=True)
class DocHit:
    """A chunk that answers. `score` is the likelihood that it is what was asked for, as in `conv` (docs/search.md).

    `text` is the chunk whole, `start` to `end` of the document's text; `matches` the (start, end) offsets of the
    matching words in it. `headings` are those it stands under below the title, `page` where it begins.
    """

    ref: str
    document: str
    source: str
    title: str
    text: str
    start: int
    end: int
    number: int
    score: float
    headings: tuple[str, ...] = ()
    page: int | None = None
    matches: tuple[tuple[int, int], ...] = ()
    metadata: Mapping[str, Any] | None = None
    explain: Mapping[str, Any] | None = None

    @property
    def matched(self) -> tuple[str, ...]:
        """The matching words as they were written."""
        return tuple(self.text[start:end] for start, end in self.matches)

    def as_json(self) -> dict[str, Any]:
        """The hit as plain JSON values."""
        value: dict[str, Any] = {
            "ref": self.ref, "document": self.document, "source": self.source, "title": self.title,
            "headings": list(self.headings), "page": self.page, "number": self.number, "start": self.start,
            "end": self.end, "text": self.text, "matched": list(self.matched), "score": self.score,
            "metadata": dict(self.metadata or {}),
        }  # fmt: skip
        return value if self.explain is None else {**value, "explain": dict(self.explain)}


@dataclass(frozen=True, slots=True)
class Retrieved(Answers[DocHit]):
    """Chunks, best first; see `Answers`.

    `corrections` are words of the question that stand nowhere, with the stored words searched in their place.
    """

    corrections: Mapping[str, tuple[tuple[str, float], ...]] | None = None

    def as_json(self) -> dict[str, Any]:
        """The answer as plain JSON values."""
        corrections = {word: [term for term, _ in found] for word, found in (self.corrections or {}).items()}
        return {
            "hits": [hit.as_json() for hit in self.hits], "mode": self.mode, "warnings": list(self.warnings),
            "corrections": corrections,
        }  # fmt: skip


class Asked(NamedTuple):
    """A question, checked."""

    text: str
    limit: int
    conditions: tuple[Condition, ...] = ()
    sources: tuple[str, ...] = ()
    lists: Sequence[ListName] = LISTS
    explain: bool = False


class _Ranked(NamedTuple):
    score: float
    order: int
    rank: int
    key: RowKey
    number: int
    placing: Placing
    shelf: Shelf


def retrieve(scope: Scope, ports: Ports, place: Place, asked: Asked) -> Retrieved:
    """Answer a question from the documents that are seen from a place."""
    # A document is not better for having been taken in lately.
    ranking, now = replace(ports.ranking, recency=0.0), ports.clock()
    ranked: list[_Ranked] = []
    placed: list[Placing] = []
    warnings, corrections = dict[str, None](), dict[str, tuple[tuple[str, float], ...]]()
    terms, semantic = tuple[str, ...](), False
    for order, each in enumerate(SEEN_FROM[place]):
        shelf = Shelf.at(scope, ports, each)
        labels = narrowed(shelf, asked)
        if labels is None:
            continue
        depth = depth_for(2 * asked.limit, ranking)
        query, said = question_for(shelf.where, ports, asked.text, Filter(now, labels=labels), asked.lists, depth)
        found = ports.store.candidates(query)
        placing = rank(_alone(found), query, ranking)
        placed.append(placing)
        best = placing.order[: asked.limit].tolist()
        for i, n in enumerate(best):
            ranked.append(_Ranked(float(placing.score[n]), order, i, found.rows.key(n), n, placing, shelf))
        warnings.update(dict.fromkeys((*said, *found.warnings)))
        corrections.update(found.corrections)
        terms += query.terms
        semantic = semantic or bool(found.lists.get("semantic"))
    ranked.sort(key=lambda each: (-each.score, each.order, each.rank))
    terms += tuple(term for variants in corrections.values() for term, _ in variants)
    hits = tuple(_hits(ranked[: asked.limit], terms, asked.explain))
    return Retrieved(hits, _mode(asked.lists, semantic), tuple(warnings), Gauge(placed, ports.unrelated), corrections)


def narrowed(shelf: Shelf, asked: Asked) -> Labels | None:
    """The labels that documents must have in a place; None where none can have them.

    What labels do not tell is found out first, by a look at each document: nothing is left out after the cut.
    """
    groups = [labels for condition in asked.conditions if (labels := condition.labels) is not None]
    if asked.sources:
        groups.append(tuple(source_label(source) for source in asked.sources))
    others = [condition for condition in asked.conditions if condition.labels is None]
    if others:
        ids = [each.id for each in shelf.all(tuple(groups)) if all(other.holds(each.metadata) for other in others)]
        if not ids:
            return None
        groups.append(tuple(label("doc", id_) for id_ in ids))
    return tuple(groups)


def _alone(found: Candidates) -> Candidates:
    """The candidates each as a conversation of its own, said by nobody.

    The second stage knows chats: that an answer stands after its question, and who is spoken of. Chunks of a document
    are no messages, and what they stand under is no speaker.
    """
    import numpy as np

    rows = found.rows
    places = zip(rows.conversation.tolist(), rows.position.tolist(), strict=True)
    names = [f"{rows.conversations[code]} {position:012}" for code, position in places]
    nobody = np.zeros(len(rows), dtype=np.int64)
    alone = replace(rows, conversations=names, conversation=np.arange(len(rows)), authors=[None], author=nobody)
    return replace(found, rows=alone)


def _hits(ranked: Sequence[_Ranked], terms: Sequence[str], explain: bool) -> Iterator[DocHit]:
    by_shelf: dict[Shelf, list[RowKey]] = {}
    for each in ranked:
        by_shelf.setdefault(each.shelf, []).append(each.key)
    rows = {shelf: shelf.rows(keys) for shelf, keys in by_shelf.items()}
    known = {shelf: shelf.documents(list({key.conversation: None for key in keys})) for shelf, keys in by_shelf.items()}
    for each in ranked:
        row, document = rows[each.shelf].get(each.key), known[each.shelf].get(each.key.conversation)
        if row is None or document is None:  # removed in this moment
            continue
        chunk: Passage = passage_of(document.id, row.row)
        matches = excerpt(chunk.text, terms, len(chunk.text)).matches
        steps = each.placing.entry(each.number).explain() if explain else None
        yield DocHit(
            chunk.ref, document.id, document.source, document.title, chunk.text, chunk.start, chunk.end, chunk.number,
            each.score, chunk.headings, chunk.page, matches, document.metadata, steps,
        )  # fmt: skip


def _mode(lists: Sequence[ListName], semantic: bool) -> str:
    others = [name for name in lists if name != "semantic"]
    if semantic:
        return "hybrid" if others else "semantic"
    return "lexical" if others else "none"

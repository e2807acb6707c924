"""Candidates: three lists over one owner's rows, in one snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import apsw

from threefold.backends.sqlite.columns import ColumnCache, Columns
from threefold.backends.sqlite.connection import fetch
from threefold.backends.sqlite.keys import Owner, read_owner
from threefold.backends.sqlite.labels import LabelCache
from threefold.backends.sqlite.vectors import VectorCache
from threefold.backends.sqlite.words import Words
from threefold.model.candidates import Candidates, Hits
from threefold.model.kinds import ROLES
from threefold.model.query import ListName, Query
from threefold.model.times import to_micros
from threefold.search.spelling import (
    MAX_CORRECTED,
    Phrases,
    correctable,
    corrections,
    phrases_of,
    rarity_of,
    vocabulary_lengths,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bools = npt.NDArray[np.bool_]
    Ints = npt.NDArray[np.int64]


class Caches:
    """What this process holds in memory of the file."""

    def __init__(self) -> None:
        self.columns = ColumnCache()
        self.vectors = VectorCache()
        self.labels = LabelCache()

    def clear(self) -> None:
        """Forget everything."""
        self.columns.clear()
        self.vectors.clear()
        self.labels.clear()


def candidates(db: apsw.Connection, query: Query, caches: Caches) -> Candidates:
    """Answer a query inside one read transaction."""
    owner = read_owner(db, query.scope)
    if owner is None:
        return Candidates.of((), dict.fromkeys(query.lists, ()))
    columns = caches.columns.of(db, owner)
    found = _Found(columns, _seen(db, owner, columns, query, caches.labels), query.depth)
    words = Words(db, owner, columns)
    if "lexical" in query.lists:
        found.take_words("lexical", words, phrases_of(query.terms))
    if "trigram" in query.lists:
        found.corrected = _corrected(db, owner, words, query.terms)
        # Without a misspelling this list would be the lexical one again, and count twice.
        if found.corrected or "lexical" not in query.lists:
            found.take_words("trigram", words, phrases_of(query.terms, found.corrected))
        else:
            found.lists["trigram"] = Hits.of(())
    if "semantic" in query.lists:
        _semantic(db, owner, query, found, caches.vectors)
    return found.answer(query)


@dataclass
class _Found:
    """Lists of places in the owner's columns, the bits of the question's words there, and the words' rarity.

    `seen` are the rows that the filter lets through, None where it is all.
    """

    columns: Columns
    seen: Bools | None
    depth: int
    lists: dict[ListName, Hits] = field(default_factory=dict)
    having: list[tuple[Ints, Ints]] = field(default_factory=list)
    rarity: list[dict[int, float]] = field(default_factory=list)
    corrected: dict[str, tuple[tuple[str, float], ...]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def take_words(self, name: ListName, words: Words, asked: Phrases) -> None:
        """A list of words; of equal rows the latest first."""
        scored = words.score(asked)
        found = scored.scores > 0
        places = (found if self.seen is None else found & self.seen).nonzero()[0]
        hits = self.lists[name] = _best(places, scored.scores[places], self.depth, latest_first=True)
        self.having.append((hits.numbers, scored.having[hits.numbers]))
        self.rarity.append(scored.rarity)

    def answer(self, query: Query) -> Candidates:
        """As candidates: lists by index into the rows."""
        import numpy as np

        places = np.unique(np.concatenate([hits.numbers for hits in self.lists.values()]), return_index=True)[0]
        having = np.zeros(len(places), dtype=np.int64)
        for mine, told in self.having:
            having[places.searchsorted(mine)] |= told
        lists = {name: Hits(places.searchsorted(hits.numbers), hits.scores) for name, hits in self.lists.items()}
        rarity = rarity_of(len(query.terms), *self.rarity)
        return Candidates(self.columns.rows.take(places, having), lists, rarity, self.corrected, self.warnings)


def _best(places: Ints, scores: npt.NDArray[np.floating], depth: int, latest_first: bool = False) -> Hits:
    """The `depth` best. Of equal ones at the cut the first are taken, so that a longer list begins with a shorter."""
    import numpy as np

    if len(scores) > depth:
        kept = scores >= np.partition(scores, -depth)[-depth]
        places, scores = places[kept], scores[kept]
    order = np.lexsort((-places if latest_first else places, -scores))[:depth]
    return Hits(places[order], scores[order].astype(np.float64))


def _seen(db: apsw.Connection, owner: Owner, columns: Columns, query: Query, labels: LabelCache) -> Bools | None:
    """Which rows the filter lets through; None where it is all."""
    import numpy as np

    seen = list(_conditions(db, owner, columns, query, labels))
    return np.logical_and.reduce(seen) if seen else None


def _conditions(
    db: apsw.Connection, owner: Owner, columns: Columns, query: Query, labels: LabelCache
) -> Iterable[Bools]:
    import numpy as np

    where, rows, now = query.where, columns.rows, to_micros(query.where.now)
    if where.conversation is not None:
        place = {name: place for place, name in enumerate(rows.conversations)}.get(where.conversation, -1)
        yield rows.conversation == place
    if where.roles is not None:
        yield np.isin(rows.role, [ROLES.index(role) for role in where.roles if role in ROLES])
    if where.since is not None:
        yield rows.at >= to_micros(where.since)
    if where.until is not None:
        yield rows.at < to_micros(where.until)
    if len(columns.expires) and columns.expires.min() <= now:
        yield columns.expires > now
    asked = {column: name for column, name in (("agent", where.agent), ("app", query.scope.app)) if name is not None}
    if asked:
        by = " AND ".join(f"{column} = ?" for column in asked)
        turns = fetch(db, f"SELECT id FROM turns WHERE owner = ? AND {by}", (owner.id, *asked.values()))
        yield np.isin(columns.turns, [number for (number,) in turns])[rows.turn]
    for group in where.labels:
        yield labels.rows(db, owner, columns, group)


def _corrected(
    db: apsw.Connection, owner: Owner, words: Words, terms: Sequence[str]
) -> dict[str, tuple[tuple[str, float], ...]]:
    """For terms that the owner never used, the stored words that are nearly it, where there are some."""
    unknown = [word for word in correctable(terms) if not len(words.occurrences(word).places)][:MAX_CORRECTED]
    if not unknown:
        return {}
    vocabulary = [
        term
        for (term,) in fetch(
            db,
            "SELECT term FROM vocabulary WHERE owner = ? AND length(term) BETWEEN ? AND ?",
            (owner.id, *vocabulary_lengths(unknown)),
        )
    ]
    return {word: near for word in unknown if (near := corrections(word, vocabulary))}


def _semantic(db: apsw.Connection, owner: Owner, query: Query, found: _Found, cache: VectorCache) -> None:
    """Rows by inner product, an exact scan of the owner's vectors."""
    found.lists["semantic"] = Hits.of(())
    if query.vector is None:
        return
    stored: Mapping[str, object] = dict(
        fetch(db, "SELECT key, value FROM meta WHERE key IN ('embedder', 'dimensions')")
    )
    asked = {"embedder": query.model, "dimensions": int(query.vector.shape[0])}
    if stored and stored != asked:
        found.warnings += (
            f"semantic search is off: the store was embedded by {stored['embedder']!r} ({stored['dimensions']} "
            f"dimensions), this program uses {query.model!r} ({asked['dimensions']}); run `threefold reembed`",
        )
        return
    ids, scores = cache.scores(db, owner, query.vector)
    kept = scores > 0
    if found.seen is not None:
        kept &= found.seen[found.columns.places(ids)]
    best = _best(ids[kept], scores[kept], query.depth)
    found.lists["semantic"] = Hits(found.columns.places(best.numbers), best.scores)

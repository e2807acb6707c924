"""Asking the full-text index: BM25 whose rarity of words and average length are those of the owner's rows alone.

FTS5's own `bm25()` counts the rows of the whole file, so what others write would move one's ranking. Asked word by
word, its score tells how often the word occurs; rarity and length are then put in as the owner's rows have them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from threefold.backends.sqlite.connection import fetch, one, scalar
from threefold.backends.sqlite.keys import term_key
from threefold.model.query import TOLD
from threefold.search.bm25 import BESIDE, K1, B
from threefold.text.terms import WILDCARD


def quoted(text: str) -> str:
    """A phrase of the match language, in which nothing but the quote means anything."""
    return '"' + text.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class Scored:
    """Rows with their score and the bits of the phrases that they have; the rarity of phrases that occur, by number."""

    hits: list[tuple[int, float, int]]
    rarity: dict[int, float]


@dataclass(frozen=True, slots=True)
class _Term:
    """A phrase that occurs: its number, its rarity among the owner's rows, FTS5's rarity, and how it is asked for."""

    number: int
    rarity: float
    fts5_rarity: float
    phrase: str

    @property
    def bit(self) -> int:
        return 1 << self.number if self.number < TOLD else 0


def best_rows(
    db: apsw.Connection, owner: int, terms: Sequence[str], match: str, joined: str, values: Sequence[object], depth: int
) -> Scored:
    """Rows that have any of the distinct terms, the best by BM25 first.

    `match` narrows within the index and may be empty; `joined` continues the statement after `FROM … AS found` with
    joins and conditions on `rows AS r`, with its `values`, and may be empty.
    """
    rows, average = _own(db, owner)
    everyones, everyones_average = _of_all(db)
    found = _occurring(db, owner, terms, rows, everyones)
    if not found:
        return Scored([], {})
    sql = f"""SELECT found.rowid, found.score, found.told FROM (
                  SELECT rowid, sum(score) AS score, sum(bit) AS told
                  FROM ({" UNION ALL ".join([_SCORED] * len(found))}) GROUP BY rowid
              ) AS found {joined} ORDER BY found.score DESC, found.rowid DESC LIMIT ?"""
    bound: list[object] = []
    for term in found:
        phrase = f"(terms : {term.phrase}) AND {match}" if match else f"terms : {term.phrase}"
        bound += [term.bit, (K1 + 1) * term.rarity, (K1 + 1) * term.fts5_rarity, average, everyones_average, phrase]
    return Scored(fetch(db, sql, (*bound, *values, depth)), {t.number: t.rarity for t in found if t.bit})


# FTS5's rank is −rarity · (k₁ + 1) · tf / (tf + k₁ · norm): norm / tf is got back and scaled to the owner's average.
_SCORED = f"""SELECT w.rowid, ? AS bit, ? / (1 + (-1 - ? / w.rank)
        * ({1 - B} + {B} * (r.word_count + {BESIDE}) / ?) / ({1 - B} + {B} * (r.word_count + {BESIDE}) / ?)) AS score
    FROM words AS w CROSS JOIN rows AS r ON r.id = w.rowid
    WHERE words MATCH ? AND rank MATCH 'bm25(0.0, 1.0)'"""


def _occurring(db: apsw.Connection, owner: int, terms: Sequence[str], rows: int, everyones: int) -> list[_Term]:
    """Those of the terms that occur."""
    found = []
    for number, term in enumerate(terms):
        phrase = _phrase(owner, term)
        n = int(scalar(db, "SELECT count(*) FROM words WHERE words MATCH ?", (f"terms : {phrase}",)))
        if n:
            found.append(_Term(number, rarity(max(rows, n), n), _fts5_rarity(everyones, n), phrase))
    return found


def rarity(rows: int, having: int) -> float:
    """Inverse document frequency, never negative: log(1 + (N − n + ½) / (n + ½)), as Lucene has it."""
    return math.log(1 + (rows - having + 0.5) / (having + 0.5))


def _fts5_rarity(rows: int, having: int) -> float:
    """What FTS5's `bm25()` multiplies by: log((N − n + ½) / (n + ½)), at least 10⁻⁶."""
    return max(1e-6, math.log((rows - having + 0.5) / (having + 0.5)))


def _phrase(owner: int, term: str) -> str:
    phrase = quoted(term_key(owner, term.removesuffix(WILDCARD)))
    return f"{phrase}*" if term.endswith(WILDCARD) else phrase


def _own(db: apsw.Connection, owner: int) -> tuple[int, float]:
    """How many rows the owner has, and their average length."""
    ((rows, words),) = fetch(db, "SELECT rows, words FROM owners WHERE id = ?", (owner,))
    return int(rows), BESIDE + words / max(rows, 1)


def _of_all(db: apsw.Connection) -> tuple[int, float]:
    """The same of the whole index, from FTS5's record of averages: rows, then the words of each column."""
    record = one(db, "SELECT block FROM words_data WHERE id = 1")
    if not (record and record[0]):
        return 0, 1.0
    rows, at = varint(record[0], 0)
    beside, at = varint(record[0], at)
    words, _ = varint(record[0], at)
    return rows, (beside + words) / max(rows, 1)


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of SQLite's variable length (seven bits a byte, big-endian), and where it ends."""
    value = 0
    while True:
        value = value << 7 | data[at] & 0x7F
        at += 1
        if data[at - 1] < 0x80:
            return value, at

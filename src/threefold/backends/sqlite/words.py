"""Asking the full-text index: BM25 whose rarity of words is counted among the owner's rows alone.

FTS5's own `bm25()` counts the rows of the whole file, so what others write would move one's ranking. Asked word by
word, its score is rarity times a part that depends only on the row; the rarity is replaced, the rest is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import apsw

from threefold.backends.sqlite.connection import fetch, one, scalar
from threefold.backends.sqlite.keys import term_key
from threefold.text.terms import WILDCARD

# SQLite joins at most 500 selections by UNION ALL; beyond that the rarest words decide.
MAX_ASKED = 500


def quoted(text: str) -> str:
    """A phrase of the match language, in which nothing but the quote means anything."""
    return '"' + text.replace('"', '""') + '"'


def best_rows(
    db: apsw.Connection, owner: int, terms: Sequence[str], match: str, joined: str, values: Sequence[object], depth: int
) -> list[tuple[int, float]]:
    """(row, BM25 score) of rows that have any of the terms, best first.

    `match` narrows within the index and may be empty; `joined` continues the statement after `FROM … AS found` with
    joins and conditions on `rows AS r`, with its `values`, and may be empty.
    """
    weighted = _weighted(db, owner, terms)
    if not weighted:
        return []
    branch = "SELECT rowid, -rank * ? AS score FROM words WHERE words MATCH ? AND rank MATCH 'bm25(0.0, 1.0)'"
    sql = f"""SELECT found.rowid, found.score FROM (
                  SELECT rowid, sum(score) AS score FROM ({" UNION ALL ".join([branch] * len(weighted))}) GROUP BY rowid
              ) AS found {joined} ORDER BY found.score DESC, found.rowid DESC LIMIT ?"""
    bound: list[object] = []
    for weight, phrase in weighted:
        bound += [weight, f"(terms : {phrase}) AND {match}" if match else f"terms : {phrase}"]
    return fetch(db, sql, (*bound, *values, depth))


def _weighted(db: apsw.Connection, owner: int, terms: Sequence[str]) -> list[tuple[float, str]]:
    """For each term that occurs: rarity among the owner's rows over FTS5's rarity, and its phrase."""
    mine, everyones = _row_counts(db, owner)
    rarities = []
    for term in dict.fromkeys(terms):
        phrase = _phrase(owner, term)
        n = int(scalar(db, "SELECT count(*) FROM words WHERE words MATCH ?", (f"terms : {phrase}",)))
        if n:
            rarities.append((rarity(max(mine, n), n), _fts5_rarity(everyones, n), phrase))
    rarities.sort(key=lambda entry: -entry[0])
    return [(ours / fts5, phrase) for ours, fts5, phrase in rarities[:MAX_ASKED]]


def rarity(rows: int, having: int) -> float:
    """Inverse document frequency, never negative: log(1 + (N − n + ½) / (n + ½)), as Lucene has it."""
    return math.log(1 + (rows - having + 0.5) / (having + 0.5))


def _fts5_rarity(rows: int, having: int) -> float:
    """What FTS5's `bm25()` multiplies by: log((N − n + ½) / (n + ½)), at least 10⁻⁶."""
    return max(1e-6, math.log((rows - having + 0.5) / (having + 0.5)))


def _phrase(owner: int, term: str) -> str:
    phrase = quoted(term_key(owner, term.removesuffix(WILDCARD)))
    return f"{phrase}*" if term.endswith(WILDCARD) else phrase


def _row_counts(db: apsw.Connection, owner: int) -> tuple[int, int]:
    """Rows of the owner, and of the whole index: the first number of FTS5's record of averages."""
    mine = int(scalar(db, "SELECT rows FROM owners WHERE id = ?", (owner,)))
    record = one(db, "SELECT block FROM words_data WHERE id = 1")
    everyones, _ = varint(record[0], 0) if record and record[0] else (0, 0)
    return mine, everyones


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of SQLite's variable length (seven bits a byte, big-endian), and where it ends."""
    value = 0
    while True:
        value = value << 7 | data[at] & 0x7F
        at += 1
        if data[at - 1] < 0x80:
            return value, at

"""The index of a row: full text, vocabulary, the queue for vectors. Put in, taken out, built anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import apsw

from threefold.backends.sqlite.connection import fetch, one
from threefold.backends.sqlite.keys import term_key, term_text
from threefold.model.codec import compact_json
from threefold.model.rows import Row
from threefold.model.times import from_micros
from threefold.text.asking import asks
from threefold.text.terms import ANALYZER, index_terms


def index_rows(db: apsw.Connection, owner: int, rows: Sequence[tuple[int, Row]]) -> None:
    """Put stored rows (number, row) into the full-text index, the vocabulary and the queue."""
    db.executemany(
        "INSERT INTO words (rowid, terms) VALUES (?, ?)",
        [(number, term_text(owner, row.terms)) for number, row in rows],
    )
    terms = {term for _, row in rows for term in row.terms}
    db.execute(
        "INSERT OR IGNORE INTO vocabulary (owner, term) SELECT ?, value FROM json_each(?)",
        (owner, compact_json(list(terms))),
    )
    db.executemany("INSERT OR IGNORE INTO waiting (row, owner) VALUES (?, ?)", [(number, owner) for number, _ in rows])


def renew_index(db: apsw.Connection) -> None:
    """Build the index anew where another analyzer made it: another version of Unicode or of the stemmer."""
    if one(db, "SELECT value FROM meta WHERE key = 'analyzer'") != (ANALYZER,):
        reindex(db)


def unindex_rows(
    db: apsw.Connection, owner: int, rows: Iterable[tuple[int, str | None, str]], terms: set[str]
) -> Counter[str]:
    """Take rows (number, author, text) out of full text, vectors and queue; their terms go into `terms`.

    The full-text index keeps no text, so it must be told exactly what was put in: see `renew_index`.
    """
    gone: Counter[str] = Counter()
    for number, author, text in rows:
        found = index_terms(f"{author}\n{text}" if author else text)
        terms.update(found)
        db.execute(
            "INSERT INTO words (words, rowid, terms) VALUES ('delete', ?, ?)",
            (number, term_text(owner, found)),
        )
        gone["full text"] += 1
        db.execute("DELETE FROM vectors WHERE owner = ? AND row = ?", (owner, number))
        gone["vectors"] += db.changes()
        db.execute("DELETE FROM waiting WHERE owner = ? AND row = ?", (owner, number))
        gone["queue"] += db.changes()
    return gone


def forget_words(db: apsw.Connection, owner: int, terms: Iterable[str]) -> int:
    """Take words out of the vocabulary that no row of the owner has any more."""
    gone = 0
    for term in terms:
        if one(db, "SELECT 1 FROM occurrences WHERE term = ? LIMIT 1", (term_key(owner, term),)) is None:
            db.execute("DELETE FROM vocabulary WHERE owner = ? AND term = ?", (owner, term))
            gone += db.changes()
    return gone


def reindex(db: apsw.Connection) -> int:
    """Build full text and vocabulary anew from the rows; rows without a vector are queued for one."""
    db.execute("INSERT INTO words (words) VALUES ('delete-all')")
    db.execute("DELETE FROM vocabulary")
    # Rows that wait already keep their claims and failures.
    db.execute("DELETE FROM waiting WHERE row NOT IN (SELECT id FROM rows)")
    count = 0
    for number, owner, seq, role, event, path, text, at, author, words, asking in fetch(
        db, "SELECT id, owner, seq, role, event_type, path, text, at, author, word_count, asks FROM rows"
    ):
        terms = index_terms(f"{author}\n{text}" if author else text)
        if (len(terms), asks(text)) != (words, asking):  # by another analyzer
            db.execute("UPDATE rows SET word_count = ?, asks = ? WHERE id = ?", (len(terms), asks(text), number))
        index_rows(db, owner, [(number, Row(seq, role, event, path, text, from_micros(at), None, author, terms))])
        count += 1
    db.execute(
        """UPDATE owners SET rewritten = rewritten + 1,
                  words = (SELECT coalesce(sum(word_count), 0) FROM rows WHERE owner = owners.id)"""
    )
    embedded = "SELECT row FROM vectors WHERE vectors.owner = waiting.owner AND vectors.row = waiting.row"
    db.execute(f"DELETE FROM waiting WHERE EXISTS ({embedded})")
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('analyzer', ?)", (ANALYZER,))
    return count


def indexed_rows(db: apsw.Connection) -> int:
    """How many rows the full-text index has, from FTS5's own record of averages."""
    record = one(db, "SELECT block FROM words_data WHERE id = 1")
    return varint(record[0], 0)[0] if record and record[0] else 0


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of SQLite's variable length (seven bits a byte, big-endian), and where it ends."""
    value = 0
    while True:
        value = value << 7 | data[at] & 0x7F
        at += 1
        if data[at - 1] < 0x80:
            return value, at

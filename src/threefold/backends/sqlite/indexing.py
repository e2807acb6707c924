"""The index of a row: full text, vocabulary, the queue for vectors. Put in, taken out, built anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import apsw

from threefold.backends.sqlite.connection import fetch, one
from threefold.backends.sqlite.keys import marks, scope_text, term_key, term_text
from threefold.model.codec import compact_json
from threefold.model.record import Row
from threefold.model.times import from_micros
from threefold.text.terms import ANALYZER, index_terms


def index_rows(db: apsw.Connection, owner: int, conversation: int, rows: Sequence[tuple[int, Row]]) -> None:
    """Put stored rows (number, row) of a conversation into the full-text index, the vocabulary and the queue."""
    db.executemany(
        "INSERT INTO words (rowid, scope, terms) VALUES (?, ?, ?)",
        [(number, scope_text(owner, conversation, row.role), term_text(owner, row.terms)) for number, row in rows],
    )
    terms = {term for _, row in rows for term in row.terms}
    db.execute(
        "INSERT OR IGNORE INTO vocabulary (owner, term) SELECT ?, value FROM json_each(?)",
        (owner, compact_json(list(terms))),
    )
    db.executemany("INSERT OR IGNORE INTO waiting (row, owner) VALUES (?, ?)", [(number, owner) for number, _ in rows])


def unindex_rows(db: apsw.Connection, owner: int, turns: Sequence[int], terms: set[str]) -> Counter[str]:
    """Take the rows of turns out of the full-text index, the vectors and the queue; their terms go into `terms`.

    The full-text index keeps no text, so it must be told exactly what was put in. Where another analyzer put it in
    (another version of Unicode or of the stemmer), the index is first built anew.
    """
    if one(db, "SELECT value FROM meta WHERE key = 'analyzer'") != (ANALYZER,):
        reindex(db)
    gone: Counter[str] = Counter()
    rows = fetch(
        db,
        f"SELECT id, conversation, role, author, text FROM rows WHERE +owner = ? AND turn IN ({marks(len(turns))})",
        (owner, *turns),
    )
    for number, conversation, role, author, text in rows:
        found = index_terms(f"{author}\n{text}" if author else text)
        terms.update(found)
        db.execute(
            "INSERT INTO words (words, rowid, scope, terms) VALUES ('delete', ?, ?, ?)",
            (number, scope_text(owner, conversation, role), term_text(owner, found)),
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
        phrase = '"' + term_key(owner, term).replace('"', '""') + '"'
        if one(db, "SELECT 1 FROM words WHERE words MATCH ? LIMIT 1", (f"terms : {phrase}",)) is None:
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
    for number, owner, conversation, seq, role, event, path, text, at, author, words in fetch(
        db, "SELECT id, owner, conversation, seq, role, event_type, path, text, at, author, word_count FROM rows"
    ):
        terms = index_terms(f"{author}\n{text}" if author else text)
        if len(terms) != words:  # counted by another analyzer
            db.execute("UPDATE rows SET word_count = ? WHERE id = ?", (len(terms), number))
        row = Row(seq, role, event, path, text, from_micros(at), None, author, terms)
        index_rows(db, owner, conversation, [(number, row)])
        count += 1
    db.execute("UPDATE owners SET words = (SELECT coalesce(sum(word_count), 0) FROM rows WHERE owner = owners.id)")
    embedded = "SELECT row FROM vectors WHERE vectors.owner = waiting.owner AND vectors.row = waiting.row"
    db.execute(f"DELETE FROM waiting WHERE EXISTS ({embedded})")
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('analyzer', ?)", (ANALYZER,))
    return count

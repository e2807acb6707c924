"""The index of a row: full text and vocabulary. Put in, taken out, built anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from threefold.backends.postgres.connection import Db, change, fetch, run, touched
from threefold.backends.postgres.inserting import Inserts
from threefold.backends.postgres.keys import given, term_key
from threefold.text.terms import index_terms

MAX_COUNT = 32_767


def index_row(inserts: Inserts, owner: UUID, number: int, terms: Sequence[str]) -> None:
    """Put a row's terms into the full-text index and the vocabulary."""
    counted = {term_key(owner, term): (term, min(n, MAX_COUNT)) for term, n in Counter(terms).items()}
    keys = ",".join(map(str, counted))
    counts = ",".join([str(n) for _, n in counted.values()])
    inserts.add("words", number, len(terms), "{" + keys + "}", "{" + counts + "}")
    for key, (term, _) in counted.items():
        inserts.add("vocabulary", key, term)


def forget_words(db: Db, owner: UUID, keys: Sequence[int]) -> int:
    """Take words out of the vocabulary that no row of the owner has any more."""
    if not keys:
        return 0
    return touched(
        change(
            db,
            """DELETE FROM threefold.vocabulary AS v WHERE v.owner = %s AND v.key = ANY(%s::bigint[])
           AND NOT EXISTS (SELECT 1 FROM threefold.words AS w WHERE w.owner = v.owner AND w.terms @> ARRAY[v.key])""",
            (owner, list(keys)),
        )
    )


def reindex(db: Db, owner: UUID) -> int:
    """Build full text and vocabulary of one locked owner anew from its rows; queue rows without a vector."""
    for table in ("words", "vocabulary"):
        run(db, f"DELETE FROM threefold.{table} WHERE owner = %s", (owner,))
    inserts, count, last = Inserts(owner), 0, 0
    while page := fetch(
        db,
        """SELECT number, author, text FROM threefold.rows WHERE owner = %s AND number > %s
           ORDER BY number LIMIT 1000""",
        (owner, last),
    ):
        for number, author, text in page:
            said, speaker = given(text), given(author)
            index_row(inserts, owner, number, index_terms(f"{speaker}\n{said}" if speaker else said))
            count, last = count + 1, number
        inserts.flush(db)
    run(
        db,
        """UPDATE threefold.rows AS r SET word_count = w.length FROM threefold.words AS w
           WHERE r.owner = %(owner)s AND w.owner = %(owner)s AND w.row = r.number AND r.word_count <> w.length""",
        {"owner": owner},
    )
    run(
        db,
        """UPDATE threefold.owners AS o SET rows = s.rows, words = s.words
           FROM (SELECT count(*) AS rows, coalesce(sum(length), 0) AS words FROM threefold.words
                 WHERE owner = %(owner)s) AS s
           WHERE o.owner = %(owner)s""",
        {"owner": owner},
    )
    run(
        db,
        """INSERT INTO threefold.waiting (owner, row) SELECT r.owner, r.number FROM threefold.rows AS r
           WHERE r.owner = %(owner)s AND NOT EXISTS (
               SELECT 1 FROM threefold.vectors AS v WHERE v.owner = r.owner AND v.row = r.number)
           ON CONFLICT DO NOTHING""",
        {"owner": owner},
    )
    return count
